//! What all containers of a process share, when the process forks.
//!
//! Whoever forks calls [`lock`] before and [`ForkGuard::reset_in_child`] in the child, which then finds no lock held by a thread
//! that exists only in the parent.

use crate::{auto, rank_shared};

/// Locks of what outlives containers. Dropped in the parent.
#[must_use]
pub struct ForkGuard {
    records: auto::HistoriesGuard,
    _shared: rank_shared::SharedValuesGuard,
}

impl std::fmt::Debug for ForkGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForkGuard")
    }
}

/// Keeps other threads from what outlives containers, until the result is dropped.
pub fn lock() -> ForkGuard {
    ForkGuard { records: auto::lock_histories(), _shared: rank_shared::lock_shared_values() }
}

impl ForkGuard {
    /// In the child: nothing is left that a thread of the parent may have been changing.
    pub fn reset_in_child(mut self) {
        self.records.clear();
    }
}
