//! How fast appending to a journal is, next to plain writes of the same bytes to the same directory.
//!
//! `cargo bench -p hyperslab-journal --bench journal -- [--check] [--directory DIR] [--rounds N]`. With `--check` it fails
//! where appending is slower than 80 % of plain writing, or syncing every 10 ms slower than 80 % of appending without.
//! All sides take turns in every round; the ratios are medians over the rounds.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_core::{Datatype, Selection};
use hyperslab_journal::{Append, Directory, Header, Id, Journal, JournalStorage, Limits, SyncMode};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a run took, and how long it had a processor, which other programs disturb less.
#[derive(Clone, Copy)]
struct Times {
    wall: Duration,
    processor: Duration,
}

struct Clock(Instant, Duration);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), processor())
    }

    fn stop(&self) -> Times {
        Times { wall: self.0.elapsed(), processor: processor() - self.1 }
    }
}

fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

const TARGET: f64 = 0.8;
const ROUNDS: usize = 21;
/// The sides: plain writes, then appends in these modes.
const MODES: [SyncMode; 3] = [SyncMode::OnFlush, SyncMode::Every(Duration::from_millis(10)), SyncMode::None];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let value = |name: &str| arguments.iter().position(|argument| argument == name).map(|at| &arguments[at + 1]);
    let directory = value("--directory").map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds = value("--rounds").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let folder = tempfile::Builder::new().prefix("journal-").tempdir_in(directory).unwrap();
    println!("                       MB/s                               ratios");
    println!("request       pwrite  append  every 10 ms   none   append/pwrite  processor  every/append  none/append");
    let (mut worst, mut worst_every) = (f64::MAX, f64::MAX);
    for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20] {
        let total = if size < 64 << 10 { 64 << 20 } else { 128 << 20 };
        let data: Vec<u8> = (0..size + (8 << 20)).map(|n| ((n * 31) >> 3) as u8).collect();
        let mut rounds: Vec<[Times; 4]> = (0..rounds).map(|n| round(n, folder.path(), &data, size, total)).collect();
        let ratio = |of: usize, to: usize| {
            median(rounds.iter().map(|times| times[to].wall.as_secs_f64() / times[of].wall.as_secs_f64()).collect())
        };
        let (append, every, none) = (ratio(1, 0), ratio(2, 1), ratio(3, 1));
        let processor = |times: &[Times; 4]| times[0].processor.as_secs_f64() / times[1].processor.as_secs_f64();
        let busy = median(rounds.iter().map(processor).collect());
        let mut rate = |side: usize| {
            rounds.sort_by_key(|times| times[side].wall);
            total as f64 / rounds[rounds.len() / 2][side].wall.as_secs_f64() / 1e6
        };
        println!(
            "{:>9} KiB  {:>5.0}  {:>6.0}  {:>11.0}  {:>5.0}   {append:>13.2}  {busy:>9.2}  {every:>12.2}  {none:>11.2}",
            size >> 10,
            rate(0),
            rate(1),
            rate(2),
            rate(3)
        );
        (worst, worst_every) = (worst.min(append), worst_every.min(every));
    }
    println!("worst ratios {worst:.2} and {worst_every:.2}, wanted {TARGET}");
    assert!(!check || worst.min(worst_every) >= TARGET, "appending is too slow");
}

/// All sides once, in another order every time, so that all meet the same machine.
fn round(number: usize, folder: &Path, data: &[u8], size: usize, total: usize) -> [Times; 4] {
    let mut times = [Times { wall: Duration::ZERO, processor: Duration::ZERO }; 4];
    for n in 0..4 {
        let side = (number + n) % 4;
        times[side] = match side.checked_sub(1) {
            None => pwrites(folder, data, size, total),
            Some(mode) => appends(folder, data, size, total, MODES[mode]),
        };
    }
    times
}

/// Where in the data request `n` begins: not always at the same place, so that it is not in the nearest cache.
fn place(n: usize, size: usize) -> usize {
    n * size % (8 << 20)
}

fn pwrites(folder: &Path, data: &[u8], size: usize, total: usize) -> Times {
    let path = folder.join("plain");
    let file = File::options().create_new(true).write(true).open(&path).unwrap();
    let clock = Clock::start();
    for n in 0..total / size {
        let at = place(n, size);
        file.write_all_at(&data[at..at + size], (n * size) as u64).unwrap();
    }
    let time = clock.stop();
    std::fs::remove_file(path).unwrap();
    time
}

fn appends(folder: &Path, data: &[u8], size: usize, total: usize, sync: SyncMode) -> Times {
    let files: Arc<dyn JournalStorage> = Arc::new(Directory::open(folder).unwrap());
    let header = Header::new(Id::random().unwrap(), 0, 1, "posix", "/x".into()).unwrap();
    let journal = Journal::create(files, header, Limits { sync, ..Limits::new(4 << 30) }).unwrap();
    let mut handles = Vec::with_capacity(total / size);
    let clock = Clock::start();
    for n in 0..total / size {
        let at = place(n, size);
        let selection = Selection::dense(&[(n * size) as u64], &[size as u64]).unwrap();
        match journal.append("array", &Datatype::Opaque(1), &selection, &[&data[at..at + size]]).unwrap() {
            Append::Logged(logged) => handles.push(logged),
            other => panic!("{other:?}"),
        }
    }
    let time = clock.stop();
    handles.iter().for_each(|logged| logged.done());
    assert!(journal.close_and_remove().unwrap());
    time
}
