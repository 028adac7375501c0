//! When a rank was in calls, so that the time of several ranks is that in which some of them was.
//!
//! Data are made and compared between calls. A rate is of the time in which bytes moved: neither the sum of what ranks took,
//! nor as if they had moved them at the same time when they took turns.

/// The most intervals that are kept; beyond that, short gaps count as calls.
const MOST: usize = 1 << 14;
/// Seconds of a gap that is none.
const SHORTEST_GAP: f64 = 1e-6;

/// Intervals of time in order, in seconds since all ranks began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Busy {
    intervals: Vec<(f64, f64)>,
    gap: f64,
}

impl Busy {
    /// Adds a call, which began after all before it.
    pub fn add(&mut self, from: f64, to: f64) {
        self.gap = self.gap.max(SHORTEST_GAP);
        match self.intervals.last_mut() {
            Some((_, end)) if from - *end <= self.gap => *end = end.max(to),
            _ => self.intervals.push((from, to)),
        }
        while self.intervals.len() > MOST {
            self.gap *= 2.0;
            let all = std::mem::take(&mut self.intervals);
            all.into_iter().for_each(|(from, to)| match self.intervals.last_mut() {
                Some((_, end)) if from - *end <= self.gap => *end = end.max(to),
                _ => self.intervals.push((from, to)),
            });
        }
    }

    /// Seconds of all intervals.
    pub fn seconds(&self) -> f64 {
        self.intervals.iter().map(|(from, to)| to - from).sum()
    }

    /// Seconds in which at least one of `all` was in a call.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Self>) -> f64 {
        let mut intervals: Vec<(f64, f64)> = all.into_iter().flat_map(|busy| busy.intervals.iter().copied()).collect();
        intervals.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut seconds, mut end) = (0.0, f64::NEG_INFINITY);
        for (from, to) in intervals {
            seconds += (to - from.max(end)).max(0.0);
            end = end.max(to);
        }
        seconds
    }

    /// How many intervals there are, and then each of them, as bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.intervals.len() as u64).to_le_bytes());
        bytes.extend(self.intervals.iter().flat_map(|(from, to)| [from.to_le_bytes(), to.to_le_bytes()]).flatten());
    }

    /// Takes what `encode` wrote from the beginning of `bytes`.
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut word = || {
            let (word, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(*word)
        };
        let count = u64::from_le_bytes(word()?);
        let intervals =
            (0..count.min(MOST as u64)).map(|_| Some((f64::from_le_bytes(word()?), f64::from_le_bytes(word()?))));
        Some(Self { intervals: intervals.collect::<Option<_>>()?, gap: 0.0 })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn busy(intervals: &[(f64, f64)]) -> Busy {
        let mut busy = Busy::default();
        intervals.iter().for_each(|(from, to)| busy.add(*from, *to));
        busy
    }

    #[test]
    fn ranks_that_take_turns_are_not_at_it_together() {
        let (one, other) = (busy(&[(0.0, 1.0), (2.0, 3.0)]), busy(&[(1.0, 2.0), (2.5, 3.5)]));
        assert_eq!((Busy::together([&one]), Busy::together([&one, &other])), (2.0, 3.5));
        assert_eq!(Busy::together([]), 0.0);
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        let mut rest = bytes.as_slice();
        assert_eq!(Busy::decode(&mut rest).unwrap().intervals, one.intervals);
        assert!(rest.is_empty() && Busy::decode(&mut &bytes[..20]).is_none());
    }

    #[test]
    fn many_calls_take_bounded_memory_and_never_less_time() {
        let calls: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), f64::from(at) + 0.5)).collect();
        let all = busy(&calls);
        assert!(all.intervals.len() <= MOST);
        assert!(Busy::together([&all]) >= 50_000.0);
    }
}
