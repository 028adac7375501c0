//! Sync: making a journal durable. Concurrent callers share one sync.

use super::failed;
use super::segment_list::SegmentList;
use hyperslab_core::Result;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, PoisonError};

/// Serialises syncs: a second caller must not return before the first has finished.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    runs: Mutex<bool>,
    ended: Condvar,
}

impl SegmentList {
    /// Makes all earlier appends durable.
    pub fn sync(&self) -> Result<()> {
        self.sync_unless(|| false)
    }

    /// Makes a write durable. Threads that arrive during a sync wait for it; then one of them syncs for all.
    pub fn sync_up_to(&self, sequence: u64) -> Result<()> {
        self.sync_unless(|| self.durable_before() > sequence)
    }

    fn sync_unless(&self, is_enough: impl Fn() -> bool) -> Result<()> {
        let Syncing { runs, ended } = &self.syncing;
        let mut running = runs.lock().unwrap_or_else(PoisonError::into_inner);
        while *running && !is_enough() {
            running = ended.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        if is_enough() {
            return Ok(());
        }
        *running = true;
        drop(running);
        let synced = self.sync_alone();
        *runs.lock().unwrap_or_else(PoisonError::into_inner) = false;
        ended.notify_all();
        synced
    }

    fn sync_alone(&self) -> Result<()> {
        self.check()?;
        let reached = self.appended.load(Ordering::Acquire);
        let handed = self.try_write_out()?;
        if self.pending() > 0 {
            handed.check()?;
        }
        let failed = |cause| {
            // After a failed fsync the kernel may have dropped dirty pages: the journal fails for good.
            let error = failed("sync journal", self.files.place(), cause);
            self.fail(error.copied());
            error
        };
        self.make_ahead();
        // Directory entries first: an append that creates a segment would have to wait for them.
        if self.names.are_new() {
            let names = self.head.sync().and_then(|()| self.names.sync(&*self.files));
            names.map_err(failed)?;
        }
        let segments = self.segments();
        // What is appended meanwhile is not durable yet.
        let last =
            segments.last().map(|last| last.meta.len().map(|len| (last.number, len))).transpose().map_err(failed)?;
        segments.iter().try_for_each(|segment| segment.sync()).map_err(failed)?;
        last.map_or(Ok(()), |(number, len)| self.is_durable(number, len)).map_err(failed)?;
        self.durable_before.fetch_max(reached, Ordering::AcqRel);
        Ok(())
    }

    /// All writes with lower sequence numbers are durable.
    pub fn durable_before(&self) -> u64 {
        self.durable_before.load(Ordering::Acquire)
    }
}
