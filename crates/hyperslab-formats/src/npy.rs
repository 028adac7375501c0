//! Arrays as numpy keeps them: `.npy` files.
//!
//! A container is a directory. Each array is a file in it, each group above an array a directory; attributes are in
//! `attributes.json`. Directories that others filled with `.npy` files are read as well, and so is a single file:
//! its one array has the file's name. Files are those of numpy's version 1.0, little-endian or big-endian as the array says, in
//! row-major order, their elements at a multiple of 64 bytes.
//!
//! Every write reaches the operating system before it returns, so it is visible to other ranks and programs immediately;
//! [`Durability::Durable`](hyperslab_core::Durability::Durable) syncs. Ranks may write different elements of one array
//! concurrently, without locks. Arrays neither grow nor have fields, chunks, filters or fill values; what was never written reads
//! as zeros. Memory is bounded by two buffers for each container.

mod array;
mod attributes;
mod container;
mod directory;
mod header;
mod shared;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use crate::posix::options::{BUFFER_SPEC, buffer};
use crate::{Advice, FormatEntry, ProgramWords};
use container::NpyContainer;
use hyperslab_core::storage::StorageRules;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, ErrorKind, Execution, FilterSet, Format, MAX_RANK, OpenMode,
    Result, TransferCost, agree,
};
use shared::Shared;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name in stack strings and errors.
const NAME: &str = "npy";

/// Registry entry.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "npy",
    about: "a directory of numpy's .npy files, one for each array",
    options: &[BUFFER_SPEC],
    build: Some(|element| Ok(Arc::new(Npy { buffer: buffer(element)? }))),
    extensions: &["npys"],
    recognises: Some(|found| found.bytes.starts_with(header::MAGIC) || directory::is_container(&found.path)),
    storage: Some(|_| Ok(StorageRules::Raw)),
    // Byte ranges are moved by the code of `posix`.
    cost: Some(|element| Ok(TransferCost::RawFile { buffer: buffer(element)? as u64 })),
    advice: Advice {
        remarks: |_| vec!["arrays in .npy files can neither grow nor be compressed"],
        settings: |_, _| {
            let words =
                "numpy:        array = numpy.lib.format.open_memmap(file, \"w+\", dtype, shape)     (a file for each)";
            ProgramWords { libraries: vec![words.to_owned()], ..ProgramWords::default() }
        },
        ..Advice::NONE
    },
    ..FormatEntry::NONE
};

/// The format, with the bytes of a staging buffer.
#[derive(Debug, Clone, Copy)]
struct Npy {
    buffer: usize,
}

/// Makes or checks what is at `path`. On rank 0. Returns whether it is a single file.
fn prepare(path: &Path, how: OpenMode) -> Result<bool> {
    match how {
        OpenMode::Read | OpenMode::Update => directory::check(path),
        OpenMode::Create => directory::make(path).map(|()| false),
        OpenMode::Truncate => {
            if directory::exists(path)? {
                directory::remove(path)?;
            }
            directory::make(path).map(|()| false)
        }
    }
}

impl Format for Npy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                attributes: true,
                max_rank: MAX_RANK,
                ..DataModel::default()
            },
            execution: Execution { concurrent_writers: true, many_processes: true, ..Execution::default() },
            filters: FilterSet::NONE,
        }
    }

    fn extension(&self) -> &'static str {
        "npys"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let locate = |error: Error| error.backend(NAME).target(path.display());
        let prepared = if comm.rank() == 0 { prepare(path, how) } else { Ok(false) };
        let mut single = vec![u8::from(agree(&**comm, prepared.map_err(locate))?)];
        comm.broadcast(0, &mut single)?;
        let shared = Shared::new(path, single == [1], comm, how != OpenMode::Read, self.buffer);
        Ok(Arc::new(NpyContainer { shared: Arc::new(shared) }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        directory::exists(path).map_err(|error| error.backend(NAME))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        directory::remove(path).map_err(|error| error.backend(NAME).target(path.display()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let list = || match directory::check(path)? {
            true => Ok(vec![path.into()]),
            false => directory::contents(path).map(|found| found.files),
        };
        list().map_err(|error: Error| error.backend(NAME).target(path.display()))
    }
}

/// An error about what a file holds.
fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read header", message.into())
}
