//! Containers of `posix`, with elements transferred by MPI-IO.
//!
//! Directories, metadata, names and attributes are those of [`posix`](crate::posix) with one data file per array, so
//! either format reads what the other wrote. Independent transfers use a file handle of the rank alone; collective ones
//! a handle that all ranks opened together, and ranks without elements take part in the call. By default one call
//! carries a file view that describes the whole selection.
//!
//! Writes are visible to other ranks and programs when they return, as far as the file system is coherent, which local
//! ones are; [`Durability::Durable`](hyperslab_core::Durability::Durable) calls `MPI_File_sync`. Ranks must be
//! processes of an MPI job, or one rank alone in a process where MPI runs. A container should be closed by all ranks: a
//! rank that drops it while there are others can only give its data files back when MPI ends.

mod data_file;
mod errors;
mod filetype;
mod handle;
mod library;
mod memory_side;
mod options;
mod requests;

use crate::FormatEntry;
use crate::posix::{self, directory};
use data_file::MpiContext;
use hyperslab_core::{Caps, Communicator, Container, Error, Format, OpenMode, Result, StackElement, agree};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use library::library_version;

/// Registry entry.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "mpiio",
    about: "the files of posix, through MPI-IO",
    options: options::SPECS,
    build: Some(build),
    how_to_build: "build it with cargo xtask build --mpi",
    interfaces: &["MPIIO"],
    ..FormatEntry::NONE
};

fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Mpiio { options: Options::parse(element)? }))
}

/// Raw files by MPI-IO.
#[derive(Debug, Clone)]
pub struct Mpiio {
    options: Options,
}

impl Format for Mpiio {
    fn name(&self) -> &'static str {
        "mpiio"
    }

    fn caps(&self) -> Caps {
        let mut caps = posix::caps(&self.options.container);
        caps.execution.collective = true;
        caps
    }

    fn extension(&self) -> &'static str {
        "posix"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let located = |error: Error| error.backend("mpiio").target(path.display());
        let job = agree(&**comm, MpiContext::new(comm, &self.options).map_err(located))?;
        posix::open_with_backend((path, how), comm, self.options.container, "mpiio", Arc::new(job))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        posix::exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        directory::remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        directory::files(path)
    }
}
