//! Timing history of epochs, for one storage and stack.

use super::choice::{Choice, Each};
use super::cost::Expected;
use super::request_class::RequestClass;
use super::throughput::{Sample, forecast};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A finished epoch, as the slowest rank measured it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    pub choice: Choice,
    pub class: RequestClass,
    pub ranks: u32,
    /// Bytes per rank.
    pub bytes: f64,
    /// Compute time in seconds.
    pub compute: f64,
    /// Part of it that transfers can overlap with; unknown for the last of many epochs.
    pub room: Option<f64>,
    /// Seconds in transfers.
    pub calls: f64,
    /// Part of it not spent waiting for the background: the cost of copying.
    pub hand_over: f64,
    /// Bytes drained in the background since the preceding epoch, and the seconds spent.
    pub behind: Option<(f64, f64)>,
    /// Whether nothing went through the background.
    pub straight: bool,
    /// Whether fresh memory was used, a one-time cost.
    pub fresh: bool,
}

impl Observed {
    /// Seconds of the whole epoch.
    pub fn seconds(&self) -> f64 {
        self.compute + self.calls
    }
}

/// Weight of the latest epoch in averages.
const LATEST: f64 = 0.4;
/// Maximum samples of a kind.
const MOST_SAMPLES: usize = 24;
/// Maximum number of classes.
const MOST_CLASSES: usize = 24;
/// Upper bound for the epoch count read from a file.
const MOST_EPOCHS: u64 = 1 << 53;
/// Copy time into reused memory relative to fresh memory.
const USED_BEFORE: f64 = 0.5;
/// Default overhead of queueing a request, in seconds.
const HANDING_OVER: f64 = 1e-6;
/// Default cost of an append relative to a copy.
const APPEND_PER_COPY: f64 = 2.0;

/// The history of one class of epochs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassHistory {
    pub epochs: u64,
    /// Exponentially weighted averages.
    pub compute: f64,
    pub bytes: f64,
    /// The part of computing that transfers can overlap with.
    pub room: f64,
    /// Epoch in which each choice was last measured; 0 for never.
    pub measured: Each<u64>,
    pub direct: Vec<Sample>,
    pub behind: Vec<Sample>,
    pub copy: Vec<Sample>,
    /// Copy samples into fresh memory, until there are better ones.
    #[serde(default)]
    pub fresh_copy: Option<Sample>,
    pub append: Vec<Sample>,
    pub drain: Vec<Sample>,
}

/// The histories of all classes, for one storage key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    pub classes: BTreeMap<RequestClass, ClassHistory>,
    /// Class of the latest epoch.
    #[serde(default)]
    pub latest: Option<RequestClass>,
}

/// Forecast of the next epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forecast {
    pub expected: Expected,
    /// Whether transfer times are known.
    pub transfer_known: bool,
    /// Number of epochs of this class.
    pub epochs: u64,
    pub measured: Each<u64>,
}

/// What is known before the first transfer of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UpcomingEpoch {
    pub class: RequestClass,
    pub ranks: u32,
    /// Bytes of its first request; 0 if unknown.
    pub request: f64,
    /// Compute time just before, in seconds.
    pub pause: f64,
    /// Default memory copy rate, in bytes per second.
    pub copy_rate: f64,
}

impl History {
    /// Adds a finished epoch.
    pub fn learn(&mut self, observed: &Observed) {
        if !self.classes.contains_key(&observed.class) && self.classes.len() >= MOST_CLASSES {
            let rarest = self.classes.iter().min_by_key(|(_, known)| known.epochs).map(|(class, _)| *class);
            rarest.and_then(|class| self.classes.remove(&class));
        }
        self.latest = Some(observed.class);
        self.classes.entry(observed.class).or_default().learn(observed);
    }

