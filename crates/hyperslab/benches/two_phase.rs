//! Small interleaved pieces on two MPI ranks: our two-phase exchange against MPI-IO's own collective buffering, and over
//! HDF5 against independent small accesses. All ways take turns in one run, on files in the page cache of DIR (default: a
//! folder of the system for temporary files); what was written is read back and compared. Starts itself under `mpirun -n 2`.
//!
//! `cargo bench -p hyperslab --no-default-features --features parallel-hdf5,zarr --bench two_phase -- [--check] [DIR]`
//! (with `HDF5_DIR`, as `cargo xtask build --mpi` shows it); with `--check` it fails when an aim is missed.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::MpiJob;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, PageBuffer,
    Reduce, Selection, TransferMode,
};
use hyperslab_run::resolve;
use hyperslab_testkit::under_mpi;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a piece.
const PIECE: u64 = 4096;
/// Bytes of all ranks.
const BYTES: u64 = 64 << 20;
const PASSES: usize = 11;
const RANKS: usize = 2;

/// A way to move the pieces of a rank.
struct Way {
    name: &'static str,
    stack: &'static str,
    transfer: TransferMode,
    /// Each piece in a call of its own, or all in one.
    one_by_one: bool,
}

const fn way(name: &'static str, stack: &'static str, transfer: TransferMode, one_by_one: bool) -> Way {
    Way { name, stack, transfer, one_by_one }
}

/// Each of ours beside what it is measured against.
const WAYS: [Way; 7] = [
    way("MPI-IO, collective", "mpiio", TransferMode::Collective, false),
    way("two-phase over posix", "twophase/posix", TransferMode::Collective, false),
    way("two-phase over mpiio", "twophase/mpiio", TransferMode::Collective, false),
    way("posix, piece by piece", "posix", TransferMode::Independent, true),
    way("HDF5, piece by piece", "hdf5", TransferMode::Independent, true),
    way("HDF5, collective", "hdf5", TransferMode::Collective, false),
    way("two-phase over HDF5", "twophase/hdf5", TransferMode::Collective, false),
];
/// (ours, theirs, how many times as fast ours must be)
const AIMS: [(usize, usize, f64); 2] = [(1, 0, 1.0), (6, 4, 5.0)];

fn main() -> ExitCode {
    if let Some(task) = under_mpi::task() {
        let (check, folder) = task.split_once(' ').unwrap();
        return measure(&PathBuf::from(folder), check == "check");
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let check = if words.iter().any(|word| word == "--check") { "check" } else { "-" };
    let parent = words.iter().find(|word| !word.starts_with("--")).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::Builder::new().prefix("hyperslab-bench-").tempdir_in(parent).unwrap();
    let task = format!("{check} {}", folder.path().display());
    let ended = under_mpi::run(RANKS, &task, Duration::from_secs(600)).unwrap();
    print!("{}", ended.stdout);
    if !ended.success() {
        eprint!("{}", ended.stderr);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// A way with its file open.
struct Opened<'a> {
    way: &'a Way,
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
    /// The selections of the calls, and how many bytes of memory each has.
    calls: Vec<Selection>,
    times: [Vec<f64>; 2],
}

impl<'a> Opened<'a> {
    fn new(way: &'a Way, path: &Path, comm: &Arc<dyn Communicator>) -> Self {
        let format = resolve(&way.stack.parse().unwrap()).unwrap();
        let container = format.open(path, OpenMode::Create, comm).unwrap();
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[BYTES])).unwrap();
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let pieces = BYTES / PIECE / ranks;
        let calls = if way.one_by_one {
            (0..pieces).map(|i| Selection::dense(&[(i * ranks + rank) * PIECE], &[PIECE]).unwrap()).collect()
        } else {
            vec![Selection::strided(&[rank * PIECE], &[ranks * PIECE], &[pieces], &[PIECE]).unwrap()]
        };
        Self { way, container, array, calls, times: Default::default() }
    }

    fn write(&self, data: &[u8]) {
        let layout = MemoryLayout::packed();
        let each = data.len() / self.calls.len();
        for (call, data) in self.calls.iter().zip(data.chunks(each)) {
            self.array.write(call, MemoryView { data, layout: &layout }, self.way.transfer).unwrap();
        }
    }

    fn read(&self, data: &mut [u8]) {
        let layout = MemoryLayout::packed();
        let each = data.len() / self.calls.len();
        for (call, data) in self.calls.iter().zip(data.chunks_mut(each)) {
            self.array.read(call, MemoryViewMut { data, layout: &layout }, self.way.transfer).unwrap();
        }
    }
}

fn measure(folder: &Path, check: bool) -> ExitCode {
    let job = MpiJob::start().unwrap();
    let comm = job.world();
    let mine = (BYTES / RANKS as u64) as usize;
    let (mut data, mut found) = (PageBuffer::new(mine).unwrap(), PageBuffer::new(mine).unwrap());
    data.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i / 7 + comm.rank() * 101) as u8);
    let mut all: Vec<Opened<'_>> =
        WAYS.iter().enumerate().map(|(i, way)| Opened::new(way, &folder.join(i.to_string()), &comm)).collect();
    let slowest = |work: &mut dyn FnMut()| {
        comm.barrier().unwrap();
        let begin = Instant::now();
        work();
        let mut time = [begin.elapsed().as_secs_f64()];
        comm.all_reduce_f64(&mut time, Reduce::Max).unwrap();
        time[0]
    };
    for pass in 0..=PASSES {
        data[pass] ^= 0xff;
        let first = pass % WAYS.len();
        for at in (0..WAYS.len()).map(|i| (i + first) % WAYS.len()) {
            let opened = &mut all[at];
            let written = slowest(&mut || opened.write(&data));
            opened.container.flush(hyperslab_core::Durability::Visible).unwrap();
            found.fill(0);
            let read = slowest(&mut || opened.read(&mut found));
            assert!(found[..] == data[..], "{}: what was read is not what was written", opened.way.name);
            // The first pass meets new pages.
            if pass > 0 {
                opened.times[0].push(written);
                opened.times[1].push(read);
            }
        }
    }
    let diagnostics: Vec<String> = all.iter().flat_map(|opened| opened.container.diagnostics()).collect();
    for opened in &all {
        opened.container.close().unwrap();
    }
    let medians: Vec<[f64; 2]> = all.iter().map(|opened| opened.times.clone().map(median)).collect();
    drop(all);
    let mut missed = false;
    if comm.rank() == 0 {
        println!("{RANKS} ranks, {} MiB in pieces of {PIECE} bytes, medians of {PASSES}", BYTES >> 20);
        println!("{:24} {:>14} {:>14}", "way", "write", "read");
        let rate = |seconds: f64| format!("{:.0} MiB/s", (BYTES >> 20) as f64 / seconds);
        for (way, [write, read]) in WAYS.iter().zip(&medians) {
            println!("{:24} {:>14} {:>14}", way.name, rate(*write), rate(*read));
        }
        for (ours, theirs, aim) in AIMS {
            let [write, read] = [0, 1].map(|i| medians[theirs][i] / medians[ours][i]);
            missed |= write < aim;
            println!(
                "{} against {}: {write:.2} x as fast writing (aim {aim}), {read:.2} x reading",
                WAYS[ours].name, WAYS[theirs].name
            );
        }
        diagnostics.iter().for_each(|diagnostic| println!("note: {diagnostic}"));
    }
    drop(comm);
    drop(job);
    if check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
