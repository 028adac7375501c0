//! What `twophase` gains: two thread ranks write and read interleaved pieces of one array, each piece by a call of its own
//! (small), all pieces of a rank by one independent call (one call), and collectively through the layer (twophase). The
//! ways take turns on files whose pages are in the page cache already, so that finding memory for them does not count.
//! Prints medians of the slower rank's time and how much faster the layer is.
//!
//! `cargo bench -p hyperslab-layers --bench twophase -- --check` exits non-zero when hdf5 gains less than its target.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack,
    TransferMode,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BYTES: u64 = 64 << 20;
const RANKS: usize = 2;
const REPETITIONS: usize = 7;
/// Pieces of the rows that `--check` looks at, and how much faster writing them through the layer must be.
const PIECE: u64 = 4 << 10;
const TARGET: f64 = 5.0;

/// How a rank's pieces are written and read.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Small,
    OneCall,
    TwoPhase,
}

const WAYS: [Way; 3] = [Way::Small, Way::OneCall, Way::TwoPhase];

fn main() {
    let check = std::env::args().any(|argument| argument == "--check");
    let directory = tempfile::tempdir().unwrap();
    let mut missed = false;
    println!(
        "{:6} {:5} {:>8} {:>12} {:>12} {:>12} {:>10} {:>10}",
        "format", "what", "piece", "small", "one call", "twophase", "/small", "/one call"
    );
    for name in ["posix", "hdf5"] {
        for piece in [512, PIECE] {
            let mut times: [[Vec<f64>; 3]; 2] = Default::default(); // by write or read, by way
            for repetition in 0..=REPETITIONS {
                for turn in 0..WAYS.len() {
                    let number = (repetition + turn) % WAYS.len();
                    let path = directory.path().join("array");
                    let took = play(&format(name, WAYS[number]), WAYS[number], &path, piece).unwrap();
                    if repetition > 0 {
                        times[0][number].push(took[0]);
                        times[1][number].push(took[1]);
                    }
                }
            }
            for (what, kept) in ["write", "read"].iter().zip(&mut times) {
                let [small, one_call, two_phase] = [0, 1, 2].map(|way| median(&mut kept[way]));
                missed |= name == "hdf5" && *what == "write" && piece == PIECE && small / two_phase < TARGET;
                let speed = |seconds: f64| format!("{:.2} GiB/s", BYTES as f64 / seconds / f64::from(1 << 30));
                println!(
                    "{name:6} {what:5} {piece:>6} B {:>12} {:>12} {:>12} {:>10.2} {:>10.2}",
                    speed(small),
                    speed(one_call),
                    speed(two_phase),
                    small / two_phase,
                    one_call / two_phase
                );
            }
        }
    }
    println!("target: hdf5 writes pieces of {PIECE} B at least {TARGET} times as fast; medians of {REPETITIONS}");
    if check && missed {
        std::process::exit(1);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn format(name: &str, way: Way) -> Arc<dyn Format> {
    let text = if way == Way::TwoPhase { format!("twophase/{name}") } else { name.to_owned() };
    let stack: Stack = text.parse().unwrap();
    let bottom = hyperslab_formats::build(&stack.format).unwrap();
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// Seconds that the slower rank takes to write its pieces, and to read them.
fn play(format: &Arc<dyn Format>, way: Way, path: &Path, piece: u64) -> Result<[f64; 2]> {
    let times = Threads::run(RANKS, |comm| {
        let rank = comm.rank() as u64;
        let container = format.open(path, OpenMode::Create, &comm)?;
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[BYTES]))?;
        let mut data = vec![0; BYTES as usize / RANKS];
        write(&*array, way, piece, rank, &data)?;
        data.fill(rank as u8 + 1);
        let write = timed(&*comm, || write(&*array, way, piece, rank, &data))?;
        data.fill(0);
        let read = timed(&*comm, || read(&*array, way, piece, rank, &mut data))?;
        assert!(data.iter().all(|byte| *byte == rank as u8 + 1));
        container.close()?;
        Ok([write, read])
    })?;
    format.remove(path)?;
    Ok([0, 1].map(|what| times.iter().map(|times| times[what]).fold(0.0, f64::max)))
}

fn timed(comm: &dyn Communicator, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    comm.barrier()?;
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Piece `number` of a rank.
fn one(number: u64, piece: u64, rank: u64) -> Result<Selection> {
    Selection::dense(&[(number * RANKS as u64 + rank) * piece], &[piece])
}

/// All pieces of a rank.
fn all(piece: u64, rank: u64) -> Result<Selection> {
    let stride = piece * RANKS as u64;
    Selection::strided(&[rank * piece], &[stride], &[BYTES / stride], &[piece])
}

fn transfer(way: Way) -> TransferMode {
    if way == Way::TwoPhase { TransferMode::Collective } else { TransferMode::Independent }
}

fn write(array: &dyn Array, way: Way, piece: u64, rank: u64, data: &[u8]) -> Result<()> {
    if way != Way::Small {
        return array.write(&all(piece, rank)?, MemoryView::packed(data), transfer(way));
    }
    for (number, bytes) in data.chunks(piece as usize).enumerate() {
        array.write(&one(number as u64, piece, rank)?, MemoryView::packed(bytes), TransferMode::Independent)?;
    }
    Ok(())
}

fn read(array: &dyn Array, way: Way, piece: u64, rank: u64, data: &mut [u8]) -> Result<()> {
    if way != Way::Small {
        return array.read(&all(piece, rank)?, MemoryViewMut::packed(data), transfer(way));
    }
    for (number, bytes) in data.chunks_mut(piece as usize).enumerate() {
        array.read(&one(number as u64, piece, rank)?, MemoryViewMut::packed(bytes), TransferMode::Independent)?;
    }
    Ok(())
}
