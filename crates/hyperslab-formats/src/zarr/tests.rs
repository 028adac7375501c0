//! Whole stores, through the traits.
#![allow(clippy::unwrap_used)]

mod hostile;
mod python;
mod ranks;
mod resizing;
mod stores;
mod transfers;

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Container, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use std::path::Path;
use std::sync::Arc;

/// Options that change how chunks are stored; all for two dimensions.
const STACKS: [&str; 7] = [
    "zarr",
    "zarr(version=2)",
    "zarr(version=2,codec=blosc,blosc_codec=zstd,separator=slash)",
    "zarr(codec=gzip,level=1,crc32c=yes,separator=dot)",
    "zarr(codec=zstd,shuffle=yes,threads=3)",
    "zarr(chunk=2x3,shard=8x6,codec=zstd)",
    "zarr(chunk=2x3,shard=4x3,write_empty=yes)",
];

fn format(text: &str) -> Arc<dyn Format> {
    crate::build(&text.parse::<Stack>().unwrap().format).unwrap()
}

fn create(text: &str, path: &Path) -> Arc<dyn Container> {
    format(text).open(path, OpenMode::Create, &Solo::shared()).unwrap()
}

fn open(path: &Path, how: OpenMode) -> Arc<dyn Container> {
    format("zarr").open(path, how, &Solo::shared()).unwrap()
}

fn write(array: &Arc<dyn Array>, selection: &Selection, data: &[u8]) -> Result<()> {
    array.write(selection, MemoryView::packed(data), TransferMode::Independent)
}

fn read(array: &Arc<dyn Array>, selection: &Selection) -> Vec<u8> {
    let spec = array.spec().unwrap();
    let mut data = vec![0xaa; (selection.len() * spec.dtype.size()) as usize];
    array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    data
}

fn read_all(array: &Arc<dyn Array>) -> Vec<u8> {
    read(array, &Selection::all(&array.spec().unwrap().shape).unwrap())
}

/// Bytes that differ from their neighbours and are never 0.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + seed * 7) % 255) as u8 + 1).collect()
}

fn spec(dtype: &str, shape: &[u64], chunk: &[u64]) -> ArraySpec {
    ArraySpec { chunk: Some(chunk.into()), ..ArraySpec::new(dtype.parse().unwrap(), shape) }
}
