//! The state shared by all handles of an array on one rank.

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

/// The state.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Specification; unknown until it is opened.
    pub spec: Option<Arc<ArraySpec>>,
    /// Index updates read from storage before the array was opened.
    unread: Vec<IndexUpdate>,
    pub index: Index,
    pub log: ArrayVolumes,
    /// Whether the index was checked against the specification.
    checked: bool,
    /// Number of open handles.
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
    /// Whether elements are, or could be, in the log.
    pub fn has_log(&self) -> bool {
        !self.log.volumes.is_empty() || !self.index.is_empty() || !self.unread.is_empty()
    }

    /// Whether the stored index has entries.
    pub fn has_stored(&self) -> bool {
        self.index.has_stored() || self.unread.iter().any(|said| !said.entries.is_empty())
    }

    /// Applies an index update of a rank.
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

    /// Sets the specification, and checks the index against it. The volumes must be open.
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

    /// Adds a write of this rank to the index.
    pub fn push(&mut self, entry: Entry) {
        if let Some(spec) = &self.spec {
            self.index.push(entry, &spec.shape);
        }
    }
}
