//! How many writes went where, on one rank.

use hyperslab_core::units::display_size;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct Counts {
    logged: AtomicU64,
    through: AtomicU64,
    through_bytes: AtomicU64,
    /// Bytes of index that this rank has added.
    index: AtomicU64,
}

impl Counts {
    pub fn logged(&self) {
        self.logged.fetch_add(1, Ordering::Relaxed);
    }

    pub fn through(&self, bytes: u64) {
        self.through.fetch_add(1, Ordering::Relaxed);
        self.through_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn index(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }

    pub fn add_index(&self, bytes: u64) {
        self.index.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What people should know.
    pub fn diagnostic(&self) -> Option<String> {
        let [logged, through, bytes] =
            [&self.logged, &self.through, &self.through_bytes].map(|n| n.load(Ordering::Relaxed));
        (through > 0).then(|| {
            format!(
                "{through} of {} writes, of {} together, went straight to the arrays, since the log had no room for them; \
                 give loglayout more with room",
                logged + through,
                display_size(bytes)
            )
        })
    }
}
