//! A regular hyperslab: the product of one [`StridedRange`] per dimension.

use crate::strided_range::{StridedRange, check_pieces};
use crate::{Dims, Error, MAX_RANK, Result};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The product of one strided range per dimension; never empty. A scalar has no range and one element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slab {
    pub(crate) ranges: SmallVec<[StridedRange; 3]>,
}

impl Slab {
    /// The box of `count` elements at `start`, or `None` when it is empty.
    pub fn dense(start: &[u64], count: &[u64]) -> Result<Option<Self>> {
        same_rank(&[start.len(), count.len()])?;
        Self::collect(start.iter().zip(count).map(|(&s, &n)| StridedRange::new(s, n.max(1), u64::from(n > 0), n)))
    }

    /// HDF5's start/stride/count/block, or `None` when it is empty.
    pub fn strided(start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Result<Option<Self>> {
        same_rank(&[start.len(), stride.len(), count.len(), block.len()])?;
        Self::collect((0..start.len()).map(|d| StridedRange::new(start[d], stride[d], count[d], block[d])))
    }

    fn collect(ranges: impl Iterator<Item = Result<Option<StridedRange>>>) -> Result<Option<Self>> {
        let mut empty = false;
        let mut out = SmallVec::new();
        for range in ranges {
            match range? {
                Some(range) => out.push(range),
                None => empty = true,
            }
        }
        if empty {
            return Ok(None);
        }
        let slab = Self { ranges: out };
        crate::dims::element_count(&slab.counts())?;
        Ok(Some(slab))
    }

    /// One strided range per dimension.
    pub fn ranges(&self) -> &[StridedRange] {
        &self.ranges
    }

    /// Elements selected along each dimension: the shape of the packed selection.
    pub fn counts(&self) -> Dims {
        self.ranges.iter().map(StridedRange::len).collect()
    }

    /// Number of elements; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(StridedRange::len).product()
    }

    /// First index in each dimension.
    pub fn start(&self) -> Dims {
        self.ranges.iter().map(|s| s.start).collect()
    }

    /// One past the last index in each dimension.
    pub fn end(&self) -> Dims {
        self.ranges.iter().map(StridedRange::end).collect()
    }

    /// Whether it is a dense box.
    pub fn is_dense(&self) -> bool {
        self.ranges.iter().all(StridedRange::is_dense)
    }

    /// Translates by `by`; refuses to leave 0..2^63.
    pub fn shifted(&self, by: &[i64]) -> Result<Self> {
        same_rank(&[self.ranges.len(), by.len()])?;
        let ranges = self.ranges.iter().zip(by).map(|(s, &d)| {
            s.start
                .checked_add_signed(d)
                .filter(|start| start.checked_add(s.end() - s.start).is_some_and(|e| e <= i64::MAX as u64))
                .map(|start| StridedRange { start, ..*s })
                .ok_or_else(|| Error::invalid("shift selection", format!("shifting by {d} leaves the index range")))
        });
        Ok(Self { ranges: ranges.collect::<Result<_>>()? })
    }

    /// Whether the two intersect. Both must have the same rank.
    pub fn overlaps(&self, other: &Slab) -> bool {
        self.ranges.iter().zip(&other.ranges).all(|(a, b)| a.overlaps(b))
    }

    /// The intersection, as disjoint slabs.
    pub fn intersect(&self, other: &Slab) -> Result<Vec<Slab>> {
        let mut per_dim = Vec::with_capacity(self.ranges.len());
        for (a, b) in self.ranges.iter().zip(&other.ranges) {
            let common = a.intersect(b)?;
            if common.is_empty() {
                return Ok(Vec::new());
            }
            per_dim.push(common);
        }
        product(&per_dim)
    }

    /// The difference `self` minus `other`, as disjoint slabs.
    pub fn subtract(&self, other: &Slab) -> Result<Vec<Slab>> {
        if !self.overlaps(other) {
            return Ok(vec![self.clone()]);
        }
        let mut out = Vec::new();
        // Dimension d contributes what agrees in the earlier dimensions, differs in d, and is free in the later ones.
        let mut per_dim: Vec<Vec<StridedRange>> = self.ranges.iter().map(|s| vec![*s]).collect();
        for (d, (a, b)) in self.ranges.iter().zip(&other.ranges).enumerate() {
            per_dim[d] = a.subtract(b)?;
            if !per_dim[d].is_empty() {
                out.extend(product(&per_dim)?);
                check_pieces(out.len())?;
            }
            per_dim[d] = a.intersect(b)?;
        }
        Ok(out)
    }

    /// Merges two slabs that differ in one dimension only, if the result is exactly their union.
    pub(crate) fn join(&self, next: &Slab, dim: usize) -> Option<Slab> {
        let same = |d: usize| d == dim || self.ranges[d] == next.ranges[d];
        if !(0..self.ranges.len()).all(same) {
            return None;
        }
        let joined = self.ranges[dim].join(&next.ranges[dim])?;
        let mut slab = self.clone();
        slab.ranges[dim] = joined;
        Some(slab)
    }

    /// Row-major order of the first elements.
    pub(crate) fn cmp_start(&self, other: &Slab) -> Ordering {
        self.ranges.iter().map(|s| s.start).cmp(other.ranges.iter().map(|s| s.start))
    }
}

pub(crate) fn same_rank(ranks: &[usize]) -> Result<()> {
    if ranks.iter().any(|&r| r != ranks[0]) {
        return Err(Error::invalid("check selection", format!("numbers of dimensions differ: {ranks:?}")));
    }
    if ranks[0] > MAX_RANK {
        return Err(Error::invalid("check selection", format!("more than {MAX_RANK} dimensions")));
    }
    Ok(())
}

pub(crate) fn product(per_dim: &[Vec<StridedRange>]) -> Result<Vec<Slab>> {
    let total = per_dim.iter().try_fold(1usize, |n, ranges| n.checked_mul(ranges.len()));
    check_pieces(total.unwrap_or(usize::MAX))?;
    let mut out = vec![Slab { ranges: SmallVec::new() }];
    for ranges in per_dim {
        out = out
            .into_iter()
            .flat_map(|slab| {
                ranges.iter().map(move |range| {
                    let mut slab = slab.clone();
                    slab.ranges.push(*range);
                    slab
                })
            })
            .collect();
    }
    Ok(out)
}
