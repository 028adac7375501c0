//! How ranks share what a machine gets done.

use crate::epochs::saturating;
use hyperslab_core::{CacheState, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// What ranks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankKind {
    /// Threads of one process.
    Threads,
    /// Processes of an MPI job.
    Processes,
}

impl RankKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Threads, Self::Processes];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

/// What a run finds when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Whether files are in memory.
    pub warmth: CacheState,
    /// What its ranks are.
    pub ranks: RankKind,
}

/// How ranks of a kind share one way of storing: what was found for some numbers of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentionCurve {
    /// By number of ranks, ascending; at least one.
    crowds: Vec<Contention>,
}

/// What so many ranks get done together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// How many.
    pub ranks: usize,
    /// Seconds that making a container or an array takes longer than by one thread.
    pub create: f64,
    /// Seconds that opening one takes longer.
    pub open: f64,
    /// How many times as much they read in a time as one thread does alone.
    pub read: f64,
    /// How many times as much they write.
    pub write: f64,
}

impl ContentionCurve {
    /// Ranks take turns.
    pub fn turns() -> Self {
        Self { crowds: vec![Contention { ranks: 1, create: 0.0, open: 0.0, read: 1.0, write: 1.0 }] }
    }

    /// Refuses what makes no sense: no crowd, one that is there twice, or one that gets nothing done.
    pub fn new(mut crowds: Vec<Contention>) -> Result<Self> {
        crowds.sort_by_key(|crowd| crowd.ranks);
        let twice = crowds.windows(2).any(|two| two[0].ranks == two[1].ranks);
        let sensible = |crowd: &Contention| {
            let (times, rates) = ([crowd.create, crowd.open], [crowd.read, crowd.write]);
            crowd.ranks > 0
                && times.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0)
                && rates.iter().all(|rate| rate.is_finite() && *rate > 0.0)
        };
        match !twice && !crowds.is_empty() && crowds.iter().all(sensible) {
            true => Ok(Self { crowds }),
            false => Err(Error::new(ErrorKind::Corrupt, "read profile", "ranks cannot share anything like that")),
        }
    }

    /// What was found.
    pub fn crowds(&self) -> &[Contention] {
        &self.crowds
    }

    /// What `ranks` of them get done: between numbers that were measured, in between; beyond the largest, what that one does,
    /// since more cannot do more once something is in use all the time.
    pub fn of(&self, ranks: usize) -> Contention {
        let after = self.crowds.partition_point(|crowd| crowd.ranks <= ranks);
        let (low, high) = (self.crowds[after.max(1) - 1], self.crowds[after.min(self.crowds.len() - 1)]);
        if low.ranks >= high.ranks || ranks <= low.ranks {
            return Contention { ranks, ..low };
        }
        let part = (ranks as f64 / low.ranks as f64).ln() / (high.ranks as f64 / low.ranks as f64).ln();
        let between = |low: f64, high: f64| low + part * (high - low);
        Contention {
            ranks,
            create: between(low.create, high.create),
            open: between(low.open, high.open),
            read: between(low.read, high.read),
            write: between(low.write, high.write),
        }
    }

    /// The most that was read and written at a time.
    pub fn most(&self) -> (f64, f64) {
        self.crowds.iter().fold((0.0, 0.0), |(read, write), crowd| (crowd.read.max(read), crowd.write.max(write)))
    }
}

impl Contention {
    /// Seconds that making and opening so many containers and arrays takes longer.
    pub fn around(&self, made: u64, opened: u64) -> f64 {
        self.create * made as f64 + self.open * opened as f64
    }

    /// The time of ranks of which the slowest needs `alone` seconds as the only thread, and which need `all` one after the other.
    pub fn seconds(&self, reading: bool, alone: f64, all: f64) -> f64 {
        saturating(alone, all, if reading { self.read } else { self.write })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn crowd(ranks: usize, create: f64, read: f64, write: f64) -> Contention {
        Contention { ranks, create, open: 2.0 * create, read, write }
    }

    #[test]
    fn numbers_that_were_not_measured_lie_between() {
        let sharing = ContentionCurve::new(vec![crowd(4, 0.4, 3.0, 1.0), crowd(1, 0.0, 1.0, 1.0)]).unwrap();
        assert_eq!(sharing.of(1), crowd(1, 0.0, 1.0, 1.0));
        assert_eq!(sharing.of(2), crowd(2, 0.2, 2.0, 1.0));
        assert_eq!(sharing.of(4), crowd(4, 0.4, 3.0, 1.0));
        assert_eq!(sharing.of(1000), crowd(1000, 0.4, 3.0, 1.0));
        assert_eq!(ContentionCurve::turns().of(7), crowd(7, 0.0, 1.0, 1.0));
        let large = ContentionCurve::new(vec![crowd(8, 0.4, 3.0, 1.0)]).unwrap();
        assert_eq!(large.of(2), crowd(2, 0.4, 3.0, 1.0));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for crowds in [
            vec![],
            vec![crowd(1, 0.0, 1.0, 1.0), crowd(1, 0.0, 1.0, 1.0)],
            vec![crowd(0, 0.0, 1.0, 1.0)],
            vec![crowd(1, -1.0, 1.0, 1.0)],
            vec![crowd(1, 0.0, 0.0, 1.0)],
            vec![crowd(1, 0.0, 1.0, f64::INFINITY)],
        ] {
            assert!(ContentionCurve::new(crowds.clone()).is_err(), "{crowds:?}");
        }
    }
}
