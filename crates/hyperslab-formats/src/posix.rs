//! Raw files: each array is its elements in row-major order and a small JSON description beside them.
//!
//! A container is a directory; `docs/posix-format.md` describes what is in it. Every write goes to the operating system
//! before it returns, so it is visible to other ranks and programs at once; [`Durability::Durable`] syncs. Ranks write
//! different elements of one array at once without locks; only writes of some fields of a compound lock the range they
//! change. Memory is bounded by two staging buffers per container, plus, with a file per rank, the indices read.
//!
//! [`Durability::Durable`]: hyperslab_core::Durability::Durable

mod array;
pub(crate) mod byte_order;
mod clock;
mod container;
pub(crate) mod data_file;
pub(crate) mod description;
pub(crate) mod directory;
#[doc(hidden)]
pub mod fuzzing;
mod home;
pub(crate) mod mover;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod placement;
mod range_lock;
pub(crate) mod rank_files;
mod rank_index;
mod ring;
pub(crate) mod staging;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
pub(crate) mod transfer;

use crate::FormatEntry;
use container::PosixContainer;
use description::{GroupDescription, Of};
use home::Home;
use hyperslab_core::{
    Caps, Communicator, Container, Error, FilterSet, Format, MAX_RANK, OpenMode, Result, StackElement,
};
#[cfg(feature = "mpi")]
use mover::Mover;
use options::{Files, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The registry's line.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "posix",
    about: "raw files in a directory, with JSON descriptions",
    options: options::SPECS,
    build: Some(build),
};

fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Posix { options: Options::parse(element)? }))
}

/// The format of raw files.
#[derive(Debug, Clone, Copy)]
pub struct Posix {
    options: Options,
}

/// Makes the directory and its mark. On rank 0.
fn make(path: &Path, home: &Home) -> Result<()> {
    let fail = |cause| Error::io("create", cause).backend("posix").target(path.display());
    std::fs::create_dir(path).map_err(fail)?;
    let mark = path.join(names::MARK);
    description::store(&mark, &GroupDescription::new(Of::Container)).inspect_err(|_| {
        // Empty, as far as this program knows; if not, it stays.
        let _ = std::fs::remove_dir(path);
    })?;
    home.note_files([mark]);
    home.note_directory(path.into());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    home.note_directory(parent.into());
    Ok(())
}

/// Opens a container whose elements are moved by `mover`, called `backend` in errors. Collective.
#[cfg(feature = "mpi")]
pub(crate) fn open_moved(
    (path, how): (&Path, OpenMode),
    comm: &Arc<dyn Communicator>,
    options: Options,
    backend: &'static str,
    mover: Arc<dyn Mover>,
) -> Result<Arc<dyn Container>> {
    let home = Home::new(path.into(), comm, options, how != OpenMode::Read).moved_by(backend, mover);
    open_container(path, how, home)
}

fn open_container(path: &Path, how: OpenMode, home: Home) -> Result<Arc<dyn Container>> {
    let prepare = || match how {
        OpenMode::Read | OpenMode::Update => directory::check_container(path).map(drop),
        OpenMode::Create => make(path, &home),
        OpenMode::Truncate => {
            if exists(path)? {
                directory::remove(path)?;
            }
            make(path, &home)
        }
    };
    home.on_root(|| prepare().map_err(|error| error.backend(home.backend).target(path.display())))?;
    Ok(Arc::new(PosixContainer { home: Arc::new(home) }))
}

/// Whether anything is at `path`.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(Error::io("look up", cause).backend("posix").target(path.display())),
    }
}

/// What containers with these options can do, whoever moves their elements.
pub(crate) fn caps(options: &Options) -> Caps {
    Caps {
        readable: true,
        persistent: true,
        resize: true,
        shared_growth: false,
        chunks: false,
        compound: true,
        partial_fields: options.files == Files::Shared,
        fill_value: true,
        attributes: true,
        groups: true,
        concurrent_writers: true,
        serialises_ranks: false,
        collective: false,
        many_processes: true,
        prefetch: false,
        relocates_chunks: false,
        filters: FilterSet::NONE,
        max_rank: MAX_RANK,
    }
}

impl Format for Posix {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn caps(&self) -> Caps {
        caps(&self.options)
    }

    fn extension(&self) -> &'static str {
        "posix"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        open_container(path, how, Home::new(path.into(), comm, self.options, how != OpenMode::Read))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        directory::remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        directory::files(path)
    }
}
