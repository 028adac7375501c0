//! The seam for moving the elements of shared data files by other means than system calls. Directories, descriptions
//! and the lengths of files stay with this module, so that the containers are the same whoever moves the elements.

use super::staging::Staging;
use hyperslab_core::{Datatype, MemoryView, MemoryViewMut, Result, Selection, TransferMode};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Opens data files of arrays in the shared form.
pub(crate) trait Mover: Debug + Send + Sync {
    /// Opens a file that exists. Collective; succeeds or fails on all ranks alike.
    fn open(&self, path: &Path, writable: bool, staging: &Arc<Staging>) -> Result<Box<dyn MovedFile>>;
}

/// Which elements of which array a transfer is about.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only MPI-IO moves elements"))]
pub(crate) struct Elements<'a> {
    pub selection: &'a Selection,
    pub shape: &'a [u64],
    pub dtype: &'a Datatype,
}

/// An open data file. Dropping it releases what can be released without the other ranks.
pub(crate) trait MovedFile: Debug + Send + Sync {
    /// Writes the elements, or those of their fields that memory has. `wanted` is an error if this rank's request is
    /// refused, so that the others of a collective transfer hear of it.
    fn write(&self, wanted: Result<Elements<'_>>, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()>;
    /// Reads the elements; `wanted` as in [`MovedFile::write`].
    fn read(&self, wanted: Result<Elements<'_>>, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()>;
    /// Writes bytes at an offset, without the other ranks.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;
    /// Makes what was written survive loss of power. Collective.
    fn sync(&self) -> Result<()>;
    /// Whether this rank took part in writing since the last [`MovedFile::sync`].
    fn is_dirty(&self) -> bool;
    /// Closes the file. Collective.
    fn close(&self) -> Result<()>;
}
