//! The ranks of a case against each other.

use crate::measure::RankMeasurement;
use crate::results::Repetition;
use crate::statistics::Spread;
use serde::{Deserialize, Serialize};

/// What one rank spent in its own calls: medians over the repetitions, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RankBalance {
    /// The rank.
    pub rank: usize,
    /// All of the following together, without waiting in barriers.
    pub own: f64,
    /// The transfer calls.
    pub raw: f64,
    /// Groups, arrays, attributes, shapes.
    pub metadata: f64,
    /// Opening or creating containers.
    pub open_file: f64,
    /// Flushes.
    pub flush: f64,
    /// Closing containers.
    pub close_file: f64,
}

impl RankBalance {
    /// The figures of every rank that took part in all repetitions, fastest first.
    pub fn ordered(repetitions: &[Repetition]) -> Vec<Self> {
        let ranks = repetitions.iter().map(|repetition| repetition.ranks.len()).min().unwrap_or(0);
        let mut all: Vec<Self> = (0..ranks)
            .map(|rank| {
                let median = |time: fn(&RankMeasurement) -> f64| {
                    Spread::of(repetitions.iter().map(|repetition| time(&repetition.ranks[rank]))).median
                };
                Self {
                    rank,
                    own: median(RankMeasurement::own),
                    raw: median(|m| m.raw),
                    metadata: median(|m| m.metadata),
                    open_file: median(|m| m.open_file),
                    flush: median(|m| m.flush),
                    close_file: median(|m| m.close_file),
                }
            })
            .collect();
        all.sort_by(|a, b| a.own.total_cmp(&b.own));
        all
    }
}
