//! What `log` gains, from the first write to the end of close: thread ranks write small pieces of one array that interleave, or
//! cells of a cube on its diagonals, straight to the format and through the log. The ways take turns.
//!
//! `bound` is what the log could gain at most: a third way that does nothing but `pwrite`, of the same pieces to one file of
//! each rank, and then of the whole array to one file, in pieces of 1 MiB by two ranks. No header, no index, no check sum,
//! nothing read back, no exchange between ranks. On emulated storage the array takes what the device needs for one request.
//!
//! `cargo bench -p hyperslab-layers --bench log -- [--check] [interleaved] [slow] [diagonal]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack,
    TransferMode,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PIECE: u64 = 4 << 10;
const REPETITIONS: usize = 15;
const PLANE: &str = "hdf5(plane=on)";
/// What `pwrite` alone writes at a time.
const LARGE: u64 = 1 << 20;
/// Emulated storage: bytes per second, and the time of a request.
const DEVICE: (u64, Duration) = (200 << 20, Duration::from_millis(2));

/// What ranks write: for every call the elements, of an array of bytes.
struct Pattern {
    shape: Vec<u64>,
    calls: fn(&[u64], u64, u64) -> Vec<Selection>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let wanted = |name: &str| arguments.iter().all(|a| a.starts_with("--")) || arguments.iter().any(|a| a == name);
    let mut missed = Vec::new();
    println!(
        "{:46} {:>5} {:>10} {:>10} {:>9} {:>9} {:>6} {:>6}   medians of {REPETITIONS}",
        "stack", "ranks", "direct", "log", "appending", "log gains", "bound", "aim"
    );
    if wanted("interleaved") {
        for (format, below, aim) in [("hdf5", "hdf5", 5.0), ("hdf5", PLANE, 5.0), ("posix", "posix", 0.7)] {
            for ranks in [2, 4, 8] {
                let pattern = interleaved(64 << 20);
                missed.extend(compare(format, below, "4 KiB interleaved", &pattern, ranks, aim, REPETITIONS));
            }
        }
    }
    if wanted("slow") {
        for format in ["slow(200MB/s,2ms)/hdf5", "slow(200MB/s,2ms)/posix"] {
            for ranks in [2, 8] {
                let pattern = interleaved(32 << 20);
                missed.extend(compare(format, format, "4 KiB interleaved", &pattern, ranks, 10.0, 3));
            }
        }
    }
    if wanted("diagonal") {
        for below in ["hdf5", PLANE] {
            missed.extend(compare("hdf5", below, "cells on diagonals", &diagonal(), 4, 2.0, REPETITIONS));
        }
    }
    if !missed.is_empty() {
        println!("missed: {}", missed.join("; "));
    }
    if check && !missed.is_empty() {
        std::process::exit(1);
    }
}

/// Every rank writes every so many'th piece of a line.
fn interleaved(bytes: u64) -> Pattern {
    let calls = |shape: &[u64], rank: u64, ranks: u64| {
        let pieces = shape[0] / PIECE / ranks;
        (0..pieces).map(|n| Selection::dense(&[(n * ranks + rank) * PIECE], &[PIECE]).unwrap()).collect()
    };
    Pattern { shape: vec![bytes], calls }
}

/// BTIO's shape: a cube of five numbers per point, cut into n x n x n cells of which each of the n x n ranks has n, one in
/// every layer; four dumps.
fn diagonal() -> Pattern {
    let calls = |shape: &[u64], rank: u64, ranks: u64| {
        let n = ranks.isqrt();
        let cell = |layer: u64| [layer, (rank / n + n * layer - layer) % n, (rank % n + layer) % n];
        let edge = [shape[1] / n, shape[2] / n, shape[3] / n];
        let dump = |dump: u64| {
            (0..n).map(move |layer| {
                let at = cell(layer);
                let start = [dump, at[0] * edge[0], at[1] * edge[1], at[2] * edge[2]];
                Selection::dense(&start, &[1, edge[0], edge[1], edge[2]]).unwrap()
            })
        };
        (0..shape[0]).flat_map(dump).collect()
    };
    // The last extent counts bytes: 64 points of five 8-byte numbers.
    Pattern { shape: vec![4, 64, 64, 64 * 40], calls }
}

