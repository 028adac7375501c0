//! When a phase stops: after so many transfers, or after so long, alone or all together.

use hyperslab_core::{Communicator, Reduce, Result};
use std::time::{Duration, Instant};

/// When a rank stops transferring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// After so long.
    pub deadline: Option<Duration>,
    /// After so many transfers.
    pub calls: Option<u64>,
    /// After the deadline all ranks make as many transfers as the one that made most.
    pub wear_out: bool,
    /// Ranks stop at the same transfer, when the first rank says so.
    pub in_step: bool,
}

/// Where the ranks stood when the time was over.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stonewall {
    /// Fewest transfers of a rank.
    pub fewest: u64,
    /// Most transfers of a rank.
    pub most: u64,
    /// Fewest bytes of a rank.
    pub fewest_bytes: u64,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Seconds.
    pub seconds: f64,
}

/// A limit on its way.
#[derive(Debug)]
pub struct Watch {
    limit: Limit,
    begin: Instant,
    /// No more than so many transfers.
    most: u64,
    found: Option<Stonewall>,
}

impl Limit {
    /// Starts the time.
    pub fn start(self) -> Watch {
        Watch { limit: self, begin: Instant::now(), most: self.calls.unwrap_or(u64::MAX), found: None }
    }
}

impl Watch {
    /// The time begins at the first transfer.
    pub fn begin_now(&mut self) {
        self.begin = Instant::now();
    }

    /// Whether a rank that made `calls` transfers makes no more.
    pub fn is_over(&self, calls: u64) -> bool {
        calls >= self.most
    }

    /// When the time began, in seconds after `moment`.
    pub fn began(&self, moment: Instant) -> f64 {
        self.begin.saturating_duration_since(moment).as_secs_f64()
    }

    /// Looks at the time after a transfer. Collective where ranks stop at the same one, and where they wear out.
    pub fn after_transfer(&mut self, comm: &dyn Communicator, calls: u64, bytes: u64) -> Result<()> {
        let Some(deadline) = self.limit.deadline else { return Ok(()) };
        if self.found.is_some() || self.is_over(calls) {
            return Ok(());
        }
        let mut late = self.begin.elapsed() >= deadline;
        if self.limit.in_step {
            let mut said = vec![u8::from(late)];
            comm.broadcast(0, &mut said)?;
            late = said == [1];
        }
        if !late {
            return Ok(());
        }
        if self.limit.wear_out && !self.limit.in_step {
            return self.agree(comm, calls, bytes);
        }
        self.most = calls;
        Ok(())
    }

    /// After the last transfer: a rank that was never late still takes part in what the others agree on.
    pub fn at_end(&mut self, comm: &dyn Communicator, calls: u64, bytes: u64) -> Result<()> {
        let agrees = self.limit.deadline.is_some() && self.limit.wear_out;
        if agrees && self.found.is_none() { self.agree(comm, calls, bytes) } else { Ok(()) }
    }

    fn agree(&mut self, comm: &dyn Communicator, calls: u64, bytes: u64) -> Result<()> {
        let seconds = self.begin.elapsed().as_secs_f64();
        let (mut most, mut fewest, mut sum) = ([calls], [calls, bytes], [bytes]);
        comm.all_reduce(&mut most, Reduce::Max)?;
        comm.all_reduce(&mut fewest, Reduce::Min)?;
        comm.all_reduce(&mut sum, Reduce::Sum)?;
        self.most = self.most.min(most[0]);
        self.found =
            Some(Stonewall { fewest: fewest[0], most: most[0], fewest_bytes: fewest[1], bytes: sum[0], seconds });
        Ok(())
    }

    /// Where the ranks stood, if they asked each other.
    pub fn into_found(self) -> Option<Stonewall> {
        self.found
    }
}
