//! Direct reads and writes of HDF5 datasets, bypassing libhdf5.
//!
//! A [`DirectDataset`] transfers the elements of one dataset by positioned I/O, and encodes and decodes its chunks on
//! several threads. The library that owns the file's metadata remains responsible for it: chunk addresses are queried
//! from it, and encoded chunks stored by it, through the trait [`MetadataBackend`], from the calling thread only.
//! Transfers that are not supported here return a [`FallbackReason`]; the caller then lets the library execute them,
//! inside [`DirectDataset::with_library`], which keeps both coherent. This crate depends on neither libhdf5 nor formats
//! nor connectors.
//!
//! Memory: decoded chunks up to [`Limits::cache`] (plus dirty ones until they are written back), one decoded and two
//! encoded chunks for each thread of a call, and 32 bytes for each chunk of a dataset (of datasets with more than a
//! million chunks only for those that exist).

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
mod fs_coherence;
mod late_writes;
mod memory;
mod metadata_backend;
mod piecewise;
mod raw_io;
mod staging_buffer;
mod unfiltered_chunks;
mod workers;
mod write_guard;

pub use convert::Conversion;
pub use direct_dataset::{CACHE_BYTES, DatasetInfo, DirectDataset, Layout, Limits, WriteEffect};
pub use explain::Explanation;
pub use fallback::FallbackReason;
pub use fs_coherence::refuse_incoherent;
pub use hyperslab_filters::FilterSpec;
pub use metadata_backend::{ChunkAddress, MetadataBackend};
pub use staging_buffer::StagingBuffer;
pub use workers::{reset_after_fork, saved_by_workers};
pub use write_guard::WriteGuard;
