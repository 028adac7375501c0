//! From many small writes in the order of the program to few large ones in the order of the array: two-level reordering.
//!
//! Requests of one array are sorted by the first byte that they touch (in the row-major order of the array). A sweep finds
//! groups whose ranges from first to last byte interleave. A request alone in its range is handed on as it is; only inside a
//! group requests are flattened to contiguous runs, which are merged in order, and where they overlap the later request wins.
//! Runs that touch become one stretch.
//!
//! # Memory
//!
//! One [`Entry`] per request (24 bytes) is all that grows with their number. Runs are made one at a time for each
//! request of a group. A group of more requests than [`Limits::flattened`] is handled in rounds, oldest requests first: the
//! stretches of a later round are to be written after those of an earlier one, so that the later request still wins.
//! Stretches end at [`Limits::bytes`] and [`Limits::parts`].

mod entry;
mod extent;
mod merge;
mod range_selection;

pub use entry::{Entry, Requests};
pub use extent::{Part, Write};
pub use range_selection::selection_of;

use entry::CONTIGUOUS;
use extent::Extent;
use hyperslab_core::Result;

/// What a stretch and a round may have at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a stretch; a single part may have more, and is cut by the receiver if that matters.
    pub bytes: u64,
    /// Parts of a stretch.
    pub parts: usize,
    /// Requests that are flattened at the same time.
    pub flattened: usize,
    /// Bytes of the array before this one, and from `to` on, are left to others.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// Stretches that are cut for being long end at a multiple of this, where there is one.
    pub unit: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 20, parts: 1 << 16, flattened: 1 << 16, from: 0, to: u64::MAX, unit: 1 }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Groups of one or more requests.
    pub groups: u64,
    /// Requests that were flattened.
    pub flattened: u64,
    /// Rounds of groups beyond their first.
    pub rounds: u64,
    /// Writes handed on.
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

/// Hands the requests on as few large writes, to be made in this order. `entries` are of one array; their order does not
/// matter, since each carries the number of its request. An error of `each` ends it.
pub fn reorder(
    entries: &mut [Entry],
    requests: &dyn Requests,
    limits: &Limits,
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
                stretch.push(Part { offset: alone.first, len, request: alone.number, at: 0 })?;
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

/// How many of the first entries interleave, the first one included.
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
