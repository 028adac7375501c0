//! What all trials use.

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, Container, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use libtest_mimic::Failed;
use std::path::Path;
use std::sync::Arc;

/// A reproducible stream of numbers.
#[derive(Debug, Clone)]
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which may not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// The seed that the environment asks for.
pub fn seed() -> Result<u64, Failed> {
    match std::env::var("HYPERSLAB_SEED") {
        Ok(text) => text.parse().map_err(|_| format!("HYPERSLAB_SEED={text:?} is not a number").into()),
        Err(_) => Ok(0),
    }
}

pub fn format(stack: &str) -> Result<Arc<dyn Format>> {
    hyperslab_formats::build(&stack.parse::<Stack>()?.format)
}

pub fn open(stack: &str, path: &Path, how: OpenMode) -> Result<Arc<dyn Container>> {
    format(stack)?.open(path, how, &Solo::shared())
}

/// A fresh directory, in memory where the machine has that.
pub fn directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hyperslab-plane-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())
}

pub fn write(array: &dyn Array, selection: &Selection, data: &[u8]) -> Result<()> {
    array.write(selection, MemoryView::packed(data), TransferMode::Independent)
}

pub fn read(array: &dyn Array, selection: &Selection, element: u64) -> Result<Vec<u8>> {
    let mut data = vec![0xA5; (selection.len() * element) as usize];
    array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent)?;
    Ok(data)
}

/// `count` numbers of 4 bytes, from `first` on.
pub fn numbers(first: u32, count: u64) -> Vec<u8> {
    (0..count as u32).flat_map(|i| (first + i).to_ne_bytes()).collect()
}

/// An error unless both are the same.
pub fn same(found: &[u8], wanted: &[u8], what: &str) -> Result<(), Failed> {
    match found.iter().zip(wanted).position(|(a, b)| a != b) {
        None if found.len() == wanted.len() => Ok(()),
        at => Err(format!("{what}: wrong data, first at byte {at:?} of {}", wanted.len()).into()),
    }
}
