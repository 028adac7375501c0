//! Making a journal durable.

use super::failed;
use super::shelf::Shelf;
use hyperslab_core::Result;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Shelf {
    /// Makes everything durable that was appended before. One at a time: a second one must not return before the first has
    /// done its part.
    pub fn sync(&self) -> Result<()> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.sync_alone()
    }

    /// Makes a write durable, unless another thread has meanwhile.
    pub fn sync_up_to(&self, sequence: u64) -> Result<()> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.durable_before() > sequence {
            true => Ok(()),
            false => self.sync_alone(),
        }
    }

    fn sync_alone(&self) -> Result<()> {
        self.check()?;
        let reached = self.appended.load(Ordering::Acquire);
        let handed = self.try_hand_over()?;
        if self.pending() > 0 {
            handed.check()?;
        }
        let failed = |cause| {
            // What the kernel could not write it may have forgotten: nothing is certain any more.
            let error = failed("sync journal", self.files.place(), cause);
            self.fail(error.copied());
            error
        };
        self.segments().iter().try_for_each(|segment| segment.sync()).map_err(failed)?;
        if self.names.are_new() {
            let names = self.head.sync().and_then(|()| self.names.sync(&*self.files));
            names.map_err(failed)?;
        }
        self.durable_before.fetch_max(reached, Ordering::AcqRel);
        Ok(())
    }

    /// Every write before this sequence number is durable.
    pub fn durable_before(&self) -> u64 {
        self.durable_before.load(Ordering::Acquire)
    }
}
