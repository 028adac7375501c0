//! Overlap join: finds the slabs of two lists that may overlap, without comparing every pair.

use crate::slab::Slab;
use crate::{Error, Result};
use std::ops::Range;

/// Most splits of a group before its members are compared pairwise.
const MAX_CUTS: usize = 64;

/// Most comparisons of one operation before it is refused: a few seconds.
const MAX_COMPARISONS: u64 = 1 << 30;

/// Budget of comparisons.
pub(super) struct Effort(u64);

impl Effort {
    pub(super) fn new() -> Self {
        Self(MAX_COMPARISONS)
    }

    pub(super) fn spend(&mut self, comparisons: usize) -> Result<()> {
        self.0 = self.0.checked_sub(comparisons as u64).ok_or_else(|| {
            Error::unsupported("combine selections", "the parts are too many and too interleaved")
                .hint("split the selection into smaller parts")
        })?;
        Ok(())
    }
}

/// Slabs partitioned into groups whose bounding boxes are disjoint.
pub(super) struct Groups {
    /// Slab numbers, group by group.
    order: Vec<u32>,
    groups: Vec<Range<usize>>,
}

impl Groups {
    /// Partitions slabs of `rank` dimensions.
    pub(super) fn new(slabs: &[&Slab], rank: usize) -> Self {
        let mut order: Vec<u32> = (0..slabs.len() as u32).collect();
        let mut groups = Vec::new();
        // Work list: members, dimension to try, dimensions tried in vain, splits so far.
        let mut open = vec![(0..order.len(), 0, 0, 0)];
        while let Some((members, dim, vain, cuts)) = open.pop() {
            if members.len() < 2 || vain >= rank || cuts >= MAX_CUTS {
                groups.push(members);
                continue;
            }
            let range = |&i: &u32| &slabs[i as usize].ranges[dim];
            order[members.clone()].sort_unstable_by_key(|i| range(i).start);
            let next_dim = (dim + 1) % rank;
            let (mut first, mut end) = (members.start, 0);
            for at in members.clone() {
                let range = range(&order[at]);
                if at > first && range.start >= end {
                    open.push((first..at, next_dim, 1, cuts + 1));
                    first = at;
                }
                end = end.max(range.end());
            }
            let vain = if first == members.start { vain + 1 } else { 1 };
            open.push((first..members.end, next_dim, vain, cuts + usize::from(first > members.start)));
        }
        Self { order, groups }
    }

    /// The members of each group.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.groups.iter().map(|range| &self.order[range.clone()])
    }
}

/// The dimension along which the slabs overlap least, for the sweep.
pub(super) fn best_dimension<'a>(slabs: impl Iterator<Item = &'a Slab> + Clone, rank: usize) -> usize {
    let crowding = |dim: usize| {
        let (mut low, mut high, mut covered) = (u64::MAX, 0, 0.0);
        for slab in slabs.clone() {
            let range = &slab.ranges[dim];
            (low, high) = (low.min(range.start), high.max(range.end()));
            covered += (range.end() - range.start) as f64;
        }
        covered / high.saturating_sub(low).max(1) as f64
    };
    (0..rank).min_by(|&a, &b| crowding(a).total_cmp(&crowding(b))).unwrap_or(0)
}

/// Calls `visit` for each slab of `a` with its candidates in `b`, which may overlap it, until it returns false.
/// The lists have the same rank; they need not be sorted.
pub(super) fn visit_candidates(
    a: &[Slab],
    b: &[Slab],
    mut visit: impl FnMut(&Slab, &[&Slab]) -> Result<bool>,
) -> Result<()> {
    let all: Vec<&Slab> = a.iter().chain(b).collect();
    let rank = all.first().map_or(0, |slab| slab.ranges.len());
    let mut effort = Effort::new();
    let (mut ours, mut theirs, mut near): (Vec<&Slab>, Vec<&Slab>, Vec<&Slab>) = Default::default();
    for group in Groups::new(&all, rank).iter() {
        ours.clear();
        theirs.clear();
        near.clear();
        for &i in group {
            let side = if (i as usize) < a.len() { &mut ours } else { &mut theirs };
            side.push(all[i as usize]);
        }
        let dim = best_dimension(ours.iter().chain(&theirs).copied(), rank);
        let range = |slab: &Slab| slab.ranges.get(dim).map_or((0, 1), |range| (range.start, range.end()));
        ours.sort_unstable_by_key(|slab| range(slab).0);
        theirs.sort_unstable_by_key(|slab| range(slab).0);
        let mut coming = theirs.iter().peekable();
        for slab in &ours {
            let (start, end) = range(slab);
            near.retain(|other| range(other).1 > start);
            while let Some(other) = coming.next_if(|other| range(other).0 < end) {
                near.push(other);
            }
            effort.spend(near.len())?;
            if !visit(slab, &near)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
