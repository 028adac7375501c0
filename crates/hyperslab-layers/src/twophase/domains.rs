//! File domains: which aggregator accesses which part of the range in which round.
//!
//! All kinds of domains consist of lanes: contiguous parts of the range, each with one or more aggregators, to which its
//! units go in turn. Every lane is processed in windows, one per round.

use super::options::{Options, Sharing};
use std::ops::Range;

/// A contiguous part of the accessed range, and its aggregators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lane {
    /// Byte range in storage order.
    pub range: Range<u64>,
    /// Index of its first aggregator.
    pub first: usize,
    /// Number of its aggregators.
    pub count: usize,
    /// Length of the units that they take in turn.
    unit: u64,
    /// Length of a window.
    step: u64,
}

/// The input of a plan of domains, the same on all ranks.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// From the first to the last byte accessed by any rank, in storage order; not empty.
    pub range: Range<u64>,
    /// Indivisible length: an element, or a chunk. The range begins and ends at multiples of it.
    pub grain: u64,
    /// Total length accessed by all ranks.
    pub bytes: u64,
    /// How many ranks access a byte, on average and at least 1. Windows shrink by as much, since everyone's bytes of a
    /// window are in memory together.
    pub crowding: u64,
}

impl Lane {
    /// Length of a window.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Number of windows.
    pub fn windows(&self) -> u64 {
        (self.range.end - self.range.start).div_ceil(self.step)
    }

    /// The byte range of a window.
    pub fn window(&self, number: u64) -> Range<u64> {
        let start = self.range.start + number * self.step;
        start..start.saturating_add(self.step).min(self.range.end)
    }

    /// The window that contains `place`, a byte of the lane.
    pub fn window_at(&self, place: u64) -> Range<u64> {
        self.window((place - self.range.start) / self.step)
    }

    /// The index of the aggregator of `place`, and the begin of the next aggregator's part.
    pub fn aggregator(&self, place: u64) -> (usize, u64) {
        if self.count == 1 {
            return (self.first, self.range.end);
        }
        let unit = place / self.unit;
        (self.first + (unit % self.count as u64) as usize, (unit + 1).saturating_mul(self.unit))
    }

    /// Offset of `place` in its aggregator's buffer for `window`, which has that aggregator's units contiguously.
    pub fn in_buffer(&self, window: &Range<u64>, place: u64) -> u64 {
        let from_start = place - window.start;
        if self.count == 1 {
            return from_start;
        }
        // Windows begin at a unit and hold as many of one aggregator as of another.
        from_start / self.unit / self.count as u64 * self.unit + from_start % self.unit
    }
}

/// The non-empty lanes of a transfer for `aggregators` aggregators.
pub(super) fn lanes(options: &Options, access: &Access, aggregators: usize) -> Vec<Lane> {
    let Access { range, grain, crowding, .. } = access;
    let unit = match options.sharing {
        Sharing::Even => *grain,
        _ => options.unit.div_ceil(*grain).saturating_mul(*grain),
    };
    let per_lane = match options.sharing {
        Sharing::Even | Sharing::Aligned => 1,
        Sharing::StaticCyclic => aggregators,
        Sharing::GroupCyclic => options.group.min(aggregators),
    };
    let buffer = options.buffer / crowding;
    // Units count from the begin of the array, equal parts from the begin of the accessed range.
    let origin = if options.sharing == Sharing::Even { range.start } else { range.start / unit * unit };
    let units = (range.end - origin).div_ceil(unit);
    let boundary = |aggregator: usize| {
        let unit_number = u128::from(units) * aggregator as u128 / aggregators as u128;
        let place = u128::from(origin) + unit_number * u128::from(unit);
        u64::try_from(place).unwrap_or(u64::MAX).clamp(range.start, range.end)
    };
    (0..aggregators)
        .step_by(per_lane)
        .map(|first| {
            let count = per_lane.min(aggregators - first);
            let end = if first + count == aggregators { range.end } else { boundary(first + count) };
            // Several aggregators need a whole unit each; a single one can process a unit in pieces.
            let whole = if count > 1 || buffer >= unit { unit } else { *grain };
            let step = (buffer / whole).max(1).saturating_mul(whole).saturating_mul(count as u64);
            let start = boundary(first);
            // Windows of a lane that deals units out begin at a unit.
            let start = if count > 1 { start / unit * unit } else { start };
            Lane { range: start..end, first, count, unit, step }
        })
        .filter(|lane| lane.range.start < lane.range.end)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sharing: Sharing, unit: u64, buffer: u64, group: usize) -> Options {
        Options { aggregators: None, sharing, unit, buffer, group }
    }

    fn access(range: Range<u64>, grain: u64) -> Access {
        Access { range, grain, bytes: 0, crowding: 1 }
    }

    /// The aggregator of every `grain` of the range.
    fn owners(options: &Options, access: &Access, aggregators: usize) -> Vec<usize> {
        let lanes = lanes(options, access, aggregators);
        (access.range.start..access.range.end)
            .step_by(access.grain as usize)
            .map(|place| {
                let mut owners = lanes.iter().filter(|lane| lane.range.contains(&place));
                let lane = owners.next().unwrap();
                assert!(owners.next().is_none(), "{place} lies in two lanes");
                let window = lane.window_at(place);
                assert!(window.contains(&place) && window.start >= lane.range.start && window.end <= lane.range.end);
                let (owner, end) = lane.aggregator(place);
                assert!(end > place && owner >= lane.first && owner < lane.first + lane.count);
                assert!(lane.in_buffer(&window, place) < lane.step / lane.count as u64);
                owner
            })
            .collect()
    }

    #[test]
    fn the_four_kinds_deal_out_as_described() {
        let even = owners(&options(Sharing::Even, 8, 4, 1), &access(10..20, 2), 2);
        assert_eq!(even, [0, 0, 1, 1, 1]);
        let aligned = owners(&options(Sharing::Aligned, 8, 4, 1), &access(4..40, 4), 2);
        assert_eq!(aligned, [0, 0, 0, 1, 1, 1, 1, 1, 1], "cut at 16");
        let cyclic = owners(&options(Sharing::StaticCyclic, 8, 8, 1), &access(12..44, 4), 3);
        assert_eq!(cyclic, [1, 2, 2, 0, 0, 1, 1, 2], "unit i belongs to i mod 3");
        let group = owners(&options(Sharing::GroupCyclic, 4, 8, 2), &access(0..32, 4), 4);
        assert_eq!(group, [0, 1, 0, 1, 2, 3, 2, 3]);
        let odd = owners(&options(Sharing::GroupCyclic, 4, 8, 2), &access(0..24, 4), 3);
        assert_eq!(odd, [0, 1, 0, 1, 2, 2], "a smaller last group has a smaller part");
    }

    #[test]
    fn hostile_ranges_do_not_overflow() {
        let end = i64::MAX as u64;
        for sharing in [Sharing::Even, Sharing::Aligned, Sharing::StaticCyclic, Sharing::GroupCyclic] {
            for (range, grain) in [(0..end, 1), (end - 1..end, 1), (0..end, end), (0..1 << 62, 1 << 61)] {
                let access = Access { range: range.clone(), grain, bytes: 0, crowding: u64::MAX };
                let lanes = lanes(&options(sharing, 1 << 30, 1 << 30, 4), &access, 7);
                assert!(lanes.iter().any(|lane| lane.range.contains(&range.start)));
                for lane in lanes {
                    let last = lane.range.end - 1;
                    assert!(lane.window_at(last).contains(&last));
                    assert!(lane.aggregator(last).1 > last);
                }
            }
        }
    }
}
