//! What a layer adds to a call when it has nothing to do.

use crate::stacks::{build, create, median};
use hyperslab_core::{MemoryView, MemoryViewMut, Selection, TransferMode};
use std::path::Path;
use std::time::Instant;

const CALLS: u64 = 20_000;
const ROUNDS: usize = 9;
const MOST_NANOSECONDS: f64 = 2000.0;

pub fn run() -> Vec<String> {
    let (folder, mut missed) = (tempfile::tempdir().unwrap(), Vec::new());
    let path = folder.path().join("idle");
    println!(
        "\n{CALLS} calls of 8 bytes over posix; medians of {ROUNDS}\n\n{:10} {:>16} {:>16}",
        "layer", "added to a read", "added to a write"
    );
    for layer in ["async", "cache", "trace", "twophase"] {
        let pairs: Vec<_> =
            (0..ROUNDS).map(|_| (play("posix", &path), play(&format!("{layer}/posix"), &path))).collect();
        let added = |at: usize| median(pairs.iter().map(|(alone, layered)| layered[at] - alone[at]).collect());
        let (read, write) = (added(0), added(1));
        println!("{layer:10} {read:>13.0} ns {write:>13.0} ns");
        if read > MOST_NANOSECONDS {
            missed.push(format!("{layer} adds {read:.0} ns to a read, target {MOST_NANOSECONDS}"));
        }
    }
    println!("target: at most {MOST_NANOSECONDS} ns where the layer has nothing to do, which a write in async is not");
    missed
}

/// Nanoseconds of a read and of a write.
fn play(stack: &str, path: &Path) -> [f64; 2] {
    let format = build(stack);
    let (container, array) = create(&*format, path, &[CALLS]);
    // In no pattern, so that nothing is read ahead.
    let places: Vec<Selection> =
        (0..CALLS).map(|call| Selection::dense(&[call * call % (CALLS - 8)], &[8]).unwrap()).collect();
    let mut data = [1; 8];
    array
        .write(
            &Selection::dense(&[0], &[CALLS]).unwrap(),
            MemoryView::packed(&[1; CALLS as usize]),
            TransferMode::Independent,
        )
        .unwrap();
    container.flush(hyperslab_core::Durability::Visible).unwrap();
    let read =
        each(|call| array.read(&places[call], MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap());
    let write = each(|call| array.write(&places[call], MemoryView::packed(&data), TransferMode::Independent).unwrap());
    container.close().unwrap();
    format.remove(path).unwrap();
    [read, write]
}

/// Nanoseconds per call.
fn each(mut call: impl FnMut(usize)) -> f64 {
    let from = Instant::now();
    (0..CALLS as usize).for_each(&mut call);
    from.elapsed().as_secs_f64() * 1e9 / CALLS as f64
}