/// Times of `direct` by those of a log over `below`; a miss is returned.
fn compare(
    direct: &str,
    below: &str,
    what: &str,
    pattern: &Pattern,
    ranks: usize,
    aim: f64,
    repetitions: usize,
) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("array");
    let stacks = [direct.to_owned(), format!("log(dir={})/{below}", directory.path().display())];
    let slow = below.starts_with("slow");
    let mut times = [const { Vec::new() }; 4];
    for repetition in 0..=repetitions {
        for way in 0..3 {
            let way = (way + repetition) % 3;
            let (took, appending) = match stacks.get(way) {
                Some(stack) => play(&*build(stack), &path, pattern, ranks).unwrap(),
                None => (pwrite_alone(directory.path(), pattern, ranks, slow).unwrap(), 0.0),
            };
            if repetition > 0 {
                times[way].push(took);
                times[3].extend((way == 1).then_some(appending));
            }
        }
    }
    let [alone, log, bound, appending] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    let bytes = pattern.shape.iter().product::<u64>() as f64;
    let rate = |seconds: f64| format!("{:.0} MiB/s", bytes / seconds / f64::from(1 << 20));
    let gain = alone / log;
    let name = if direct == below { format!("{below}, {what}") } else { format!("{direct}; log/{below}, {what}") };
    let (share, bound) = (appending / log * 100.0, alone / bound);
    println!(
        "{name:46} {ranks:>5} {:>10} {:>10} {share:>8.0}% {gain:>9.2} {bound:>6.2} {aim:>6.1}",
        rate(alone),
        rate(log)
    );
    (gain < aim).then(|| format!("{name}, {ranks} ranks: {gain:.2}, aim {aim}, bound {bound:.2}"))
}

fn build(text: &str) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    let bottom = hyperslab_formats::build(&stack.format).unwrap();
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// Seconds of the slowest rank, all and before close. What was written is read back.
fn play(format: &dyn Format, path: &Path, pattern: &Pattern, ranks: usize) -> Result<(f64, f64)> {
    let times = Threads::run(ranks, |comm| {
        let calls = (pattern.calls)(&pattern.shape, comm.rank() as u64, ranks as u64);
        let longest = calls.iter().map(Selection::len).max().unwrap_or(0);
        let data = vec![comm.rank() as u8 + 1; longest as usize];
        let container = format.open(path, OpenMode::Create, &comm)?;
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &pattern.shape))?;
        comm.barrier()?;
        let from = Instant::now();
        for call in &calls {
            array.write(call, MemoryView::packed(&data[..call.len() as usize]), TransferMode::Independent)?;
        }
        let written = from.elapsed().as_secs_f64();
        container.close()?;
        Ok((from.elapsed().as_secs_f64(), written))
    })?;
    verify(format, path, pattern, ranks)?;
    format.remove(path)?;
    Ok(times.into_iter().fold((0.0, 0.0), |slowest, time| (slowest.0.max(time.0), slowest.1.max(time.1))))
}

/// Seconds of nothing but `pwrite`: the bytes of every call to a file of each rank, then the array to one file.
fn pwrite_alone(folder: &Path, pattern: &Pattern, ranks: usize, slow: bool) -> Result<f64> {
    let bytes = pattern.shape.iter().product::<u64>();
    let array = File::create(folder.join("alone")).unwrap();
    let times = Threads::run(ranks, |comm| {
        let calls = (pattern.calls)(&pattern.shape, comm.rank() as u64, ranks as u64);
        let longest = calls.iter().map(Selection::len).max().unwrap_or(0).max(LARGE);
        let data = vec![comm.rank() as u8 + 1; longest as usize];
        let path = folder.join(format!("alone.{}", comm.rank()));
        let log = File::create(&path).unwrap();
        comm.barrier()?;
        let (from, mut end) = (Instant::now(), 0);
        for call in &calls {
            log.write_all_at(&data[..call.len() as usize], end).unwrap();
            end += call.len();
        }
        comm.barrier()?;
        let mut took = Duration::ZERO;
        if slow {
            took = Duration::from_secs_f64(bytes as f64 / DEVICE.0 as f64) + DEVICE.1;
        } else if comm.rank() < 2 {
            let (half, rank) = (bytes / 2, comm.rank() as u64);
            for at in (half * rank..half * (rank + 1)).step_by(LARGE as usize) {
                let len = LARGE.min(half * (rank + 1) - at);
                array.write_all_at(&data[..len as usize], at).unwrap();
            }
        }
        took += from.elapsed();
        std::fs::remove_file(path).unwrap();
        Ok(took.as_secs_f64())
    })?;
    Ok(times.into_iter().fold(0.0, f64::max))
}

fn verify(format: &dyn Format, path: &Path, pattern: &Pattern, ranks: usize) -> Result<()> {
    let comm: Arc<dyn Communicator> = Arc::new(hyperslab_comm::Solo);
    let container = format.open(path, OpenMode::Read, &comm)?;
    let array: Arc<dyn Array> = container.array("a")?;
    for rank in 0..ranks as u64 {
        let calls = (pattern.calls)(&pattern.shape, rank, ranks as u64);
        for call in calls.iter().step_by(calls.len().div_ceil(8)) {
            let mut found = vec![0; call.len() as usize];
            array.read(call, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
            assert!(found.iter().all(|byte| *byte == rank as u8 + 1));
        }
    }
    container.close()
}
