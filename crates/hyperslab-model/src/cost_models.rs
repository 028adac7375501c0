//! The way of elements between memory and files, format by format: what each transfer makes the format do.

mod chunk_cache;
mod coalescing;
mod device;
mod direct_filtered;
mod direct_index;
mod direct_raw;
mod hdf5_chunks;
mod hdf5_contiguous;
mod literature_model;
mod lru;
mod posix;
mod sieve;
mod zarr;

use crate::configuration::{Configuration, Counting, Mechanism};
use crate::counts::Counts;
use hyperslab_core::storage::StoredLayout;
use hyperslab_core::{ArraySpec, ChunkGrid, Dims, Result, Selection};
use std::fmt::Debug;

/// A transfer as the format sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) writes: bool,
    /// Every byte of the elements is transferred.
    pub(crate) whole: bool,
    /// Bytes of memory that lie together; `None` if all do.
    pub(crate) memory_run: Option<u64>,
}

/// An open array, with what the format remembers of it between transfers.
pub(crate) trait CostModel: Debug {
    /// Counts a transfer.
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()>;
    /// Counts what a flush stores.
    fn flush(&mut self, counts: &mut Counts);
    /// Counts what is stored when the last handle is closed, and forgets what is not kept.
    fn close(&mut self, counts: &mut Counts);
    /// Takes on another shape.
    fn resize(&mut self, shape: &[u64], counts: &mut Counts) -> Result<()>;
}

/// The way of an array's elements. `made` says that the workload makes it; otherwise everything is there.
pub(crate) fn path(configuration: &Configuration, spec: &ArraySpec, made: bool) -> Result<Box<dyn CostModel>> {
    let storage = configuration.storage(spec)?;
    if configuration.counting != Counting::Real {
        return Ok(Box::new(literature_model::LiteratureModel::new(configuration, &storage, spec, made)?));
    }
    let (shape, element, codecs) = (spec.shape.as_slice(), spec.dtype.size(), storage.codecs);
    let one_piece = matches!(storage.layout, StoredLayout::Contiguous | StoredLayout::Compact);
    Ok(match (&configuration.mechanism, storage.layout) {
        (Mechanism::RawFile { buffer }, _) => Box::new(posix::PosixFile::new(shape, element, *buffer)?),
        (Mechanism::ChunkedFile(library), _) if one_piece && library.cost.direct => {
            Box::new(direct_raw::DirectContiguous::new(shape, element, made)?)
        }
        (Mechanism::ChunkedFile(library), StoredLayout::Contiguous | StoredLayout::Compact) => {
            Box::new(hdf5_contiguous::Hdf5Contiguous::new(shape, element, library.cost.sieve, made)?)
        }
        (Mechanism::ChunkedFile(library), StoredLayout::Chunks(chunk) | StoredLayout::Shards { chunk, .. }) => {
            let made = made && !storage.early;
            if !library.cost.direct {
                Box::new(hdf5_chunks::Hdf5Chunks::new(library, shape, &chunk, element, codecs, made)?)
            } else if codecs.is_empty() {
                Box::new(direct_raw::DirectChunks::new(shape, &chunk, element, made)?)
            } else {
                Box::new(direct_filtered::DirectFiltered::new(library, shape, &chunk, element, codecs, made)?)
            }
        }
        (Mechanism::ChunkFiles { directories, .. }, layout) => {
            let (file, inside) = match layout {
                StoredLayout::Shards { file, chunk } => (file, Some(chunk)),
                StoredLayout::Chunks(chunk) => (chunk, None),
                StoredLayout::Contiguous | StoredLayout::Compact => (Dims::from_slice(shape), None),
            };
            Box::new(zarr::ZarrFiles::new(*directories, shape, &file, inside, element, codecs, made)?)
        }
    })
}

/// An array in one piece, as a grid of one chunk.
pub(crate) fn one_piece(shape: &[u64]) -> Result<ChunkGrid> {
    let extents: Dims = shape.iter().map(|&extent| extent.max(1)).collect();
    ChunkGrid::new(shape, &extents)
}

/// Bytes of memory that are new and in no cache of the processor, of a buffer or a transfer of so many.
pub(crate) fn beyond_caches(bytes: u64) -> u64 {
    bytes.saturating_sub(4 << 20)
}

/// The most bytes that Linux moves in one call.
pub(crate) const MOST_BYTES_OF_A_CALL: u64 = 0x7fff_f000;

/// System calls that `calls` accesses of `bytes` each take.
pub(crate) fn system_calls(calls: u64, bytes: u64) -> u64 {
    calls.saturating_mul(bytes.div_ceil(MOST_BYTES_OF_A_CALL).max(1))
}

/// How many of the nearest rows are looked at one by one; the others are taken to be like them.
pub(crate) const ROWS_LOOKED_AT: u64 = 64;
