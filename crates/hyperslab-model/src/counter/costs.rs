//! What a walk found.

use crate::counts::{Count, Counts};
use crate::layers::LayerWork;
use hyperslab_core::CacheState;
use std::time::Duration;

/// What a workload makes a stack do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// By rank: what the format does in calls of that rank. Of many ranks only some, evenly chosen.
    pub by_rank: Vec<Work>,
    /// Number of ranks that the workload has.
    pub ranks: usize,
    /// Bytes that all ranks write.
    pub bytes_written: u64,
    /// Bytes that all ranks read.
    pub bytes_read: u64,
    /// The longest time that a rank computes.
    pub compute: Duration,
    /// Time steps.
    pub epochs: u64,
    /// Times that a rank computes after it has transferred something.
    pub pauses: u64,
    /// What passes through layers, outermost first.
    pub layers: Vec<LayerWork>,
    /// What goes on while the program computes.
    pub behind: Overlap,
    /// Part of the bytes read that can be read ahead, since something of the array was read before.
    pub read_ahead: f64,
    /// Bytes at whose multiples objects begin.
    pub align: u64,
}

/// Which transfers go on behind the program's back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// None.
    #[default]
    Nothing,
    /// Writes, and reads that can be foreseen.
    All,
    /// The same or nothing, whichever is faster.
    Chosen,
    /// Writes.
    Writes,
}

impl Costs {
    /// What all ranks do together.
    pub fn total(&self) -> Counts {
        let Some((first, others)) = self.by_rank.split_first() else { return Counts::default() };
        let mut total = Counts::default();
        others.iter().for_each(|work| {
            total += &work.reading;
            total += &work.writing;
        });
        // What the first rank does for all is done once, however many the others are.
        total = total.scaled((self.ranks.max(1) - 1) as u64, others.len().max(1) as u64);
        total += &first.reading;
        total += &first.writing;
        total
    }
}

/// What a rank makes the format do, by direction: the same thing costs more one way than the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// In reads, and to open what is there.
    pub reading: Counts,
    /// In writes, to make, flush and close.
    pub writing: Counts,
}

impl Work {
    /// As a row of a table of variables: those of reading, then those of writing. If files are in memory, no device is
    /// asked.
    pub fn row(&self, warmth: CacheState) -> Vec<f64> {
        let in_memory = |mut counts: Counts| {
            if warmth == CacheState::Warm {
                (counts[Count::DeviceReads], counts[Count::DeviceBytes]) = (0, 0);
            }
            counts.row()
        };
        [in_memory(self.reading), in_memory(self.writing)].concat()
    }
}
