//! Canonical form of a union: disjoint slabs, merged with their neighbours where possible, sorted by first element.

use super::overlap_join::{Effort, Groups, best_dimension};
use crate::slab::Slab;
use crate::strided_range::{MAX_PIECES, StridedRange, check_pieces};
use crate::{Dims, Error, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most merge passes. Two or three reach the fixed point for the selections of real programs.
const MAX_PASSES: usize = 32;

/// Limit on the number of pieces that subtracting slabs may produce.
pub(super) struct PieceLimit(usize);

impl PieceLimit {
    pub(super) fn new(slabs: usize) -> Self {
        Self(slabs.saturating_mul(4).saturating_add(MAX_PIECES))
    }

    pub(super) fn check(&self, pieces: usize) -> Result<()> {
        if pieces > self.0 { check_pieces(usize::MAX) } else { Ok(()) }
    }
}

/// The canonical form of the union of `slabs`, which all have `rank` dimensions.
pub(super) fn canonicalise(rank: usize, mut slabs: Vec<Slab>) -> Result<Vec<Slab>> {
    if slabs.len() < 2 {
        return Ok(slabs);
    }
    if rank == 0 {
        slabs.truncate(1);
        return Ok(slabs);
    }
    let disjoint = make_disjoint(rank, slabs)?;
    let total = disjoint.iter().try_fold(0u64, |n, slab| n.checked_add(slab.len()));
    let total = total.ok_or_else(|| Error::invalid("combine selections", "more than 2^64 elements are selected"))?;
    // Merged until a fixed point, so that canonicalising is idempotent.
    let mut joined = join_neighbours(rank, disjoint);
    for _ in 0..MAX_PASSES {
        let before = joined.len();
        joined = join_neighbours(rank, joined);
        if joined.len() == before {
            break;
        }
    }
    Ok(match as_one(&joined, rank, total) {
        Some(slab) => vec![slab],
        None => joined,
    })
}

/// The same elements as disjoint slabs.
fn make_disjoint(rank: usize, slabs: Vec<Slab>) -> Result<Vec<Slab>> {
    let limit = PieceLimit::new(slabs.len());
    let mut effort = Effort::new();
    let all: Vec<&Slab> = slabs.iter().collect();
    let mut out: Vec<Slab> = Vec::with_capacity(slabs.len());
    for group in Groups::new(&all, rank).iter() {
        if let [alone] = group {
            out.push(all[*alone as usize].clone());
            continue;
        }
        let mut group: Vec<&Slab> = group.iter().map(|&i| all[i as usize]).collect();
        let dim = best_dimension(group.iter().copied(), rank);
        group.sort_unstable_by_key(|slab| slab.ranges[dim].start);
        let mut active: Vec<usize> = Vec::new(); // sweep line: slabs of this group that may overlap later ones
        for slab in group {
            active.retain(|&i| out[i].ranges[dim].end() > slab.ranges[dim].start);
            let mut pieces = vec![slab.clone()];
            for &i in &active {
                effort.spend(pieces.len())?;
                subtract_from(&mut pieces, 0, &out[i], &limit)?;
            }
            active.extend(out.len()..out.len() + pieces.len());
            out.append(&mut pieces);
            limit.check(out.len())?;
        }
    }
    Ok(out)
}

/// Subtracts `slab` from `pieces[first..]`.
pub(super) fn subtract_from(pieces: &mut Vec<Slab>, first: usize, slab: &Slab, limit: &PieceLimit) -> Result<()> {
    let mut at = first;
    let mut rest = Vec::new();
    while at < pieces.len() {
        if pieces[at].overlaps(slab) {
            rest.extend(pieces[at].subtract(slab)?);
            limit.check(pieces.len() + rest.len())?;
            pieces.swap_remove(at);
        } else {
            at += 1;
        }
    }
    pieces.append(&mut rest);
    Ok(())
}

/// Merges slabs that differ in one dimension and are adjacent there, last dimension first.
fn join_neighbours(rank: usize, mut slabs: Vec<Slab>) -> Vec<Slab> {
    for dim in (0..rank).rev() {
        slabs.sort_unstable_by(|a, b| {
            let before = || a.ranges[..dim].cmp(&b.ranges[..dim]);
            let after = || a.ranges[dim + 1..].cmp(&b.ranges[dim + 1..]);
            before().then_with(after).then_with(|| a.ranges[dim].start.cmp(&b.ranges[dim].start))
        });
        let mut joined: Vec<Slab> = Vec::with_capacity(slabs.len());
        for slab in slabs {
            match joined.last_mut().and_then(|last| last.join(&slab, dim).map(|j| (last, j))) {
                Some((last, j)) => *last = j,
                None => joined.push(slab),
            }
        }
        slabs = joined;
    }
    slabs.sort_unstable_by(Slab::cmp_start);
    slabs
}

type StridedRanges = smallvec::SmallVec<[StridedRange; 3]>;

/// The single regular slab equal to these disjoint ones of `total` elements, if there is one.
fn as_one(slabs: &[Slab], rank: usize, total: u64) -> Option<Slab> {
    if slabs.len() < 2 {
        return None;
    }
    let mut ranges = StridedRanges::new();
    for dim in 0..rank {
        let range = regular_projection(slabs, dim)?;
        if !slabs.iter().all(|slab| slab.ranges[dim].is_inside(&range)) {
            return None;
        }
        ranges.push(range);
    }
    let lens: Dims = ranges.iter().map(StridedRange::len).collect();
    // All slabs lie inside it and are disjoint, so equal counts mean equal sets.
    (crate::dims::element_count(&lens).ok()? == total).then_some(Slab { ranges })
}

/// The only strided range that the indices along `dim` can form, derived from their first block, the gap after it and the last
/// index.
fn regular_projection(slabs: &[Slab], dim: usize) -> Option<StridedRange> {
    let mut ranges: Vec<StridedRange> = slabs.iter().map(|slab| slab.ranges[dim]).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let start = ranges.first()?.start;
    let end = ranges.iter().map(StridedRange::end).max()?;
    // Blocks in order of their start: (start, range, number of the block).
    let mut blocks: BinaryHeap<Reverse<(u64, usize, u64)>> =
        ranges.iter().enumerate().map(|(i, range)| Reverse((range.start, i, 0))).collect();
    let mut reached = start;
    let mut patience = 1024 + 4 * ranges.len();
    while let Some(Reverse((begin, i, k))) = blocks.pop() {
        if begin > reached {
            let (block, stride) = (reached - start, begin - start);
            let count = (end - start - block) / stride + 1;
            return StridedRange::new(start, stride, count, block).ok().flatten().filter(|range| range.end() == end);
        }
        reached = reached.max(begin + ranges[i].block);
        if k + 1 < ranges[i].count {
            blocks.push(Reverse((begin + ranges[i].stride, i, k + 1)));
        }
        patience = patience.checked_sub(1)?;
    }
    Some(StridedRange::dense(start, end - start))
}
