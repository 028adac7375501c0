//! One dimension of a hyperslab: `count` blocks of `block` elements, `stride` apart.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How many pieces one set operation may produce before it is refused.
const MAX_PIECES: usize = 1 << 22;

/// A non-empty regular set of indices along one dimension, in normal form: one block has `stride == block`,
/// and blocks that touch are one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    pub(crate) start: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
    pub(crate) block: u64,
}

impl Span {
    /// A checked span in normal form, or `None` when it selects nothing.
    /// Overlapping blocks and indices beyond 2^63 are refused.
    pub fn new(start: u64, stride: u64, count: u64, block: u64) -> Result<Option<Self>> {
        if count == 0 || block == 0 {
            return Ok(None);
        }
        if count > 1 && stride < block {
            return Err(Error::invalid(
                "check selection",
                format!("stride {stride} is smaller than block {block}: blocks would overlap"),
            ));
        }
        let end = (count - 1)
            .checked_mul(stride)
            .and_then(|n| n.checked_add(block))
            .and_then(|n| n.checked_add(start))
            .filter(|&end| end <= i64::MAX as u64);
        if end.is_none() {
            return Err(Error::invalid("check selection", "an index exceeds 2^63"));
        }
        Ok(Some(Self::normal(start, stride, count, block)))
    }

    /// The indices `start..start + len`; `len` must not be 0.
    pub(crate) fn dense(start: u64, len: u64) -> Self {
        debug_assert!(len > 0);
        Self { start, stride: len, count: 1, block: len }
    }

    fn normal(start: u64, stride: u64, count: u64, block: u64) -> Self {
        if count == 1 || stride == block {
            Self::dense(start, count * block)
        } else {
            Self { start, stride, count, block }
        }
    }

