//! What a layer keeps in memory of what was read.

use hyperslab_core::Selection;
use std::collections::{HashMap, HashSet};

/// Requests that were read before, by number of the array. Only a request that is asked for again as it was is found:
/// others may be, but that depends on blocks that the layer chooses.
#[derive(Debug, Default)]
pub(super) struct ReadCache {
    by_array: HashMap<usize, HashSet<Selection>>,
    bytes: u64,
}

impl ReadCache {
    /// Whether a request comes from memory; if not, it is there from now on, as long as there is room.
    pub(super) fn has(&mut self, array: usize, selection: &Selection, bytes: u64, room: u64) -> bool {
        let known = self.by_array.entry(array).or_default();
        if known.contains(selection) {
            return true;
        }
        if self.bytes.saturating_add(bytes) <= room {
            self.bytes += bytes;
            known.insert(selection.clone());
        }
        false
    }

    /// What is written is forgotten.
    pub(super) fn forget(&mut self, array: usize) {
        self.by_array.remove(&array);
    }
}
