//! Cache of large dataspace unions: building one can cost more than its transfer, and programs write variable after
//! variable with the same decomposition.

use super::dataspace;
use super::library::Id;
use hyperslab_core::{Dims, Result, Selection};
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum number of slabs of a cached union.
const WORTH: usize = 64;
/// Maximum number of slabs over all cached unions.
const MAX_SLABS: usize = 1 << 19;

/// LRU cache of the unions used by the arrays of one container.
#[derive(Debug, Default)]
pub(super) struct DataspaceCache(Mutex<Vec<CachedSpace>>);

#[derive(Debug)]
struct CachedSpace {
    shape: Dims,
    selection: Selection,
    space: Arc<Id>,
}

impl DataspaceCache {
    /// Like [`dataspace::select`], but equal large unions are built once. The result must not be changed.
    pub(super) fn select(&self, space: Arc<Id>, shape: &[u64], selection: &Selection) -> Result<Arc<Id>> {
        let size = selection.slabs().len();
        if !(WORTH..=MAX_SLABS).contains(&size) {
            return dataspace::select(space, shape, selection);
        }
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = cached.iter().position(|k| k.shape.as_slice() == shape && k.selection == *selection) {
            let found = cached.remove(at);
            let space = found.space.clone();
            cached.push(found); // the latest comes last
            return Ok(space);
        }
        let space = dataspace::select(space, shape, selection)?;
        while !cached.is_empty() && size + cached.iter().map(|k| k.selection.slabs().len()).sum::<usize>() > MAX_SLABS {
            cached.remove(0);
        }
        cached.push(CachedSpace { shape: shape.into(), selection: selection.clone(), space: space.clone() });
        Ok(space)
    }

    /// Empties the cache.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
