//! How far a run has come, readable from another thread, and the wish to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counters that ranks raise and a display reads. Approximate while running.
#[derive(Debug, Default)]
pub struct Progress {
    steps: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Steps taken by all ranks.
    pub fn steps(&self) -> u64 {
        self.steps.load(Relaxed)
    }

    /// Bytes transferred by all ranks.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Sets the counters back for the next repetition; a wish to stop stays.
    pub fn restart(&self) {
        self.steps.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// Asks the run to stop at the next step.
    pub fn request_stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether someone asked to stop.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Takes over what other processes have counted.
    #[cfg(feature = "mpi")]
    pub(crate) fn reached(&self, steps: u64, bytes: u64) {
        self.steps.store(steps, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.steps.fetch_add(1, Relaxed);
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }
}