    /// First index.
    pub fn start(&self) -> u64 {
        self.start
    }
    /// Distance between the starts of two blocks.
    pub fn stride(&self) -> u64 {
        self.stride
    }
    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Indices per block.
    pub fn block(&self) -> u64 {
        self.block
    }
    /// Number of indices; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.count * self.block
    }
    /// One past the last index.
    pub fn end(&self) -> u64 {
        self.start + (self.count - 1) * self.stride + self.block
    }
    /// Whether the indices follow each other without a gap.
    pub fn is_dense(&self) -> bool {
        self.count == 1
    }
    /// Whether `index` is in the set.
    pub fn contains(&self, index: u64) -> bool {
        index >= self.start && index < self.end() && (index - self.start) % self.stride < self.block
    }

    /// The indices in `lo..hi`: at most a cut first block, a regular middle and a cut last block, in order.
    pub(crate) fn clip(&self, lo: u64, hi: u64, out: &mut Vec<Span>) {
        let (lo, hi) = (lo.max(self.start), hi.min(self.end()));
        if lo >= hi {
            return;
        }
        if self.is_dense() {
            out.push(Self::dense(lo, hi - lo));
            return;
        }
        let block_of = |index: u64| (index - self.start) / self.stride;
        let begin_of = |k: u64| self.start + k * self.stride;
        let mut first = block_of(lo);
        let mut end = block_of(hi - 1) + 1; // blocks first..end start before `hi`
        if lo > begin_of(first) {
            let from = lo;
            let to = hi.min(begin_of(first) + self.block);
            if from < to {
                out.push(Self::dense(from, to - from));
            }
            first += 1;
        }
        let tail = (end > first && begin_of(end - 1) + self.block > hi).then(|| {
            end -= 1;
            Self::dense(begin_of(end), hi - begin_of(end))
        });
        if end > first {
            out.push(Self::normal(begin_of(first), self.stride, end - first, self.block));
        }
        out.extend(tail);
    }

    /// The common indices, as disjoint spans.
    pub(crate) fn intersect(&self, other: &Span) -> Result<Vec<Span>> {
        let mut out = Vec::new();
        if self.start >= other.end() || other.start >= self.end() {
            return Ok(out);
        }
        if other.is_dense() {
            self.clip(other.start, other.end(), &mut out);
        } else if self.is_dense() {
            other.clip(self.start, self.end(), &mut out);
        } else if self.stride == other.stride {
            self.intersect_same_stride(other, &mut out);
        } else {
            let (few, many) = if self.count <= other.count { (self, other) } else { (other, self) };
            for k in few.blocks_touching(many.start, many.end()) {
                let begin = few.start + k * few.stride;
                many.clip(begin, begin + few.block, &mut out);
                check_pieces(out.len())?;
            }
            out = join_regular(out);
        }
        Ok(out)
    }

    /// Numbers of the blocks that may touch `lo..hi`.
    fn blocks_touching(&self, lo: u64, hi: u64) -> std::ops::Range<u64> {
        let first = if lo <= self.start { 0 } else { ((lo - self.start) / self.stride).min(self.count) };
        let end = if hi <= self.start { 0 } else { ((hi - self.start).div_ceil(self.stride)).min(self.count) };
        first..end
    }

    fn intersect_same_stride(&self, other: &Span, out: &mut Vec<Span>) {
        let stride = self.stride as i128;
        let apart = other.start as i128 - self.start as i128;
        let phase = apart.rem_euclid(stride);
        for shift in [phase - stride, phase] {
            // A block of `other` begins `shift` after block k of `self`; it is block k - lag of `other`.
            let from = shift.max(0);
            let to = (self.block as i128).min(shift + other.block as i128);
            if from >= to {
                continue;
            }
            let lag = (apart - shift) / stride;
            let first = lag.max(0);
            let end = (self.count as i128).min(other.count as i128 + lag);
            if first < end {
                let begin = self.start as i128 + first * stride + from;
                out.push(Self::normal(begin as u64, self.stride, (end - first) as u64, (to - from) as u64));
            }
        }
    }

    /// The indices of `self` that are not in `other`, as disjoint spans.
    pub(crate) fn subtract(&self, other: &Span) -> Result<Vec<Span>> {
        let mut out = Vec::new();
        self.clip(0, other.start, &mut out);
        if !other.is_dense() {
            let gaps =
                Self::normal(other.start + other.block, other.stride, other.count - 1, other.stride - other.block);
            out.extend(self.intersect(&gaps)?);
        }
        self.clip(other.end(), u64::MAX, &mut out);
        Ok(out)
    }

    /// Whether the two sets share an index.
    pub(crate) fn overlaps(&self, other: &Span) -> bool {
        if self.start >= other.end() || other.start >= self.end() {
            return false;
        }
        if self.is_dense() || other.is_dense() || self.stride == other.stride {
            return self.intersect(other).is_ok_and(|common| !common.is_empty());
        }
        // Distances between block starts are all equal to `apart` modulo the common divisor of the strides.
        let divisor = gcd(self.stride, other.stride) as i128;
        let apart = (other.start as i128 - self.start as i128).rem_euclid(divisor);
        if apart >= self.block as i128 && apart - divisor <= -(other.block as i128) {
            return false;
        }
        let (few, many) = if self.count <= other.count { (self, other) } else { (other, self) };
        few.blocks_touching(many.start, many.end()).any(|k| {
            let begin = few.start + k * few.stride;
            let end = (begin + few.block).min(many.end());
            let begin = begin.max(many.start);
            if begin >= end {
                return false;
            }
            let inside = (begin - many.start) % many.stride;
            inside < many.block || inside + (end - begin) > many.stride
        })
    }

    /// Joins `self` and a later `next` into one span when that is exact.
    pub(crate) fn join(&self, next: &Span) -> Option<Span> {
        if self.is_dense() && next.is_dense() && self.end() == next.start {
            return Some(Self::dense(self.start, self.block + next.block));
        }
        if self.block != next.block {
            return None;
        }
        let last = self.start + (self.count - 1) * self.stride;
        let gap = next.start.checked_sub(last)?;
        let fits = |s: &Span| s.count == 1 || s.stride == gap;
        (gap > self.block && fits(self) && fits(next)).then(|| Self {
            start: self.start,
            stride: gap,
            count: self.count + next.count,
            block: self.block,
        })
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

pub(crate) fn check_pieces(n: usize) -> Result<()> {
    if n > MAX_PIECES {
        return Err(Error::unsupported("combine selections", format!("the result has more than {MAX_PIECES} pieces"))
            .hint("split the selection into smaller parts"));
    }
    Ok(())
}

/// Joins neighbours of a sorted list of disjoint spans, greedily.
fn join_regular(spans: Vec<Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::with_capacity(spans.len().min(16));
    for span in spans {
        match out.last_mut().and_then(|last| last.join(&span).map(|joined| (last, joined))) {
            Some((last, joined)) => *last = joined,
            None => out.push(span),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn indices(spans: &[Span]) -> BTreeSet<u64> {
        let mut set = BTreeSet::new();
        for s in spans {
            for k in 0..s.count {
                for b in 0..s.block {
                    assert!(set.insert(s.start + k * s.stride + b), "pieces overlap");
                }
            }
        }
        set
    }

    fn span() -> impl Strategy<Value = Span> {
        (0u64..20, 1u64..6, 1u64..6, 0u64..5)
            .prop_map(|(start, block, count, gap)| Span::new(start, block + gap, count, block).unwrap().unwrap())
    }

    proptest! {
        #[test]
        fn set_operations_match_sets(a in span(), b in span(), lo in 0u64..40, len in 0u64..40) {
            let (x, y) = (indices(&[a]), indices(&[b]));
            prop_assert_eq!(indices(&a.intersect(&b).unwrap()), &x & &y);
            prop_assert_eq!(indices(&a.subtract(&b).unwrap()), &x - &y);
            prop_assert_eq!(a.overlaps(&b), !x.is_disjoint(&y));
            let mut cut = Vec::new();
            a.clip(lo, lo + len, &mut cut);
            prop_assert!(cut.len() <= 3);
            prop_assert_eq!(indices(&cut), x.iter().copied().filter(|i| (lo..lo + len).contains(i)).collect());
            for i in 0..80 { prop_assert_eq!(a.contains(i), x.contains(&i)); }
            if let Some(joined) = a.join(&b) { prop_assert_eq!(indices(&[joined]), &x | &y); }
        }
    }

    #[test]
    fn bad_spans_are_refused() {
        assert!(Span::new(0, 1, 2, 3).is_err());
        assert!(Span::new(u64::MAX, 1, 1, 1).is_err());
        assert!(Span::new(0, u64::MAX / 2, 5, 1).is_err());
        assert_eq!(Span::new(3, 1, 0, 1).unwrap(), None);
    }
}
