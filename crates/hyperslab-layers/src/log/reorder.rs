//! Two-level reordering: merges many small writes in program order into few large ones in array order.
//!
//! Requests of one array are sorted by the first byte that they touch (in the row-major order of the array). A sweep finds
//! groups whose ranges from first to last byte interleave. A request alone in its range is handed on as it is; only inside a
//! group requests are flattened to contiguous runs, which are merged in order; where they overlap, the later request wins.
//! Adjacent runs are coalesced into one extent.
//!
//! # Memory
//!
//! One [`Entry`] per request (24 bytes) is all that grows with their number. Runs are made one at a time for each
//! request of a group. A group of more requests than [`ReorderLimits::flattened`] is handled in rounds, oldest requests first: the
//! extents of a later round must be written after those of an earlier one, so that the later request still wins.
//! Extents end at [`ReorderLimits::bytes`] and [`ReorderLimits::parts`].

mod entry;
mod extent;
mod merge;
mod range_selection;

pub use entry::{Entry, Requests};
pub use extent::{ExtentPart, Write};
pub use range_selection::selection_of;

use entry::CONTIGUOUS;
use extent::Extent;
use hyperslab_core::Result;

/// Limits of extents and rounds.
#[derive(Debug, Clone, Copy)]
pub struct ReorderLimits {
    /// Maximum length of an extent; a single part may exceed it.
    pub bytes: u64,
    /// Maximum number of parts of an extent.
    pub parts: usize,
    /// Maximum number of requests flattened at a time.
    pub flattened: usize,
    /// First byte of the array to be written; the range `from..to`.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Extents split for their length end at a multiple of this, if possible.
    pub unit: u64,
}

impl Default for ReorderLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20, parts: 1 << 16, flattened: 1 << 16, from: 0, to: u64::MAX, unit: 1 }
    }
}

/// Statistics of reordering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of groups of interleaving requests.
    pub groups: u64,
    /// Number of flattened requests.
    pub flattened: u64,
    /// Number of rounds beyond the first of each group.
    pub rounds: u64,
    /// Number of resulting writes.
    pub writes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.groups += more.groups;
        self.flattened += more.flattened;
        self.rounds += more.rounds;
        self.writes += more.writes;
    }
}

/// Calls `each` with few large writes, to be made in this order. `entries` are of one array, in any order, since each has
/// the number of its request. Stops at an error of `each`.
pub fn reorder(
    entries: &mut [Entry],
    requests: &dyn Requests,
    limits: &ReorderLimits,
    each: &mut dyn FnMut(Write<'_>) -> Result<()>,
) -> Result<Counts> {
    entries.sort_unstable_by_key(|entry| (entry.first, entry.number));
    let mut counts = Counts::default();
    let mut stretch = Extent::new(limits, each);
    let mut rest = &mut entries[..];
    while !rest.is_empty() {
        let (group, behind) = rest.split_at_mut(group_len(rest));
        rest = behind;
        counts.groups += 1;
        match group {
            [alone] if alone.form == CONTIGUOUS => {
                let len = alone.last - alone.first + 1;
                stretch.push(ExtentPart { offset: alone.first, len, request: alone.number, at: 0 })?;
            }
            [alone] if alone.is_inside(limits) => stretch.whole(alone.number)?,
            group => {
                counts.flattened += group.len() as u64;
                group.sort_unstable_by_key(|entry| entry.number);
                for (round, part) in group.chunks(limits.flattened.max(1)).enumerate() {
                    if round > 0 {
                        counts.rounds += 1;
                        stretch.end()?;
                    }
                    merge::merge(part, requests, limits.to, &mut |part| stretch.push(part))?;
                }
                if group.len() > limits.flattened {
                    stretch.end()?;
                }
            }
        }
    }
    stretch.end()?;
    counts.writes = stretch.writes();
    Ok(counts)
}

/// Number of leading entries that interleave.
fn group_len(sorted: &[Entry]) -> usize {
    let Some(first) = sorted.first() else { return 0 };
    let mut reached = first.last;
    let others = sorted[1..].iter().take_while(|entry| {
        let inside = entry.first <= reached;
        reached = reached.max(entry.last);
        inside
    });
    1 + others.count()
}

#[cfg(test)]
mod tests;
