//! What all containers of a process share, when the process forks.
//!
//! Whoever forks calls [`hold`] before it and [`Held::begin_anew`] in the child, which then finds no lock taken by a thread that it
//! does not have.

use crate::{auto, share};

/// Locks of what outlives containers. Dropped in the parent.
#[must_use]
pub struct Held {
    records: auto::HeldRecords,
    _shared: share::HeldThings,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

/// Keeps other threads from what outlives containers, until the result is dropped.
pub fn hold() -> Held {
    Held { records: auto::hold_records(), _shared: share::hold_things() }
}

impl Held {
    /// In the child: nothing is left that a thread of the parent may have been changing.
    pub fn begin_anew(mut self) {
        self.records.clear();
    }
}
