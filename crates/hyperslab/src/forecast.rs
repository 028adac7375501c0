//! Predicting workloads.

use crate::configuration;
use hyperslab_core::workload::Workload;
use hyperslab_core::{CacheState, Result, Stack};
use hyperslab_model::{Conditions, Profile, RankKind, count, predict};
use std::time::Duration;

/// What a workload would take on a stack, without running it.
///
/// ```no_run
/// # fn main() -> hyperslab::Result<()> {
/// // `hyperslab train` has measured the machine.
/// let profile = hyperslab::Profile::from_json(&std::fs::read_to_string("profile.json").unwrap())?;
/// let workload = hyperslab::load_workload("run.jsonl")?;
/// let forecast = hyperslab::Forecast::of(&workload, "hdf5(plane=on)", &profile)?;
/// println!("{:?}, nine of ten runs from {:?} to {:?}", forecast.time, forecast.low, forecast.high);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// I/O time that the slowest rank sees, computing left out.
    pub time: Duration,
    /// Nine of ten runs take at least so long.
    pub low: Duration,
    /// Nine of ten runs take at most so long; `None` if that is not known.
    pub high: Option<Duration>,
    /// Layers of which the profile knows nothing, and which are taken to cost nothing.
    pub unknown_layers: Vec<String>,
}

impl Forecast {
    /// Predicts a run with thread ranks and files in the page cache.
    pub fn of(workload: &Workload, stack: &str, profile: &Profile) -> Result<Self> {
        let stack: Stack = stack.parse()?;
        let configuration = configuration(&stack)?;
        let costs = count(workload, &configuration)?;
        let conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Threads };
        let prediction = predict(&costs, configuration.class(), profile, conditions)?;
        Ok(Self {
            time: duration(prediction.seconds).unwrap_or_default(),
            low: duration(prediction.low).unwrap_or_default(),
            high: duration(prediction.high),
            unknown_layers: prediction.unknown,
        })
    }
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
