//! Total order of the writes of all ranks.

use hyperslab_core::{Communicator, Reduce, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A hybrid logical clock: stamps are nanoseconds of the system clock, but always greater than every stamp this rank
/// has issued, has read from an index, or has received from other ranks in a collective call.
#[derive(Debug, Default)]
pub(crate) struct WriteClock(AtomicU64);

impl WriteClock {
    /// A stamp greater than all observed ones.
    pub fn stamp(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }

    /// Makes later stamps greater than this one.
    pub fn observe(&self, stamp: u64) {
        self.0.fetch_max(stamp, Ordering::AcqRel);
    }

    /// Makes later stamps of every rank greater than all stamps so far. Collective.
    pub fn agree(&self, comm: &dyn Communicator) -> Result<()> {
        let mut latest = [self.0.load(Ordering::Acquire)];
        comm.all_reduce(&mut latest, Reduce::Max)?;
        self.observe(latest[0]);
        Ok(())
    }
}
