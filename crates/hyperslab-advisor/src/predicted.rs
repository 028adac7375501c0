//! A predicted case, and how predictions are put into words.

use hyperslab_model::{Costs, Prediction};
use std::collections::BTreeSet;

/// One case of the input, predicted.
pub struct Predicted {
    /// Number of the case.
    pub number: usize,
    /// Kind of benchmark.
    pub benchmark: String,
    /// The stack, with what the workflow asks of it.
    pub stack: String,
    /// What it does.
    pub costs: Costs,
    /// What that takes.
    pub prediction: Prediction,
}

/// Said where a profile lacks them.
pub const UNKNOWN_RANKS: &str = "the profile knows nothing of ranks that are processes, which are taken to share the machine as threads \
     do; run hyperslab train again with a build that has MPI";

/// A time for people.
pub fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => "?".into(),
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 1e-3 => format!("{:.2} ms", v * 1e3),
        v => format!("{:.1} us", v * 1e6),
    }
}

/// The part of a time above which it is told that it was not measured here.
const TOLD: f64 = 0.05;

/// What is taken from ordinary machines, if that matters to any of the predictions.
pub fn guesses<'a>(predictions: impl Iterator<Item = &'a Prediction>) -> Option<String> {
    let of = |prediction: &Prediction| {
        let matters = |seconds: f64| seconds > TOLD * prediction.seconds;
        let counts = prediction.guessed.iter().filter(|(_, seconds)| matters(**seconds));
        counts.map(|(count, _)| count.name()).collect::<Vec<_>>()
    };
    let names: BTreeSet<&str> = predictions.flat_map(of).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let words = "was not measured on this machine: what it takes on ordinary ones is assumed, with a wider interval";
    (!names.is_empty()).then(|| format!("what is counted as {names} {words}"))
}
