//! Tracks directory changes that are not durable.

use super::storage::JournalStorage;
use std::io::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of changes, and of durable ones.
#[derive(Debug, Default)]
pub(super) struct DirSync {
    changes: AtomicU64,
    durable: AtomicU64,
}

impl DirSync {
    /// Notes that a file was created, renamed or removed.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether there are changes that are not durable.
    pub fn are_new(&self) -> bool {
        self.durable.load(Ordering::Acquire) < self.changes.load(Ordering::Acquire)
    }

    /// Makes all changes durable.
    pub fn sync(&self, files: &dyn JournalStorage) -> Result<()> {
        let reached = self.changes.load(Ordering::Acquire);
        files.sync_directory()?;
        self.durable.fetch_max(reached, Ordering::AcqRel);
        Ok(())
    }
}
