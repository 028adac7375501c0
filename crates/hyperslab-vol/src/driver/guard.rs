//! The rollback journal before the direct path's writes.

use crate::accel::settle;
use hyperslab_h5direct::WriteGuard;
use hyperslab_rollback::Rollback;
use std::io;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

/// Write guard of one dataset: saves overwritten bytes to the rollback journal first.
#[derive(Debug)]
pub(crate) struct Guard {
    rollback: Weak<Rollback>,
    process: u32,
    /// Whether the dataset lies where it did at the last commit, and a log has what is written.
    for_good: AtomicBool,
}

impl Guard {
    pub(crate) fn new(rollback: Weak<Rollback>) -> Self {
        Self { rollback, process: std::process::id(), for_good: AtomicBool::new(false) }
    }

    /// Whether writes stay after a rollback.
    pub(crate) fn is_for_good(&self) -> bool {
        self.for_good.load(Ordering::Relaxed)
    }

    /// Exempts further writes from rollback until elements move: all metadata are committed.
    pub(crate) fn stay(&self) {
        self.for_good.store(true, Ordering::Relaxed);
    }
}

impl WriteGuard for Guard {
    fn guarded(&self, at: u64, bytes: u64, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        // The journal is the process's that opened the file.
        let rollback = self.rollback.upgrade().filter(|_| std::process::id() == self.process);
        let Some(rollback) = rollback else { return write() };
        let written = match self.is_for_good() {
            true => rollback.overwrite_for_good(at, bytes, write),
            false => rollback.overwrite(at, bytes, write),
        };
        settle(&rollback);
        written
    }

    fn relocated(&self) {
        self.for_good.store(false, Ordering::Relaxed);
    }
}
