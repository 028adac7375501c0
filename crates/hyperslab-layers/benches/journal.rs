//! How fast appending to a journal is, next to plain writes of the same bytes to the same directory.
//!
//! `cargo bench -p hyperslab-layers --bench journal -- [--check] [--directory DIR]`. With `--check` it fails where appending
//! is slower than 80 % of plain writing.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_core::{Datatype, Selection};
use hyperslab_layers::journal::{Append, Directory, Files, Header, Id, Journal, Limits};
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
const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let directory =
        arguments.iter().position(|argument| argument == "--directory").map(|at| PathBuf::from(&arguments[at + 1]));
    let folder =
        tempfile::Builder::new().prefix("journal-").tempdir_in(directory.unwrap_or_else(std::env::temp_dir)).unwrap();
    println!("request       pwrite MB/s  journal MB/s  ratio  ratio of processor times");
    let mut worst = f64::MAX;
    for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20] {
        let total = if size < 64 << 10 { 64 << 20 } else { 128 << 20 };
        let data: Vec<u8> = (0..size + (8 << 20)).map(|n| ((n * 31) >> 3) as u8).collect();
        let (mut walls, mut processors) = (Vec::new(), Vec::new());
        let (mut plain, mut logged) = (Duration::MAX, Duration::MAX);
        for round in 0..ROUNDS {
            // In turns, so that both meet the same machine.
            let early = (round % 2 == 0).then(|| pwrites(folder.path(), &data, size, total));
            let append = appends(folder.path(), &data, size, total);
            let write = early.unwrap_or_else(|| pwrites(folder.path(), &data, size, total));
            walls.push(write.wall.as_secs_f64() / append.wall.as_secs_f64());
            processors.push(write.processor.as_secs_f64() / append.processor.as_secs_f64());
            (plain, logged) = (plain.min(write.wall), logged.min(append.wall));
        }
        let (ratio, busy) = (median(walls), median(processors));
        let rate = |time: Duration| total as f64 / time.as_secs_f64() / 1e6;
        println!("{:>9} KiB  {:>11.0}  {:>12.0}  {ratio:>5.2}  {busy:>5.2}", size >> 10, rate(plain), rate(logged));
        worst = worst.min(ratio);
    }
    println!("worst ratio {worst:.2}, wanted {TARGET}");
    assert!(!check || worst >= TARGET, "appending is too slow");
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

fn appends(folder: &Path, data: &[u8], size: usize, total: usize) -> Times {
    let files: Arc<dyn Files> = Arc::new(Directory::open(folder).unwrap());
    let header = Header::new(Id::random().unwrap(), 0, 1, "posix", "/x".into()).unwrap();
    let journal = Journal::create(files, header, Limits::new(4 << 30)).unwrap();
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
