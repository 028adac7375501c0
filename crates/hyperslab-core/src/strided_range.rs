//! One dimension of a hyperslab: `count` blocks of `block` elements, `stride` apart.

use crate::{Error, Result};

/// Most pieces that one set operation may produce before it is refused.
pub(crate) const MAX_PIECES: usize = 1 << 18;

/// A non-empty regular set of indices along one dimension, in canonical form: a single block has `stride == block`,
/// and adjacent blocks are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StridedRange {
    pub(crate) start: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
    pub(crate) block: u64,
}

impl StridedRange {
    /// A checked range in canonical form, or `None` when it is empty.
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
    /// Whether it is contiguous.
    pub fn is_dense(&self) -> bool {
        self.count == 1
    }
    /// Whether `index` is in the set.
    pub fn contains(&self, index: u64) -> bool {
        index >= self.start && index < self.end() && (index - self.start) % self.stride < self.block
    }

    /// Clips to `lo..hi`: at most a partial first block, a regular middle and a partial last block, in order.
    pub(crate) fn clip(&self, lo: u64, hi: u64, out: &mut Vec<StridedRange>) {
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

    /// The intersection, as disjoint ranges.
    pub(crate) fn intersect(&self, other: &StridedRange) -> Result<Vec<StridedRange>> {
        let mut out = Vec::new();
        if self.start >= other.end() || other.start >= self.end() {
            return Ok(out);
        }
        if other.is_dense() {
            self.clip(other.start, other.end(), &mut out);
        } else if self.is_dense() {
            other.clip(self.start, self.end(), &mut out);
        } else if distances(self, other) <= self.count.min(other.count).clamp(2, MAX_PIECES as u64) {
            self.intersect_by_distance(other, &mut out)?;
        } else {
            let (few, many) = if self.count <= other.count { (self, other) } else { (other, self) };
            let mut next = few.first_block_touching(many, 0);
            while let Some(k) = next {
                let begin = few.start + k * few.stride;
                many.clip(begin, begin + few.block, &mut out);
                check_pieces(out.len())?;
                next = few.first_block_touching(many, k + 1);
            }
            out = join_regular(out);
        }
        Ok(out)
    }

    /// Numbers of the blocks that may overlap `lo..hi`.
    fn blocks_touching(&self, lo: u64, hi: u64) -> std::ops::Range<u64> {
        let first = if lo <= self.start { 0 } else { ((lo - self.start) / self.stride).min(self.count) };
        let end = if hi <= self.start { 0 } else { ((hi - self.start).div_ceil(self.stride)).min(self.count) };
        first..end
    }

    /// The first block of `self`, from number `from` on, that shares an index with `other`.
    fn first_block_touching(&self, other: &StridedRange, from: u64) -> Option<u64> {
        let range = self.blocks_touching(other.start, other.end());
        let touches = |k: u64| {
            let begin = self.start + k * self.stride;
            other.touches_range(begin, begin + self.block)
        };
        // Only the blocks at the ends of the range may reach beyond `other`, where its pattern no longer holds.
        let first = range.start.max(from);
        let inner_end = range.end.saturating_sub(1);
        if first >= range.end {
            return None;
        }
        if touches(first) {
            return Some(first);
        }
        if first + 1 < inner_end {
            // Block k overlaps if (begin + block - 1 - other.start) mod stride <= block + other.block - 2.
            let modulus = u128::from(other.stride);
            let begin = self.start + (first + 1) * self.stride; // beyond other.start, since the block before it is not
            let phase = u128::from(begin - other.start + self.block - 1) % modulus;
            let reach = u128::from(self.block) + u128::from(other.block) - 2;
            let steps = if phase <= reach {
                Some(0)
            } else {
                let low = modulus - phase;
                first_multiple_in(u128::from(self.stride), modulus, low, low + reach)
            };
            if let Some(steps) = steps
                && steps < u128::from(inner_end - first - 1)
            {
                return Some(first + 1 + steps as u64);
            }
        }
        (inner_end > first && touches(inner_end)).then_some(inner_end)
    }

    /// Whether an index in `lo..hi` is in the set.
    fn touches_range(&self, lo: u64, hi: u64) -> bool {
        let (lo, hi) = (lo.max(self.start), hi.min(self.end()));
        if lo >= hi {
            return false;
        }
        let inside = (lo - self.start) % self.stride;
        inside < self.block || inside + (hi - lo) > self.stride
    }

    /// Pairs of blocks at the same distance overlap in the same way and recur regularly: one range per distance.
    fn intersect_by_distance(&self, other: &StridedRange, out: &mut Vec<StridedRange>) -> Result<()> {
        let (stride, other_stride) = (i128::from(self.stride), i128::from(other.stride));
        let divisor = i128::from(gcd(self.stride, other.stride));
        let apart = i128::from(other.start) - i128::from(self.start);
        // Blocks k of `self` and j of `other` are `distance` apart: k * stride + distance = j * other_stride + apart.
        let (k_period, j_period) = (other_stride / divisor, stride / divisor);
        let inverse = inverse(j_period, k_period);
        let lowest = 1 - i128::from(other.block);
        let mut distance = lowest + (apart - lowest).rem_euclid(divisor);
        while distance < i128::from(self.block) {
            let k = (((apart - distance) / divisor).rem_euclid(k_period) * inverse).rem_euclid(k_period);
            let j = (k * stride + distance - apart) / other_stride;
            // All solutions are (k + t * k_period, j + t * j_period).
            let first = ceiling(-k, k_period).max(ceiling(-j, j_period));
            let end = ceiling(i128::from(self.count) - k, k_period).min(ceiling(i128::from(other.count) - j, j_period));
            if first < end {
                let from = distance.max(0);
                let to = i128::from(self.block).min(distance + i128::from(other.block));
                let begin = i128::from(self.start) + (k + first * k_period) * stride + from;
                // With several blocks the period is shorter than either range, else it does not matter.
                let period = u64::try_from(k_period * stride).unwrap_or(u64::MAX);
                out.push(Self::normal(begin as u64, period, (end - first) as u64, (to - from) as u64));
                check_pieces(out.len())?;
            }
            distance += divisor;
        }
        Ok(())
    }

    /// The difference `self` minus `other`, as disjoint ranges.
    pub(crate) fn subtract(&self, other: &StridedRange) -> Result<Vec<StridedRange>> {
        let mut out = Vec::new();
        self.clip(0, other.start, &mut out);
        if let Some(gaps) = other.gaps() {
            out.extend(self.intersect(&gaps)?);
        }
        self.clip(other.end(), u64::MAX, &mut out);
        Ok(out)
    }

    /// Whether the two intersect.
    pub(crate) fn overlaps(&self, other: &StridedRange) -> bool {
        if self.start >= other.end() || other.start >= self.end() {
            return false;
        }
        if self.is_dense() {
            return other.touches_range(self.start, self.end());
        }
        if other.is_dense() {
            return self.touches_range(other.start, other.end());
        }
        self.first_block_touching(other, 0).is_some()
    }

    /// The gaps between the blocks; `None` for a single block.
    fn gaps(&self) -> Option<StridedRange> {
        (!self.is_dense())
            .then(|| Self::normal(self.start + self.block, self.stride, self.count - 1, self.stride - self.block))
    }

    /// Whether `self` is a subset of `other`.
    pub(crate) fn is_inside(&self, other: &StridedRange) -> bool {
        self.start >= other.start && self.end() <= other.end() && other.gaps().is_none_or(|gaps| !self.overlaps(&gaps))
    }

    /// How many indices of the set are smaller than `index`.
    pub(crate) fn count_below(&self, index: u64) -> u64 {
        if index <= self.start {
            return 0;
        }
        if index >= self.end() {
            return self.len();
        }
        let from_start = index - self.start;
        from_start / self.stride * self.block + (from_start % self.stride).min(self.block)
    }

    /// The smallest index of the set that is not smaller than `index`.
    pub(crate) fn first_from(&self, index: u64) -> Option<u64> {
        if index <= self.start {
            return Some(self.start);
        }
        if index >= self.end() {
            return None;
        }
        let inside = (index - self.start) % self.stride;
        Some(if inside < self.block { index } else { index + (self.stride - inside) })
    }

    /// Merges `self` and a later `next` into one range, if that is exact.
    pub(crate) fn join(&self, next: &StridedRange) -> Option<StridedRange> {
        if self.is_dense() && next.is_dense() && self.end() == next.start {
            return Some(Self::dense(self.start, self.block + next.block));
        }
        if !self.is_dense()
            && (self.stride, self.count) == (next.stride, next.count)
            && self.start + self.block == next.start
            && self.block + next.block <= self.stride
        {
            return Some(Self::normal(self.start, self.stride, self.count, self.block + next.block));
        }
        if self.block != next.block {
            return None;
        }
        let last = self.start + (self.count - 1) * self.stride;
        let gap = next.start.checked_sub(last)?;
        let fits = |s: &StridedRange| s.count == 1 || s.stride == gap;
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

/// Number of distances between block starts at which blocks of the two overlap.
fn distances(a: &StridedRange, b: &StridedRange) -> u64 {
    (a.block + b.block - 1) / gcd(a.stride, b.stride) + 1
}

/// `value / by`, rounded up; `by` is positive.
fn ceiling(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

/// The inverse of `value` modulo `modulus`, which are coprime.
fn inverse(value: i128, modulus: i128) -> i128 {
    let (mut r, mut next_r) = (modulus, value.rem_euclid(modulus));
    let (mut t, mut next_t) = (0, 1);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (t, next_t) = (next_t, t - quotient * next_t);
    }
    t.rem_euclid(modulus)
}

/// The smallest `n` with `low <= n * step mod modulus <= high`, where `0 < low <= high < modulus`.
fn first_multiple_in(step: u128, modulus: u128, low: u128, high: u128) -> Option<u128> {
    if low == 0 {
        return Some(0);
    }
    let step = step % modulus;
    if step == 0 {
        return None;
    }
    let n = low.div_ceil(step);
    if n * step <= high {
        return Some(n);
    }
    // No multiple of `step` is in the range itself, so the number of wrap-arounds decides: the same question
    // modulo `step`, as in Euclid's algorithm.
    let negated = |value: u128| (step - value % step) % step;
    let passes = first_multiple_in(modulus, step, negated(high), negated(low))?;
    Some((low + modulus * passes).div_ceil(step))
}

pub(crate) fn check_pieces(n: usize) -> Result<()> {
    if n > MAX_PIECES {
        return Err(Error::unsupported("combine selections", format!("the result has more than {MAX_PIECES} pieces"))
            .hint("split the selection into smaller parts"));
    }
    Ok(())
}

/// Merges neighbours of a sorted list of disjoint ranges, greedily.
fn join_regular(ranges: Vec<StridedRange>) -> Vec<StridedRange> {
    let mut out: Vec<StridedRange> = Vec::with_capacity(ranges.len().min(16));
    for range in ranges {
        match out.last_mut().and_then(|last| last.join(&range).map(|joined| (last, joined))) {
            Some((last, joined)) => *last = joined,
            None => out.push(range),
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn indices(ranges: &[StridedRange]) -> BTreeSet<u64> {
        let mut set = BTreeSet::new();
        for s in ranges {
            for k in 0..s.count {
                for b in 0..s.block {
                    assert!(set.insert(s.start + k * s.stride + b), "pieces overlap");
                }
            }
        }
        set
    }

    fn range() -> impl Strategy<Value = StridedRange> {
        (0u64..20, 1u64..6, 1u64..6, 0u64..5).prop_map(|(start, block, count, gap)| {
            StridedRange::new(start, block + gap, count, block).unwrap().unwrap()
        })
    }

    /// Long ranges with too many blocks to enumerate.
    fn huge() -> impl Strategy<Value = StridedRange> {
        (0u64..1 << 40, 1u64..1 << 20, 1u64..1 << 40, 0u64..1 << 20).prop_map(|(start, block, count, gap)| {
            StridedRange::new(start, block + gap, count, block).unwrap().unwrap()
        })
    }

    proptest! {
        #[test]
        fn huge_ranges_are_handled_quickly(a in huge(), b in huge()) {
            let overlap = a.overlaps(&b);
            prop_assert_eq!(overlap, b.overlaps(&a));
            if let Ok(common) = a.intersect(&b) {
                prop_assert_eq!(overlap, !common.is_empty());
                for piece in &common {
                    prop_assert!(piece.is_inside(&a) && piece.is_inside(&b));
                }
                if let Ok(rest) = a.subtract(&b) {
                    let len = |ranges: &[StridedRange]| ranges.iter().map(StridedRange::len).sum::<u64>();
                    prop_assert_eq!(len(&common) + len(&rest), a.len());
                }
            }
        }

        #[test]
        fn set_operations_match_sets(a in range(), b in range(), lo in 0u64..40, len in 0u64..40) {
            let (x, y) = (indices(&[a]), indices(&[b]));
            prop_assert_eq!(indices(&a.intersect(&b).unwrap()), &x & &y);
            prop_assert_eq!(indices(&a.subtract(&b).unwrap()), &x - &y);
            prop_assert_eq!(a.overlaps(&b), !x.is_disjoint(&y));
            let mut cut = Vec::new();
            a.clip(lo, lo + len, &mut cut);
            prop_assert!(cut.len() <= 3);
            prop_assert_eq!(indices(&cut), x.iter().copied().filter(|i| (lo..lo + len).contains(i)).collect());
            for i in 0..80 {
                prop_assert_eq!(a.contains(i), x.contains(&i));
                prop_assert_eq!(a.count_below(i), x.range(..i).count() as u64);
                prop_assert_eq!(a.first_from(i), x.range(i..).next().copied());
            }
            prop_assert_eq!(a.is_inside(&b), x.is_subset(&y));
            if let Some(joined) = a.join(&b) { prop_assert_eq!(indices(&[joined]), &x | &y); }
        }
    }

    #[test]
    fn bad_ranges_are_refused() {
        assert!(StridedRange::new(0, 1, 2, 3).is_err());
        assert!(StridedRange::new(u64::MAX, 1, 1, 1).is_err());
        assert!(StridedRange::new(0, u64::MAX / 2, 5, 1).is_err());
        assert_eq!(StridedRange::new(3, 1, 0, 1).unwrap(), None);
    }
}
