//! What `cache` reads from the format below, what it keeps, and what it must not keep.
#![allow(clippy::unwrap_used)]

mod coherence;
mod epochs;
mod random;
mod threads;
mod watched;

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Selection, Stack, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::Path;
use std::sync::Arc;
use watched::{Seen, Watched};

/// The layer as a user writes it, over `inner`.
fn wrap(layer: &str, inner: Arc<dyn Format>) -> Arc<dyn Format> {
    let stack: Stack = format!("{layer}/inner").parse().unwrap();
    hyperslab_layers::build(&stack, inner).unwrap()
}

/// The layer over the oracle, which notes what it is asked for.
fn watched(layer: &str) -> (Arc<dyn Format>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let inner: Arc<dyn Format> = Arc::new(Watched { inner: Arc::new(Memory) as Arc<dyn Format>, seen: seen.clone() });
    (wrap(layer, inner), seen)
}

/// The bytes 0, 1, 2 and so on of an array of bytes.
fn values(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.map(|number| (number % 251) as u8).collect()
}

/// An array of such bytes in a new container, which is opened as `how` then.
fn bytes(
    format: &dyn Format,
    path: &str,
    shape: &[u64],
    chunk: Option<&[u64]>,
    how: OpenMode,
) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let path = Path::new("cache").join(path);
    let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::U8, shape) };
    let container = format.open(&path, OpenMode::Truncate, &Solo::shared()).unwrap();
    let array = container.create("a", &spec).unwrap();
    let all = Selection::all(shape).unwrap();
    array.write(&all, MemoryView::packed(&values(0..all.len())), TransferMode::Independent).unwrap();
    container.close().unwrap();
    let container = format.open(&path, how, &Solo::shared()).unwrap();
    let array = container.array("a").unwrap();
    (container, array)
}

/// The box of `count` elements at `start`.
fn dense(start: &[u64], count: &[u64]) -> Selection {
    Selection::dense(start, count).unwrap()
}

fn read(array: &Arc<dyn Array>, selection: &Selection) -> Vec<u8> {
    let mut data = vec![0xEE; selection.len() as usize];
    array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    data
}

/// Reads, and compares with what `bytes` wrote to an array of `shape`.
fn check(array: &Arc<dyn Array>, shape: &[u64], selection: &Selection) {
    let runs = selection.runs(shape, 1).unwrap();
    assert_eq!(read(array, selection), values(runs.flat_map(|run| run.offset..run.end())), "{selection:?}");
}

fn write(array: &Arc<dyn Array>, selection: &Selection, value: u8) {
    let data = vec![value; selection.len() as usize];
    array.write(selection, MemoryView::packed(&data), TransferMode::Independent).unwrap();
}
