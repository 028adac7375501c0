//! Fast storage and no computation: what `async` costs where it has nothing to hide.

use crate::stacks::{build, create, median};
use hyperslab_core::{Durability, MemoryView, PageBuffer, Selection, TransferMode};
use std::path::Path;
use std::time::Instant;

const ROWS: u64 = 16;
const BYTES: u64 = 16 << 20;
const ROUNDS: usize = 9;
const MOST: f64 = 1.1;

pub fn run() -> Vec<String> {
    let (folder, mut missed) = (tempfile::tempdir().unwrap(), Vec::new());
    let path = folder.path().join("rows");
    println!(
        "\n{ROWS} rows of {} MiB, no computation, page cache; medians of {ROUNDS} pairs\n\n{:8} {:>11} {:>11} {:>7}  said",
        BYTES >> 20,
        "format",
        "alone",
        "async",
        "ratio"
    );
    for name in ["posix", "hdf5"] {
        let (mut alone, mut layered, mut said) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let first = play(name, &path).0;
            let (second, diagnostics) = play(&format!("async/{name}"), &path);
            if round > 0 {
                alone.push(first);
                layered.push(second);
                said = diagnostics;
            }
        }
        let ratio = median(layered.iter().zip(&alone).map(|(layered, alone)| layered / alone).collect());
        let says = said.iter().any(|diagnostic| diagnostic.contains("wrong tool"));
        println!(
            "{name:8} {:>8.1} ms {:>8.1} ms {ratio:>7.2}  {}",
            median(alone) * 1e3,
            median(layered) * 1e3,
            if says { "that it is the wrong tool" } else { "nothing" }
        );
        if ratio > MOST && !says {
            missed.push(format!("async/{name} takes {ratio:.2} times as long and does not say so, target {MOST}"));
        }
    }
    println!("target: at most {MOST}, or it says that it is the wrong tool");
    missed
}

/// Seconds to write all rows and flush, over pages that the file has already, and what the container says of it.
fn play(stack: &str, path: &Path) -> (f64, Vec<String>) {
    let format = build(stack);
    let (container, array) = create(&*format, path, &[ROWS, BYTES]);
    let data = PageBuffer::new(BYTES as usize).unwrap();
    let mut took = 0.0;
    for _ in 0..2 {
        let from = Instant::now();
        for row in 0..ROWS {
            let row = Selection::dense(&[row, 0], &[1, BYTES]).unwrap();
            array.write(&row, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        }
        container.flush(Durability::Visible).unwrap();
        took = from.elapsed().as_secs_f64();
    }
    let diagnostics = container.diagnostics();
    container.close().unwrap();
    format.remove(path).unwrap();
    (took, diagnostics)
}