    /// Forecasts the next epoch.
    pub fn forecast(&self, coming: &UpcomingEpoch) -> Forecast {
        let known = self.classes.get(&coming.class);
        let bytes = known.map_or(coming.request, |known| known.bytes).max(1.0);
        let seconds = |of: fn(&ClassHistory) -> &Vec<Sample>| {
            // The samples of the class come last, as the latest.
            let others = self.classes.iter().filter(|(class, _)| class.writes == coming.class.writes);
            let others = others.filter(|(class, _)| **class != coming.class).map(|(_, known)| known);
            let samples: Vec<Sample> = others.chain(known).flat_map(|known| of(known).iter().copied()).collect();
            forecast(&samples, coming.ranks, bytes)
        };
        let (direct, behind) = (seconds(|known| &known.direct), seconds(|known| &known.behind));
        let fresh =
            known.and_then(|known| known.fresh_copy).map(|sample| sample.seconds * bytes / sample.bytes * USED_BEFORE);
        // At a flush, the next request is unknown.
        let requests = if coming.request > 0.0 { bytes / coming.request } else { 1.0 };
        let guess = bytes / coming.copy_rate + requests * HANDING_OVER;
        let copy = seconds(|known| &known.copy).or(fresh).unwrap_or(guess);
        let transfer = direct.or(behind);
        // Without known transfer times, only the present pause indicates overlap.
        let compute =
            known.filter(|_| transfer.is_some()).map_or(coming.pause, |known| mixed(known.compute, coming.pause));
        let room = compute * known.map_or(1.0, |known| known.room);
        let expected = Expected {
            compute,
            room,
            direct: transfer.unwrap_or(copy),
            behind: behind.or(direct).unwrap_or(copy),
            copy,
            append: seconds(|known| &known.append).unwrap_or(APPEND_PER_COPY * copy),
            drain: seconds(|known| &known.drain).or(transfer).unwrap_or(copy),
        };
        Forecast {
            expected,
            transfer_known: transfer.is_some(),
            epochs: known.map_or(0, |known| known.epochs),
            measured: known.map(|known| known.measured).unwrap_or_default(),
        }
    }

    /// Whether these values are plausible measurements.
    pub fn is_sane(&self) -> bool {
        self.classes.len() <= MOST_CLASSES && self.classes.values().all(ClassHistory::is_sane)
    }
}

/// Exponentially weighted average.
fn mixed(before: f64, latest: f64) -> f64 {
    before + LATEST * (latest - before)
}

fn push(samples: &mut Vec<Sample>, sample: Sample) {
    if sample.is_sane() {
        if samples.len() >= MOST_SAMPLES {
            samples.remove(0);
        }
        samples.push(sample);
    }
}

impl ClassHistory {
    fn learn(&mut self, observed: &Observed) {
        let first = self.epochs == 0;
        self.epochs += 1;
        let average = |before: f64, latest: f64| if first { latest } else { mixed(before, latest) };
        self.compute = average(self.compute, observed.compute);
        self.bytes = average(self.bytes, observed.bytes);
        if first {
            self.room = 1.0;
        }
        if let Some(room) = observed.room.filter(|_| observed.compute > 0.0) {
            let share = (room / observed.compute).clamp(0.0, 1.0);
            self.room = if first { share } else { mixed(self.room, share) };
        }
        self.measured[observed.choice.index()] = self.epochs;
        let sample = |bytes, seconds| Sample { ranks: observed.ranks, bytes, seconds };
        let in_background =
            observed.behind.map(|(bytes, seconds)| sample(observed.bytes, seconds * observed.bytes / bytes));
        let handed_over = sample(observed.bytes, observed.hand_over);
        match observed.choice {
            Choice::Sync => push(&mut self.direct, sample(observed.bytes, observed.calls)),
            Choice::Async if observed.straight => push(&mut self.direct, sample(observed.bytes, observed.calls)),
            Choice::Async => {
                match observed.fresh {
                    true if self.copy.is_empty() => self.fresh_copy = Some(handed_over).filter(Sample::is_sane),
                    true => {}
                    false => {
                        self.fresh_copy = None;
                        push(&mut self.copy, handed_over);
                    }
                }
                in_background.into_iter().for_each(|sample| push(&mut self.behind, sample));
            }
            Choice::Log => {
                push(&mut self.append, handed_over);
                in_background.into_iter().for_each(|sample| push(&mut self.drain, sample));
            }
        }
    }

