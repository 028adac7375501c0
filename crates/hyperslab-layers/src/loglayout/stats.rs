//! Statistics of writes on one rank.

use hyperslab_core::units::display_size;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct LogLayoutStats {
    logged: AtomicU64,
    write_through: AtomicU64,
    through_bytes: AtomicU64,
    /// Index bytes added by this rank.
    index: AtomicU64,
}

impl LogLayoutStats {
    pub fn logged(&self) {
        self.logged.fetch_add(1, Ordering::Relaxed);
    }

    pub fn write_through(&self, bytes: u64) {
        self.write_through.fetch_add(1, Ordering::Relaxed);
        self.through_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn index(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }

    pub fn add_index(&self, bytes: u64) {
        self.index.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The diagnostics.
    pub fn diagnostic(&self) -> Option<String> {
        let [logged, write_through, bytes] =
            [&self.logged, &self.write_through, &self.through_bytes].map(|n| n.load(Ordering::Relaxed));
        (write_through > 0).then(|| {
            format!(
                "{write_through} of {} writes, of {} together, went straight to the arrays, since the log had no room for them; \
                 give loglayout more with room",
                logged + write_through,
                display_size(bytes)
            )
        })
    }
}
