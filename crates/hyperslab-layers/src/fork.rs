//! Fork safety of process-wide state.
//!
//! A fork handler calls [`lock`] before the fork and [`ForkGuard::reset_in_child`] in the child, so that no lock is held by
//! a thread that exists only in the parent.

use crate::{auto, rank_shared};

/// Locks of all process-wide state. Dropped in the parent after the fork.
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

/// Locks the process-wide state until the result is dropped.
pub fn lock() -> ForkGuard {
    ForkGuard { records: auto::lock_histories(), _shared: rank_shared::lock_shared_values() }
}

impl ForkGuard {
    /// In the child: resets state that another thread of the parent may have been changing.
    pub fn reset_in_child(mut self) {
        self.records.clear();
    }
}
