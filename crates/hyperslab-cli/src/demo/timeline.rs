//! When one rank computed, waited for I/O, and had I/O in the background.

use hyperslab_core::{Error, Result};
use hyperslab_run::RankMeasurement;

/// A stretch of time: from, to, in seconds since the begin of the run.
pub type Interval = (f64, f64);

/// One run of one rank. What is no waiting is computing: making the data to write is part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// How long the run took.
    pub total: f64,
    /// I/O calls, in order.
    pub waiting: Vec<Interval>,
    /// Storage at work while the program did what it liked, in order and without overlap.
    pub background: Vec<Interval>,
}

impl Timeline {
    /// From what the runner measured: `samples` is its file of calls, whose clock stands still while the rank computes,
    /// and `computes` are the numbers of the steps that compute. All are taken as equally long. `background` counts
    /// from the first call.
    pub fn new(samples: &str, computes: &[u64], measured: &RankMeasurement, background: Vec<Interval>) -> Result<Self> {
        let stood_still = (measured.wall - measured.observed).max(0.0) / computes.len().max(1) as f64;
        let mut waiting = Vec::new();
        for call in Call::read_all(samples)? {
            let from = call.start + stood_still * computes.partition_point(|step| *step < call.step) as f64;
            waiting.push((from, from + call.seconds));
        }
        let first = waiting.first().map_or(0.0, |(from, _)| *from);
        let background = merged(background.into_iter().map(|(from, to)| (first + from, first + to)).collect());
        Ok(Self { total: measured.wall, waiting, background })
    }

    /// Seconds that the program spent in I/O calls.
    pub fn blocked(&self) -> f64 {
        length(&self.waiting)
    }

    /// Seconds of I/O in the background.
    pub fn in_background(&self) -> f64 {
        length(&self.background)
    }

    /// Seconds of I/O in the background while the program was not in an I/O call.
    pub fn hidden(&self) -> f64 {
        let waited: f64 = self.background.iter().map(|interval| overlap(&self.waiting, *interval)).sum();
        self.in_background() - waited
    }
}

/// How much of `of` lies in `intervals`.
pub fn overlap(intervals: &[Interval], of: Interval) -> f64 {
    intervals.iter().map(|(from, to)| (to.min(of.1) - from.max(of.0)).max(0.0)).sum()
}

fn length(intervals: &[Interval]) -> f64 {
    intervals.iter().map(|(from, to)| to - from).sum()
}

/// In order, with those that overlap made one.
fn merged(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<Interval> = Vec::new();
    for (from, to) in intervals {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// A line of the file of calls.
struct Call {
    step: u64,
    start: f64,
    seconds: f64,
}

impl Call {
    fn read_all(samples: &str) -> Result<Vec<Self>> {
        let bad = |what: String| Error::invalid("read samples", what);
        let mut lines = samples.lines();
        let heads: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
        let column = |name: &str| {
            heads.iter().position(|head| *head == name).ok_or_else(|| bad(format!("there is no column {name}")))
        };
        let (step, start, seconds) = (column("step")?, column("start_seconds")?, column("seconds")?);
        lines
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let number = |at: usize| {
                    let number = cells.get(at).and_then(|cell| cell.parse::<f64>().ok());
                    number.ok_or_else(|| bad(format!("{line:?} is no call")))
                };
                Ok(Self { step: number(step)? as u64, start: number(start)?, seconds: number(seconds)? })
            })
            .collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two time steps of 1 s, whose writes of 0.5 s are in the background; the second is waited for.
    pub fn example() -> Timeline {
        let samples = "step,operation,start_seconds,seconds,bytes\n0,open_file,0.0,0.0,0\n2,write,0.1,0.1,8\n\
                       4,write,0.2,0.1,8\n5,flush,0.3,0.5,0\n";
        let measured = RankMeasurement { wall: 2.8, observed: 0.8, ..Default::default() };
        Timeline::new(samples, &[1, 3], &measured, vec![(2.3, 2.8), (1.2, 1.5), (1.4, 1.7)]).unwrap()
    }

    #[test]
    fn calls_come_after_the_computing_before_them() {
        let line = example();
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        for (found, expected) in line.waiting.iter().zip([(0.0, 0.0), (1.1, 1.2), (2.2, 2.3), (2.3, 2.8)]) {
            near(found.0, expected.0);
            near(found.1, expected.1);
        }
        near(line.blocked(), 0.7);
        assert_eq!(line.background, [(1.2, 1.7), (2.3, 2.8)]);
        near(line.in_background(), 1.0);
        near(line.hidden(), 0.5);
    }

    #[test]
    fn files_of_calls_that_make_no_sense_are_refused() {
        let read = |text: &str| Timeline::new(text, &[], &RankMeasurement::default(), Vec::new());
        assert!(read("step,start_seconds,seconds\n").is_ok());
        for bad in ["", "step,seconds\n", "step,start_seconds,seconds\n1,2\n", "step,start_seconds,seconds\na,b,c\n"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
