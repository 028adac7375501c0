//! Raw files: each array is a file of its elements in row-major order, and a JSON file of metadata.
//!
//! A container is a directory, specified in `docs/posix-format.md`. Every write reaches the operating system before it
//! returns, so it is visible to other ranks and programs immediately; [`Durability::Durable`] syncs. Ranks may write
//! different elements of one array concurrently, without locks; only writes of some fields of a compound lock the byte
//! range they change. Memory is bounded by two buffers per container, plus, with one file per rank, the indices read.
//!
//! [`Durability::Durable`]: hyperslab_core::Durability::Durable

mod array;
pub(crate) mod buffer_pool;
pub(crate) mod byte_order;
mod container;
mod container_state;
pub(crate) mod data_backend;
pub(crate) mod data_file;
pub(crate) mod directory;
#[doc(hidden)]
pub mod fuzz_api;
mod io_uring;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod placement;
mod range_lock;
pub(crate) mod rank_files;
mod rank_index;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
pub(crate) mod transfer;
mod write_order;

use crate::{Advice, FormatEntry};
use container::PosixContainer;
use container_state::ContainerState;
#[cfg(feature = "mpi")]
use data_backend::DataBackend;
use hyperslab_core::storage::StorageRules;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, Execution, FilterSet, Format, MAX_RANK, OpenMode, Result,
    StackElement, TransferCost,
};
use metadata::{GroupMetadata, Of};
use options::{Files, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Registry entry.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "posix",
    about: "raw files in a directory, with JSON descriptions",
    options: options::SPECS,
    build: Some(build),
    extensions: &["posix"],
    recognises: Some(|container| container.holds(names::MARK)),
    describing: &["files"],
    interfaces: &["POSIX"],
    storage: Some(|_| Ok(StorageRules::Raw)),
    cost: Some(|element| Ok(TransferCost::RawFile { buffer: element.size_or_default(&options::BUFFER_SPEC)? })),
    advice: Advice { remarks: |_| vec!["raw files are read by this program only"], ..Advice::NONE },
    ..FormatEntry::NONE
};

fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Posix { options: Options::parse(element)? }))
}

/// The format of raw files.
#[derive(Debug, Clone, Copy)]
pub struct Posix {
    options: Options,
}

/// Creates the container's directory and metadata. Rank 0 only.
fn make(path: &Path, container: &ContainerState) -> Result<()> {
    let fail = |cause| Error::io("create", cause).backend("posix").target(path.display());
    std::fs::create_dir(path).map_err(fail)?;
    let mark = path.join(names::MARK);
    metadata::store(&mark, &GroupMetadata::new(Of::Container)).inspect_err(|_| {
        // Empty, as far as this program knows; if not, it stays.
        let _ = std::fs::remove_dir(path);
    })?;
    container.note_files([mark]);
    container.note_directory(path.into());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    container.note_directory(parent.into());
    Ok(())
}

/// Opens a container whose elements are transferred by `data_backend`; `backend` names it in errors. Collective.
#[cfg(feature = "mpi")]
pub(crate) fn open_with_backend(
    (path, how): (&Path, OpenMode),
    comm: &Arc<dyn Communicator>,
    options: Options,
    backend: &'static str,
    data_backend: Arc<dyn DataBackend>,
) -> Result<Arc<dyn Container>> {
    let container =
        ContainerState::new(path.into(), comm, options, how != OpenMode::Read).with_backend(backend, data_backend);
    open_container(path, how, container)
}

fn open_container(path: &Path, how: OpenMode, container: ContainerState) -> Result<Arc<dyn Container>> {
    let prepare = || match how {
        OpenMode::Read | OpenMode::Update => directory::check_container(path).map(drop),
        OpenMode::Create => make(path, &container),
        OpenMode::Truncate => {
            if exists(path)? {
                directory::remove(path)?;
            }
            make(path, &container)
        }
    };
    container.on_root(|| prepare().map_err(|error| error.backend(container.backend).target(path.display())))?;
    Ok(Arc::new(PosixContainer { container: Arc::new(container) }))
}

/// Whether `path` exists, whatever it is.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(Error::io("look up", cause).backend("posix").target(path.display())),
    }
}

/// Capabilities of containers with these options, whatever the data backend.
pub(crate) fn caps(options: &Options) -> Caps {
    Caps {
        data: DataModel {
            readable: true,
            persistent: true,
            resize: true,
            shared_growth: false,
            chunks: false,
            compound: true,
            strings: false,
            partial_fields: options.files == Files::Shared,
            fill_value: true,
            attributes: true,
            groups: true,
            dimension_names: false,
            max_rank: MAX_RANK,
        },
        execution: Execution {
            concurrent_writers: true,
            serialises_ranks: false,
            collective: false,
            many_processes: true,
            prefetch: false,
            relocates_chunks: false,
        },
        filters: FilterSet::NONE,
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
        open_container(path, how, ContainerState::new(path.into(), comm, self.options, how != OpenMode::Read))
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
