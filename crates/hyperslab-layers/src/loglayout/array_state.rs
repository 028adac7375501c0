//! What all handles of an array share, on one rank.

use super::entry::{DataLocation, Entry, IndexUpdate};
use super::index::Index;
use super::volumes::ArrayVolumes;
use hyperslab_core::{ArraySpec, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An array by name.
#[derive(Debug)]
pub(super) struct ArrayState {
    pub name: String,
    state: Mutex<State>,
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What the array is; unknown until it is opened.
    pub spec: Option<Arc<ArraySpec>>,
    /// Given by the stored index of an array that was not opened yet.
    unread: Vec<IndexUpdate>,
    pub index: Index,
    pub log: ArrayVolumes,
    /// The index was checked against the array.
    checked: bool,
    /// Handles that are open.
    pub handles: usize,
}

impl ArrayState {
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), state: Mutex::default() })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether anything of the array is, or could be, elsewhere than in the array.
    pub fn has_log(&self) -> bool {
        !self.log.volumes.is_empty() || !self.index.is_empty() || !self.unread.is_empty()
    }

    /// Whether the stored index names any element.
    pub fn has_stored(&self) -> bool {
        self.index.has_stored() || self.unread.iter().any(|said| !said.entries.is_empty())
    }

    /// What a rank said at a flush.
    pub fn store(&mut self, said: IndexUpdate) {
        match self.spec.clone() {
            None => self.unread.push(said),
            Some(spec) => {
                if said.cleared {
                    self.forget_places(&spec);
                }
                self.index.store(said, &spec.shape);
            }
        }
    }

    fn forget_places(&mut self, spec: &ArraySpec) {
        self.log.forget(self.index.entries(), |entry| entry.selection.len() * entry.stride(&spec.dtype));
    }

    /// The array is known. Refuses what the index cannot say of it. Its volumes are open.
    pub fn set_spec(&mut self, spec: ArraySpec, rank: u64, ranks: u64) -> Result<()> {
        if self.checked && self.unread.is_empty() && self.spec.as_deref() == Some(&spec) {
            return Ok(());
        }
        let spec = Arc::new(spec);
        self.checked = false;
        self.spec = Some(spec.clone());
        for said in std::mem::take(&mut self.unread) {
            self.store(said);
        }
        let mut placed = Vec::new();
        for entry in self.index.entries() {
            entry.check(&spec.dtype, &spec.shape)?;
            if let DataLocation::Log { volume, offset } = entry.place {
                placed.push((volume, offset, entry.selection.len().saturating_mul(entry.stride(&spec.dtype))));
            }
        }
        self.index.reshape(&spec.shape);
        self.log.find_room(&placed, rank, ranks)?;
        self.checked = true;
        Ok(())
    }

    /// Adds a write of this rank.
    pub fn push(&mut self, entry: Entry) {
        if let Some(spec) = &self.spec {
            self.index.push(entry, &spec.shape);
        }
    }
}
