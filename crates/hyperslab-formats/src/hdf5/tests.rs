#![allow(clippy::unwrap_used)]

mod alignment;
mod attributes;
mod files;
mod layouts;
mod memory;
mod plane;
mod ranks;
mod types;

use hyperslab_comm::Solo;
use hyperslab_core::{Array, Container, Format, MemoryView, MemoryViewMut, OpenMode, Selection, Stack, TransferMode};
use std::path::PathBuf;
use std::sync::Arc;

/// A directory that goes away, and the format under test.
struct Bench {
    dir: tempfile::TempDir,
    format: Arc<dyn Format>,
}

impl Bench {
    fn new(stack: &str) -> Self {
        let element = stack.parse::<Stack>().unwrap().format;
        Self { dir: tempfile::tempdir().unwrap(), format: crate::build(&element).unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("data.h5")
    }

    fn open(&self, how: OpenMode) -> Arc<dyn Container> {
        self.format.open(&self.path(), how, &Solo::shared()).unwrap()
    }
}

fn put(array: &dyn Array, selection: &Selection, data: &[u8]) {
    array.write(selection, MemoryView::packed(data), TransferMode::Independent).unwrap();
}

fn get(array: &dyn Array, selection: &Selection) -> Vec<u8> {
    let spec = array.spec().unwrap();
    let mut data = vec![0xEE; (selection.len() * spec.dtype.size()) as usize];
    array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    data
}

fn all(array: &dyn Array) -> Selection {
    Selection::all(&array.spec().unwrap().shape).unwrap()
}

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}
