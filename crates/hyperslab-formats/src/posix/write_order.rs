//! In which order ranks wrote.

use hyperslab_core::{Communicator, Reduce, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Stamps that rise: nanoseconds of the system clock, but always above every stamp this rank has given, has seen in an
/// index, or has learnt from the others at a collective call.
#[derive(Debug, Default)]
pub(crate) struct WriteClock(AtomicU64);

impl WriteClock {
    /// A stamp above all seen.
    pub fn stamp(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }

    /// Later stamps will be above this one.
    pub fn observe(&self, stamp: u64) {
        self.0.fetch_max(stamp, Ordering::AcqRel);
    }

    /// Later stamps of every rank will be above all stamps so far. Collective.
    pub fn agree(&self, comm: &dyn Communicator) -> Result<()> {
        let mut latest = [self.0.load(Ordering::Acquire)];
        comm.all_reduce(&mut latest, Reduce::Max)?;
        self.observe(latest[0]);
        Ok(())
    }
}
