//! Which storage targets each rank meets, when a file is cut into stripes that go to targets in turn.

use super::Ior;
use std::collections::BTreeSet;

/// How a file is spread over storage targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripes {
    /// Bytes of a stripe.
    pub size: u64,
    /// Targets that stripes go to in turn.
    pub count: u64,
}

/// Segments that are looked at. Those whose blocks begin at stripes repeat after at most as many as there are targets.
const MOST_SEGMENTS: u64 = 1 << 16;

/// The number of targets that hold bytes of each rank, by going over the blocks of the shared file of `ior`.
pub fn targets_per_client(ior: &Ior, stripes: Stripes) -> Vec<u64> {
    let (size, count) = (stripes.size.max(1), stripes.count.max(1));
    let of_rank = |rank: usize| {
        let mut targets = BTreeSet::new();
        for segment in 0..ior.segments.min(MOST_SEGMENTS) {
            let first = ior.offset(rank, segment, 0);
            let (from, to) = (first / size, (first + ior.block - 1) / size);
            targets.extend((from..=to).take(count as usize).map(|stripe| stripe % count));
            // Segments whose bytes begin at the same place of the same target repeat what was seen.
            let period = ior.segment_bytes().wrapping_mul(segment + 1);
            if targets.len() as u64 == count || period.is_multiple_of(size.saturating_mul(count)) {
                break;
            }
        }
        targets.len() as u64
    };
    (0..ior.ranks).map(of_rank).collect()
}
