//! The HDF5 data plane: elements between memory and a file whose layout is known.
//!
//! A [`DirectDataset`] moves the elements of one array by positioned I/O and codes its chunks on several threads. The library
//! that owns the file's metadata stays in charge of it: the plane asks it where chunks lie and hands it new ones, through
//! the trait [`MetadataBackend`], from the calling thread only. What the plane does not cover it refuses ([`FallbackReason`]), and the
//! library does it, inside [`DirectDataset::with_library`]. It knows nothing of who that library is, nor of formats and connectors.
//!
//! Memory: decoded chunks up to [`Limits::cache`] (changed ones wait there until they are stored), one chunk decoded and
//! two coded for every thread of a call, and 32 bytes for every chunk of an array (of arrays with more than a million
//! chunks only for those that exist).

mod cache;
mod chunk_index;
mod chunk_locks;
mod coalesce;
mod contiguous;
mod convert;
mod direct_dataset;
mod explain;
mod fallback;
mod file;
mod filtered_chunks;
mod memory;
mod metadata_backend;
mod raw_io;
mod staging_buffer;
mod unfiltered_chunks;
mod workers;
mod write_guard;

pub use convert::Conversion;
pub use direct_dataset::{CACHE_BYTES, DatasetInfo, DirectDataset, Layout, Limits, WriteEffect};
pub use explain::Explanation;
pub use fallback::FallbackReason;
pub use hyperslab_filters::FilterSpec;
pub use metadata_backend::{ChunkAddress, MetadataBackend};
pub use staging_buffer::StagingBuffer;
pub use workers::reset_after_fork;
pub use write_guard::WriteGuard;
