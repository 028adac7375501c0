//! The oracle: arrays as maps from coordinates to elements. Nothing here is clever, so that it can be trusted.
//!
//! Every loop runs over single coordinates; none of the run, chunk and copy code that real formats share is used.
//! Containers live until they are removed and are shared by path within the process.

mod array;
mod container;
pub(crate) mod coordinates;
pub(crate) mod elements;
mod store;

use container::MemoryContainer;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, ErrorKind, Execution, Format, MAX_RANK, OpenMode, Result, agree,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use store::Store;

/// Keeps containers in plain memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

static STORES: Mutex<BTreeMap<PathBuf, Arc<Mutex<Store>>>> = Mutex::new(BTreeMap::new());

impl Memory {
    /// What changes on the first rank when a container is opened.
    fn prepare(path: &Path, how: OpenMode) -> Result<()> {
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        match how {
            OpenMode::Read | OpenMode::Update => match stores.contains_key(path) {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::NotFound, "open", "there is no such container")),
            },
            OpenMode::Create if stores.contains_key(path) => {
                Err(Error::new(ErrorKind::AlreadyExists, "open", "the container exists already"))
            }
            OpenMode::Create | OpenMode::Truncate => {
                stores.insert(path.into(), Arc::default());
                Ok(())
            }
        }
        .map_err(|error| error.backend("memory").target(path.display()))
    }

    fn find(path: &Path) -> Result<Arc<Mutex<Store>>> {
        let stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.get(path).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "open", "there is no such container")
                .backend("memory")
                .target(path.display())
        })
    }
}

impl Format for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                resize: true,
                chunks: true,
                compound: true,
                partial_fields: true,
                fill_value: true,
                attributes: true,
                groups: true,
                max_rank: MAX_RANK,
                ..DataModel::default()
            },
            execution: Execution { concurrent_writers: true, serialises_ranks: true, ..Execution::default() },
            ..Caps::default()
        }
    }

    fn extension(&self) -> &'static str {
        ""
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let prepared = if comm.rank() == 0 { Self::prepare(path, how) } else { Ok(()) };
        agree(&**comm, prepared)?;
        let store = agree(&**comm, Self::find(path))?;
        Ok(Arc::new(MemoryContainer::new(store, how != OpenMode::Read, comm.clone())))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(Self::find(path).is_ok())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Self::find(path)?;
        STORES.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        Ok(())
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Self::find(path).map(|_| Vec::new())
    }
}