    fn is_sane(&self) -> bool {
        let number = |value: f64| value.is_finite() && value >= 0.0;
        let lists = [&self.direct, &self.behind, &self.copy, &self.append, &self.drain];
        self.epochs <= MOST_EPOCHS
            && number(self.compute)
            && number(self.bytes)
            && (0.0..=1.0).contains(&self.room)
            && self.measured.iter().all(|at| *at <= self.epochs)
            && self.fresh_copy.is_none_or(|sample| sample.is_sane())
            && lists.iter().all(|list| list.len() <= MOST_SAMPLES && list.iter().all(Sample::is_sane))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn observed(choice: Choice, compute: f64, transfer: f64, copy: f64) -> Observed {
        let class = RequestClass::of(1 << 20, true);
        let (calls, behind) = match choice {
            Choice::Sync => (transfer, None),
            _ => (copy, Some((1e6, transfer))),
        };
        let (room, straight, fresh) = (Some(compute), false, false);
        Observed {
            choice,
            class,
            ranks: 1,
            bytes: 1e6,
            compute,
            room,
            calls,
            hand_over: calls,
            behind,
            straight,
            fresh,
        }
    }

    fn coming(pause: f64) -> UpcomingEpoch {
        UpcomingEpoch { class: RequestClass::of(1 << 20, true), ranks: 1, request: 1e6, pause, copy_rate: 1e9 }
    }

    #[test]
    fn computing_is_an_average_in_which_the_latest_counts_most() {
        let mut history = History::default();
        for _ in 0..20 {
            history.learn(&observed(Choice::Sync, 0.1, 0.05, 0.0));
        }
        assert!((history.forecast(&coming(0.1)).expected.compute - 0.1).abs() < 1e-9);
        for _ in 0..4 {
            history.learn(&observed(Choice::Sync, 0.5, 0.05, 0.0));
        }
        assert!(history.forecast(&coming(0.5)).expected.compute > 0.45);
    }

    #[test]
    fn each_way_tells_what_it_can() {
        let mut history = History::default();
        let nothing = history.forecast(&coming(0.2));
        assert!(!nothing.transfer_known && (nothing.expected.copy - 1.001e-3).abs() < 1e-9);
        let small = UpcomingEpoch { class: RequestClass::of(1000, true), request: 1e3, ..coming(0.2) };
        history.learn(&Observed { class: small.class, ..observed(Choice::Sync, 0.2, 0.3, 0.0) });
        assert!((history.forecast(&small).expected.copy - 2e-3).abs() < 1e-9, "a thousand requests of 1 kB");
        let unknown = UpcomingEpoch { request: 0.0, ..small };
        assert!((history.forecast(&unknown).expected.copy - 1.001e-3).abs() < 1e-9, "as at a flush");
        history = History::default();
        history.learn(&observed(Choice::Async, 0.2, 0.3, 0.04));
        let forecast = history.forecast(&coming(0.2));
        assert!(forecast.transfer_known);
        let expected = forecast.expected;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(expected.behind, 0.3) && near(expected.direct, 0.3) && near(expected.copy, 0.04), "{expected:?}");
        history.learn(&observed(Choice::Sync, 0.2, 0.1, 0.0));
        assert!(near(history.forecast(&coming(0.2)).expected.direct, 0.1));
        assert_eq!(history.forecast(&coming(0.2)).measured, [2, 1, 0]);
    }

    #[test]
    fn a_copy_into_fresh_memory_is_replaced_by_a_better_one() {
        let mut history = History::default();
        history.learn(&Observed { fresh: true, ..observed(Choice::Async, 0.2, 0.3, 0.1) });
        assert!((history.forecast(&coming(0.2)).expected.copy - 0.05).abs() < 1e-6);
        history.learn(&observed(Choice::Async, 0.2, 0.3, 0.02));
        history.learn(&Observed { fresh: true, ..observed(Choice::Async, 0.2, 0.3, 0.1) });
        assert!((history.forecast(&coming(0.2)).expected.copy - 0.02).abs() < 1e-6);
    }

    #[test]
    fn it_stays_small() {
        let mut history = History::default();
        for n in 0..200 {
            let class = RequestClass::of(1 << (n % 48), n % 3 == 0);
            history.learn(&Observed { class, ..observed(Choice::ALL[n % 3], 0.1, 0.1, 0.01) });
        }
        assert!(history.is_sane() && history.classes.len() <= MOST_CLASSES);
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
        history.classes.values_mut().next().unwrap().compute = f64::NAN;
        assert!(!history.is_sane());
    }
}
