//! Time steps that compute and then write, on slow storage: how long the program waits, and how long it all takes, against
//! a plain copy of the same bytes and against what no program could beat.

use crate::stacks::{build, create, median};
use hyperslab_core::{Durability, MemoryView, PageBuffer, Selection, TransferMode};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const STEPS: u64 = 12;
const BYTES: u64 = 32 << 20;
const STORAGE: &str = "slow(200MB/s,2ms)/posix";
/// Of which the middle one counts.
const ROUNDS: usize = 5;
const MOST_BLOCKED: f64 = 1.3;
const MOST_TOTAL: f64 = 1.05;

/// Seconds of one run.
struct Run {
    /// In calls that write.
    blocked: f64,
    /// From the first computation to the end of the flush.
    total: f64,
}

pub fn run() -> Vec<String> {
    let (folder, mut missed) = (tempfile::tempdir().unwrap(), Vec::new());
    let path = folder.path().join("steps");
    // What a step costs the storage, by doing it.
    let io = play(STORAGE, &path, Duration::ZERO).total / STEPS as f64;
    println!(
        "\n{STEPS} steps of {} MiB on {STORAGE}: {:.1} ms of I/O each; medians of {ROUNDS}\n\n{:18} {:>10} {:>10} {:>9} \
         {:>10} {:>10} {:>9}",
        BYTES >> 20,
        io * 1e3,
        "compute",
        "blocked",
        "memcpy",
        "ratio",
        "total",
        "optimum",
        "ratio"
    );
    for (name, share) in [("1.25 x I/O", 1.25), ("half of I/O", 0.5)] {
        let compute = Duration::from_secs_f64(io * share);
        let runs: Vec<(Run, f64)> = (0..ROUNDS)
            .map(|_| (play(&format!("async/{STORAGE}"), &path, compute), copying(compute, Some(&path))))
            .collect();
        let of = |figure: fn(&(Run, f64)) -> f64| median(runs.iter().map(figure).collect());
        let (blocked, total, copied) = (of(|run| run.0.blocked), of(|run| run.0.total), of(|run| run.1));
        // The first computation is hidden by nothing, the last write by nothing.
        let (compute, overhead) = (compute.as_secs_f64(), copied / STEPS as f64);
        let optimum = compute + overhead + (STEPS - 1) as f64 * f64::max(compute + overhead, io) + io;
        let ratios = [of(|run| run.0.blocked / run.1), total / optimum];
        println!(
            "{name:18} {:>7.1} ms {:>7.1} ms {:>9.2} {:>8.3} s {:>8.3} s {:>9.3}",
            blocked * 1e3,
            copied * 1e3,
            ratios[0],
            total,
            optimum,
            ratios[1]
        );
        // Where compute is shorter, waiting for memory may be part of the optimum.
        if share >= 1.0 && ratios[0] > MOST_BLOCKED {
            missed.push(format!("blocked {:.2} times as long as a copy takes, target {MOST_BLOCKED}", ratios[0]));
        }
        if ratios[1] > MOST_TOTAL {
            missed.push(format!("{:.3} of the optimum with compute {name}, target {MOST_TOTAL}", ratios[1]));
        }
    }
    println!(
        "copies of the same bytes that nobody writes take {:.1} ms",
        copying(Duration::from_secs_f64(io), None) * 1e3
    );
    println!(
        "optimum: compute + copy + {} x max(compute + copy, I/O) + I/O; targets: blocked {MOST_BLOCKED} x a copy where \
         compute is longer than I/O, total {MOST_TOTAL} x the optimum",
        STEPS - 1
    );
    missed
}

/// Each step computes, then writes a row.
fn play(stack: &str, path: &Path, compute: Duration) -> Run {
    let format = build(stack);
    let (container, array) = create(&*format, path, &[STEPS, BYTES]);
    let data = PageBuffer::new(BYTES as usize).unwrap();
    let (from, mut blocked) = (Instant::now(), Duration::ZERO);
    for step in 0..STEPS {
        std::thread::sleep(compute);
        let row = Selection::dense(&[step, 0], &[1, BYTES]).unwrap();
        let called = Instant::now();
        array.write(&row, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        blocked += called.elapsed();
    }
    container.flush(Durability::Visible).unwrap();
    let total = from.elapsed();
    container.close().unwrap();
    format.remove(path).unwrap();
    Run { blocked: blocked.as_secs_f64(), total: total.as_secs_f64() }
}

/// Seconds to copy what a run writes, once per step after a computation as there. Each copy may be written to a file
/// between, as there: that leaves the caches to other memory, and a copy takes a fifth longer.
fn copying(compute: Duration, written: Option<&Path>) -> f64 {
    let data = PageBuffer::new(BYTES as usize).unwrap();
    let mut copy = PageBuffer::new(BYTES as usize).unwrap();
    let file = written.map(|path| File::create(path).unwrap());
    let mut took = Duration::ZERO;
    for step in 0..STEPS {
        std::thread::sleep(compute);
        let from = Instant::now();
        copy.copy_from_slice(std::hint::black_box(&data));
        took += from.elapsed();
        if let Some(file) = &file {
            std::thread::scope(|scope| scope.spawn(|| file.write_all_at(&copy, step * BYTES).unwrap()).join().unwrap());
        }
        std::hint::black_box(&copy);
    }
    if let Some(path) = written {
        std::fs::remove_file(path).unwrap();
    }
    took.as_secs_f64()
}
