//! A map from overlapping integer ranges to values, with logarithmic overlap queries.

use std::collections::BTreeMap;

/// Values by inclusive integer ranges. Ranges are grouped by the power of two of their lengths: within a group, only ranges
/// that begin less than that length before a point can contain it.
#[derive(Debug, Clone)]
pub(crate) struct IntervalMap<T> {
    classes: BTreeMap<u32, BTreeMap<(u64, u64), Interval<T>>>,
    inserted: u64,
}

#[derive(Debug, Clone)]
struct Interval<T> {
    last: u64,
    value: T,
}

impl<T> Default for IntervalMap<T> {
    fn default() -> Self {
        Self { classes: BTreeMap::new(), inserted: 0 }
    }
}

impl<T> IntervalMap<T> {
    /// Inserts a range; duplicates are kept.
    pub fn insert(&mut self, first: u64, last: u64, value: T) {
        debug_assert!(first <= last);
        self.classes
            .entry((last - first).checked_ilog2().map_or(0, |log| log + 1))
            .or_default()
            .insert((first, self.inserted), Interval { last, value });
        self.inserted += 1;
    }

    /// The values whose ranges overlap `first..=last`, in no particular order.
    pub fn overlapping(&self, first: u64, last: u64) -> impl Iterator<Item = &T> {
        self.classes.iter().flat_map(move |(class, spans)| {
            // Maximum length of the ranges of this class.
            let reach = 1u64.checked_shl(*class).map_or(u64::MAX, |reach| reach - 1);
            spans
                .range((first.saturating_sub(reach), 0)..=(last, u64::MAX))
                .filter(move |(_, span)| span.last >= first)
                .map(|(_, span)| &span.value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_search_through_all_finds() {
        let (mut spans, mut all, mut seed) = (IntervalMap::default(), Vec::new(), 7u64);
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for value in 0..2000u32 {
            let first = random(10_000);
            let length = 1 << random(14);
            let last = first + random(length);
            spans.insert(first, last, value);
            all.push((first, last, value));
        }
        spans.insert(0, u64::MAX, 2000);
        spans.insert(u64::MAX, u64::MAX, 2001);
        all.extend([(0, u64::MAX, 2000), (u64::MAX, u64::MAX, 2001)]);
        for _ in 0..2000 {
            let first = random(30_000);
            let last = first + random(300);
            for (first, last) in [(first, last), (first, u64::MAX)] {
                let mut found: Vec<u32> = spans.overlapping(first, last).copied().collect();
                found.sort_unstable();
                let wanted: Vec<u32> =
                    all.iter().filter(|span| span.0 <= last && span.1 >= first).map(|span| span.2).collect();
                assert_eq!(found, wanted, "{first} {last}");
            }
        }
    }
}
