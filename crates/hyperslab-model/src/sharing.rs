//! How ranks share what a machine gets done.

use crate::configuration::Class;
use crate::epochs::saturating;
use crate::profile::Warmth;
use hyperslab_core::{Error, ErrorKind, Result};
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
    pub warmth: Warmth,
    /// What its ranks are.
    pub ranks: RankKind,
}

/// How ranks of a kind share one way of storing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// How many times longer one rank of the kind takes than a thread alone.
    pub alone: f64,
    /// How many ranks' worth of reading gets done at a time, when more ranks read.
    pub read: f64,
    /// How many ranks' worth of writing.
    pub write: f64,
}

impl Sharing {
    /// Ranks take turns.
    pub const TURNS: Self = Self { alone: 1.0, read: 1.0, write: 1.0 };

    /// The time of ranks of which the slowest needs `alone` seconds when nobody else is there, and which need `all` one after
    /// the other.
    pub fn seconds(&self, reading: bool, alone: f64, all: f64) -> f64 {
        let servers = if reading { self.read } else { self.write };
        self.alone * saturating(alone, all, servers)
    }

    /// Refuses what makes no sense.
    pub(crate) fn check(&self, class: Class) -> Result<()> {
        let positive = self.alone.is_finite() && self.alone > 0.0;
        let at_least_one = [self.read, self.write].iter().all(|servers| servers.is_finite() && *servers >= 1.0);
        if positive && at_least_one {
            return Ok(());
        }
        let message = format!("ranks cannot share {} like that: {self:?}", class.name());
        Err(Error::new(ErrorKind::Corrupt, "read profile", message))
    }
}
