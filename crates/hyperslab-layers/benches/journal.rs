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

const TARGET: f64 = 0.8;
const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let directory =
        arguments.iter().position(|argument| argument == "--directory").map(|at| PathBuf::from(&arguments[at + 1]));
    let folder =
        tempfile::Builder::new().prefix("journal-").tempdir_in(directory.unwrap_or_else(std::env::temp_dir)).unwrap();
    println!("request       pwrite MB/s  journal MB/s  ratio");
    let mut worst = f64::MAX;
    for size in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20] {
        let total = if size < 64 << 10 { 128 << 20 } else { 256 << 20 };
        let data: Vec<u8> = (0..size + (8 << 20)).map(|n| ((n * 31) >> 3) as u8).collect();
        let mut ratios = Vec::new();
        let (mut plain, mut logged) = (Duration::MAX, Duration::MAX);
        for round in 0..ROUNDS {
            // In turns, so that both meet the same machine.
            let pair = match round % 2 {
                0 => (pwrites(folder.path(), &data, size, total), appends(folder.path(), &data, size, total)),
                _ => {
                    let second = appends(folder.path(), &data, size, total);
                    (pwrites(folder.path(), &data, size, total), second)
                }
            };
            ratios.push(pair.0.as_secs_f64() / pair.1.as_secs_f64());
            (plain, logged) = (plain.min(pair.0), logged.min(pair.1));
        }
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ROUNDS / 2];
        let rate = |time: Duration| total as f64 / time.as_secs_f64() / 1e6;
        println!("{:>9} KiB  {:>11.0}  {:>12.0}  {ratio:>5.2}", size >> 10, rate(plain), rate(logged));
        worst = worst.min(ratio);
    }
    println!("worst ratio {worst:.2}, wanted {TARGET}");
    assert!(!check || worst >= TARGET, "appending is too slow");
}

/// Where in the data request `n` begins: not always at the same place, so that it is not in the nearest cache.
fn place(n: usize, size: usize) -> usize {
    n * size % (8 << 20)
}

fn pwrites(folder: &Path, data: &[u8], size: usize, total: usize) -> Duration {
    let path = folder.join("plain");
    let file = File::options().create_new(true).write(true).open(&path).unwrap();
    let begin = Instant::now();
    for n in 0..total / size {
        let at = place(n, size);
        file.write_all_at(&data[at..at + size], (n * size) as u64).unwrap();
    }
    let time = begin.elapsed();
    std::fs::remove_file(path).unwrap();
    time
}

fn appends(folder: &Path, data: &[u8], size: usize, total: usize) -> Duration {
    let files: Arc<dyn Files> = Arc::new(Directory::open(folder).unwrap());
    let header = Header::new(Id::random().unwrap(), 0, 1, "posix", "/x".into()).unwrap();
    let journal = Journal::create(files, header, Limits::new(4 << 30)).unwrap();
    let mut handles = Vec::with_capacity(total / size);
    let begin = Instant::now();
    for n in 0..total / size {
        let at = place(n, size);
        let selection = Selection::dense(&[(n * size) as u64], &[size as u64]).unwrap();
        match journal.append("array", &Datatype::Opaque(1), &selection, &[&data[at..at + size]]).unwrap() {
            Append::Logged(logged) => handles.push(logged),
            other => panic!("{other:?}"),
        }
    }
    let time = begin.elapsed();
    handles.iter().for_each(|logged| logged.done());
    assert!(journal.close_and_remove().unwrap());
    time
}
