//! Traits for transferring elements of shared data files by other means than system calls, such as MPI-IO. Directories,
//! metadata and file lengths stay with `posix`, so that containers are the same whatever the backend.

use super::buffer_pool::BufferPool;
use hyperslab_core::{Datatype, MemoryView, MemoryViewMut, Result, Selection, TransferMode};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Opens shared data files of arrays.
pub(crate) trait DataBackend: Debug + Send + Sync {
    /// Opens an existing file. Collective; succeeds or fails on all ranks alike.
    fn open(&self, path: &Path, writable: bool, staging: &Arc<BufferPool>) -> Result<Box<dyn BackendFile>>;
}

/// The elements of a transfer.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only MPI-IO moves elements"))]
pub(crate) struct Elements<'a> {
    pub selection: &'a Selection,
    pub shape: &'a [u64],
    pub dtype: &'a Datatype,
}

/// An open data file. Dropping it releases only what needs no other rank; see [`BackendFile::close`].
pub(crate) trait BackendFile: Debug + Send + Sync {
    /// Writes the elements, or the fields that memory supplies. `wanted` is an error if this rank's arguments are
    /// invalid, so that a collective transfer fails on all ranks instead of blocking.
    fn write(&self, wanted: Result<Elements<'_>>, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()>;
    /// Reads the elements; `wanted` as in [`BackendFile::write`].
    fn read(&self, wanted: Result<Elements<'_>>, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()>;
    /// Writes bytes at an offset. Independent.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;
    /// Makes previous writes durable. Collective.
    fn sync(&self) -> Result<()>;
    /// Whether this rank took part in a write since the last [`BackendFile::sync`].
    fn is_dirty(&self) -> bool;
    /// Closes the file. Collective.
    fn close(&self) -> Result<()>;
}
