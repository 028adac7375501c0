//! Reordering many small requests: time and memory for each number of them.
//!
//! `cargo bench -p hyperslab-layers --bench reorder -- [--check]`. With `--check` it fails where 1,000,000 requests of 4 KiB need a
//! second or 200 MB.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use hyperslab_core::{Result, Run, Selection};
use hyperslab_layers::log::reorder::{Entry, ReorderLimits, Requests, Write, reorder};
use std::time::Instant;

const ELEMENT: u64 = 8;
/// Elements of a request.
const REQUEST: u64 = 512;

/// Requests of 4 KiB of a two-dimensional array: pieces of rows, or columns of blocks that interleave.
struct Sample {
    shape: [u64; 2],
    selections: Vec<(u64, u64, bool)>,
}

impl Sample {
    fn new(requests: u64, interleaving: bool) -> Self {
        let columns = if interleaving { 64 * 8 } else { 4 * REQUEST };
        let shape = [(requests * REQUEST).div_ceil(columns), columns];
        // Every request once, in an order that jumps.
        let step = (requests as f64 * 0.618) as u64 | 1;
        let step = (step..).find(|step| gcd(*step, requests) == 1).unwrap();
        let numbers = (0..requests).map(|n| n * step % requests);
        let selections = numbers.map(|n| match interleaving {
            // 64 rows of 8 elements.
            true => (n / 64 * 64, n % 64 * 8, true),
            false => (n / 4, n % 4 * REQUEST, false),
        });
        Self { shape, selections: selections.collect() }
    }

    fn selection(&self, number: u32) -> Selection {
        let (row, column, block) = self.selections[number as usize];
        Selection::dense(&[row, column], if block { &[64, 8] } else { &[1, REQUEST] }).unwrap()
    }
}

impl Requests for Sample {
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>> {
        let (row, column, _) = self.selections[number as usize];
        let columns = self.shape[1];
        let runs = (row..row + 64).map(move |row| Run { offset: (row * columns + column) * ELEMENT, len: 8 * ELEMENT });
        Ok(Box::new(runs))
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn main() {
    let check = std::env::args().any(|argument| argument == "--check");
    println!("{:<13}{:>9}  {:>8}  {:>10}  {:>9}  {:>8}", "pattern", "requests", "ms", "ns/request", "writes", "MB");
    for interleaving in [false, true] {
        for requests in [1_000, 10_000, 100_000, 1_000_000 / 64 * 64] {
            let sample = Sample::new(requests / 64 * 64, interleaving);
            let before = peak();
            let begin = Instant::now();
            let entry = |n: u32| Entry::new(n, &sample.selection(n), &sample.shape, ELEMENT).unwrap().unwrap();
            let mut entries: Vec<Entry> = (0..sample.selections.len() as u32).map(entry).collect();
            let mut bytes = 0;
            let counts = reorder(&mut entries, &sample, &ReorderLimits::default(), &mut |write| {
                if let Write::Extent(parts) = write {
                    bytes += parts.iter().map(|part| part.len).sum::<u64>();
                }
                Ok(())
            });
            let time = begin.elapsed();
            let memory = (peak() - before) as f64 / 1e6;
            assert_eq!(bytes, sample.selections.len() as u64 * REQUEST * ELEMENT);
            let name = if interleaving { "interleaving" } else { "apart" };
            let each = time.as_nanos() as usize / sample.selections.len();
            let (milliseconds, writes) = (time.as_secs_f64() * 1e3, counts.unwrap().writes);
            println!("{name:<13}{requests:>9}  {milliseconds:>8.1}  {each:>10}  {writes:>9}  {memory:>8.1}");
            let slow = requests > 900_000 && (time.as_secs_f64() > 1.0 || memory > 200.0);
            assert!(!check || interleaving || !slow, "too slow or too large");
        }
    }
}

/// The most memory that the process had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
