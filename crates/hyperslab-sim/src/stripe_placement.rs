//! Which storage targets hold a range of a file's bytes.

/// How a file is spread over storage targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripePlacement {
    /// Bytes of a stripe.
    pub size: u64,
    /// Targets that stripes go to in turn.
    pub count: u64,
    /// Target of the first stripe.
    pub first: u64,
    /// Targets of the system; stripes wrap around at the last one.
    pub targets: u64,
}

/// A contiguous range of the part of a file that one target holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetRange {
    /// Number of the target.
    pub target: u64,
    /// First byte in the target's object.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl StripePlacement {
    /// The ranges of each target that `len` bytes from `offset` lie in: at most one for each target, since stripes of one
    /// target follow each other in its object.
    pub fn ranges(&self, offset: u64, len: u64) -> impl Iterator<Item = TargetRange> {
        let (size, count) = (self.size.max(1), self.count.clamp(1, self.targets.max(1)));
        let (first, targets) = (self.first, self.targets.max(1));
        let end = offset.saturating_add(len);
        let (from, to) = (offset / size, end.saturating_sub(1) / size);
        let stripes = if len == 0 { 0 } else { (to - from + 1).min(count) };
        (from..from.saturating_add(stripes)).map(move |stripe| {
            let last = stripe + (to - stripe) / count * count;
            let begin = stripe / count * size + if stripe == from { offset % size } else { 0 };
            let stop = last / count * size + if last == to { (end - 1) % size + 1 } else { size };
            TargetRange { target: (first + stripe % count) % targets, offset: begin, len: stop - begin }
        })
    }
}

/// Extents of more stripes are looked at by targets, not by stripes.
const FEW: u64 = 64;

impl StripePlacement {
    /// The same in the order of the file, with the number of the stripe in the extent: a range for every stripe, unless these
    /// are many.
    pub fn in_order(&self, offset: u64, len: u64) -> Vec<(u64, TargetRange)> {
        let size = self.size.max(1);
        let end = offset.saturating_add(len);
        if len == 0 {
            return Vec::new();
        }
        let (from, to) = (offset / size, (end - 1) / size);
        if to - from >= FEW {
            return self.ranges(offset, len).enumerate().map(|(number, range)| (number as u64, range)).collect();
        }
        let part = |stripe: u64| {
            let (begin, stop) = (offset.max(stripe * size), end.min((stripe + 1).saturating_mul(size)));
            self.ranges(begin, stop - begin).next().map(|range| (stripe - from, range))
        };
        (from..=to).filter_map(part).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn every_byte_is_on_the_target_of_its_stripe(
            size in 1_u64..9, count in 1_u64..6, first in 0_u64..6, offset in 0_u64..100, len in 0_u64..120
        ) {
            let striping = StripePlacement { size, count, first, targets: 6 };
            let mut held: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for byte in offset..offset + len {
                let stripe = byte / size;
                let target = (first + stripe % count) % 6;
                held.entry(target).or_default().push(stripe / count * size + byte % size);
            }
            let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for range in striping.ranges(offset, len) {
                found.entry(range.target).or_default().extend(range.offset..range.offset + range.len);
            }
            prop_assert_eq!(held, found);
        }
    }
}
