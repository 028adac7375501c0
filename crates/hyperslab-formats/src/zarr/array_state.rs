//! State of open arrays, shared by all ranks of the process: one layout, replaced on resize.

use super::array_metadata;
use super::chunk_files::ChunkFiles;
use super::layout::ArrayLayout;
use super::locks::ArrayIdentity;
use super::nodes::{self, NodeKind};
use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// An array open in this process.
#[derive(Debug)]
pub struct ArrayState {
    /// Its name in the store.
    pub name: String,
    /// Its identity among all locks.
    pub identity: ArrayIdentity,
    current: RwLock<Current>,
}

/// The current layout of an array.
#[derive(Debug)]
pub struct Current {
    /// Shape, chunks, codecs.
    pub layout: ArrayLayout,
    /// Its files.
    pub chunks: ChunkFiles,
    /// Whether files certainly hold only fill values beyond the shape, so that growing need not check them.
    pub clean_beyond: bool,
}

impl ArrayState {
    /// Read lock, held during transfers.
    pub fn reading(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Write lock, held during a resize.
    pub fn changing(&self) -> RwLockWriteGuard<'_, Current> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }
}

type Arrays = Mutex<HashMap<String, Weak<ArrayState>>>;
type Stores = Mutex<HashMap<PathBuf, Weak<StoreState>>>;

/// A store open in this process, with its open arrays.
#[derive(Debug)]
pub struct StoreState {
    root: PathBuf,
    arrays: Arrays,
}

fn stores() -> &'static Stores {
    static STORES: OnceLock<Stores> = OnceLock::new();
    STORES.get_or_init(Stores::default)
}

impl StoreState {
    /// Finds or creates the state of the store at a canonical path.
    pub fn of(root: &Path) -> Arc<Self> {
        let mut stores = stores().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = stores.get(root).and_then(Weak::upgrade) {
            return state;
        }
        stores.retain(|_, state| state.strong_count() > 0);
        let state = Arc::new(Self { root: root.to_owned(), arrays: Arrays::default() });
        stores.insert(root.to_owned(), Arc::downgrade(&state));
        state
    }

    /// Drops the state of a store that was removed or replaced.
    pub fn forget(root: &Path) {
        stores().lock().unwrap_or_else(PoisonError::into_inner).remove(root);
    }

    /// Reads an array's metadata and returns its shared state. `clean_beyond` as in [`Current::clean_beyond`].
    pub fn array(&self, name: &str, clean_beyond: bool) -> Result<Arc<ArrayState>> {
        let directory = nodes::directory(&self.root, name);
        let layout = read_layout(&directory)?;
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = arrays.get(name).and_then(Weak::upgrade) {
            // Another program may have changed it since it was first opened here.
            if state.reading().layout != layout {
                let chunks = ChunkFiles::new(directory, &layout)?;
                *state.changing() = Current { layout, chunks, clean_beyond };
            }
            return Ok(state);
        }
        arrays.retain(|_, state| state.strong_count() > 0);
        let chunks = ChunkFiles::new(directory, &layout)?;
        let state = Arc::new(ArrayState {
            name: name.to_owned(),
            identity: ArrayIdentity::new(&self.root, name),
            current: RwLock::new(Current { layout, chunks, clean_beyond }),
        });
        arrays.insert(name.to_owned(), Arc::downgrade(&state));
        Ok(state)
    }
}

fn read_layout(directory: &Path) -> Result<ArrayLayout> {
    match nodes::read(directory)? {
        Some(node) if node.kind == NodeKind::Array => {
            array_metadata::read(node.version, &node.document, &node.attributes)
        }
        Some(_) => Err(Error::new(ErrorKind::NotFound, "open array", "this is a group, not an array")),
        None => Err(Error::new(ErrorKind::NotFound, "open array", "there is no such array")),
    }
}
