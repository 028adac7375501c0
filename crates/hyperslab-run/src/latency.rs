//! How long calls took, by kind. Bounded memory however many calls there are.

use hdrhistogram::Histogram;
use hyperslab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A kind of timed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Opening or creating a container.
    OpenFile,
    /// Creating a group.
    Group,
    /// Creating an array.
    Create,
    /// Opening an array.
    Open,
    /// Writing elements.
    Write,
    /// Reading elements.
    Read,
    /// Changing a shape.
    Resize,
    /// Setting an attribute.
    Attribute,
    /// Flushing a container.
    Flush,
    /// Closing an array.
    CloseArray,
    /// Closing a container.
    CloseFile,
    /// Waiting for other ranks.
    Barrier,
}

impl Operation {
    const ALL: [Self; 12] = [
        Self::OpenFile,
        Self::Group,
        Self::Create,
        Self::Open,
        Self::Write,
        Self::Read,
        Self::Resize,
        Self::Attribute,
        Self::Flush,
        Self::CloseArray,
        Self::CloseFile,
        Self::Barrier,
    ];

    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenFile => "open_file",
            Self::Group => "group",
            Self::Create => "create",
            Self::Open => "open",
            Self::Write => "write",
            Self::Read => "read",
            Self::Resize => "resize",
            Self::Attribute => "attribute",
            Self::Flush => "flush",
            Self::CloseArray => "close_array",
            Self::CloseFile => "close_file",
            Self::Barrier => "barrier",
        }
    }
}

/// How long the calls of one kind took, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of calls.
    pub count: u64,
    /// Sum.
    pub total: f64,
    /// Fastest.
    pub min: f64,
    /// Half were at most this long (within 0.1 %).
    pub p50: f64,
    /// Nine tenths were at most this long.
    pub p90: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// Slowest.
    pub max: f64,
}

/// The times of many calls, of one rank or of many, by kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Counted>", into = "Vec<Counted>")]
pub struct CallTimes {
    histograms: [Option<Histogram<u64>>; Operation::ALL.len()],
    totals: [Duration; Operation::ALL.len()],
}

impl CallTimes {
    /// Adds one call.
    pub(crate) fn record(&mut self, operation: Operation, took: Duration) -> Result<()> {
        self.totals[operation as usize] += took;
        let nanoseconds = took.as_nanos().min(u128::from(u64::MAX)) as u64;
        self.histogram(operation)?.record(nanoseconds).map_err(failed)
    }

    /// Adds the calls of another rank or repetition.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        for operation in Operation::ALL {
            if let Some(more) = &other.histograms[operation as usize] {
                self.totals[operation as usize] += other.totals[operation as usize];
                self.histogram(operation)?.add(more).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Seconds in all calls of one kind.
    pub fn total(&self, operation: Operation) -> f64 {
        self.totals[operation as usize].as_secs_f64()
    }

    /// Every kind of call that happened, by name.
    pub fn summaries(&self) -> BTreeMap<String, Latency> {
        Operation::ALL
            .into_iter()
            .filter_map(|operation| {
                let histogram = self.histograms[operation as usize].as_ref()?;
                Some((operation.name().to_owned(), summary(histogram, self.total(operation))))
            })
            .collect()
    }

    fn histogram(&mut self, operation: Operation) -> Result<&mut Histogram<u64>> {
        let place = &mut self.histograms[operation as usize];
        match place {
            Some(histogram) => Ok(histogram),
            // Grows with the longest time met: some 30 KiB for a second, 100 KiB for an hour.
            None => Ok(place.insert(Histogram::new(3).map_err(failed)?)),
        }
    }
}

/// The calls of one kind, as one process tells another: nothing is lost that a histogram keeps.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    operation: Operation,
    total: Duration,
    /// Nanoseconds, and how many calls took that long.
    times: Vec<(u64, u64)>,
}

impl From<CallTimes> for Vec<Counted> {
    fn from(calls: CallTimes) -> Self {
        let counted = |operation: Operation| {
            let histogram = calls.histograms[operation as usize].as_ref()?;
            let times =
                histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
            Some(Counted { operation, total: calls.totals[operation as usize], times })
        };
        Operation::ALL.into_iter().filter_map(counted).collect()
    }
}

impl TryFrom<Vec<Counted>> for CallTimes {
    type Error = Error;

    fn try_from(counted: Vec<Counted>) -> Result<Self> {
        let mut calls = Self::default();
        for Counted { operation, total, times } in counted {
            calls.totals[operation as usize] += total;
            let histogram = calls.histogram(operation)?;
            times.into_iter().try_for_each(|(time, count)| histogram.record_n(time, count)).map_err(failed)?;
        }
        Ok(calls)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::invalid("measure", error.to_string())
}

fn summary(histogram: &Histogram<u64>, total: f64) -> Latency {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    Latency {
        count: histogram.len(),
        total,
        min: seconds(histogram.min()),
        p50: seconds(histogram.value_at_quantile(0.5)),
        p90: seconds(histogram.value_at_quantile(0.9)),
        p99: seconds(histogram.value_at_quantile(0.99)),
        max: seconds(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn merged_calls_are_those_of_both() {
        let (mut one, mut two) = (CallTimes::default(), CallTimes::default());
        for milliseconds in 1..=50 {
            one.record(Operation::Write, Duration::from_millis(milliseconds)).unwrap();
            two.record(Operation::Write, Duration::from_millis(50 + milliseconds)).unwrap();
        }
        two.record(Operation::Flush, Duration::from_secs(7)).unwrap();
        one.add(&two).unwrap();
        let all = one.summaries();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["flush", "write"]);
        let write = &all["write"];
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 2e-3;
        assert_eq!(write.count, 100);
        assert!(near(write.total, 5.05) && near(write.min, 0.001) && near(write.max, 0.1), "{write:?}");
        assert!(near(write.p50, 0.05) && near(write.p90, 0.09) && near(write.p99, 0.099), "{write:?}");
        assert!(near(all["flush"].total, 7.0));
        let told: CallTimes = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        assert_eq!(told.summaries(), all);
    }
}
