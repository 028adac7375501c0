//! How good advice is: the fastest way of storing, as predicted and as measured.

use crate::configuration::Class;
use std::collections::BTreeMap;

/// A run that was measured, and predicted by a fit that did not know it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredRun {
    /// Seconds.
    pub measured: f64,
    /// Seconds.
    pub predicted: f64,
    /// Whether it was inside its 90 % interval.
    pub inside: bool,
}

/// One access of one array on several ways of storing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// What each took.
    pub options: BTreeMap<Class, ScoredRun>,
}

impl Choice {
    /// The way of storing that was the fastest.
    pub fn fastest(&self) -> Option<Class> {
        self.least(|run| run.measured)
    }

    /// The one that was predicted to be.
    pub fn advised(&self) -> Option<Class> {
        self.least(|run| run.predicted)
    }

    fn least(&self, of: impl Fn(&ScoredRun) -> f64) -> Option<Class> {
        self.options.iter().min_by(|a, b| of(a.1).total_cmp(&of(b.1))).map(|(class, _)| *class)
    }

    /// Whether the two fastest differ by more than a fifth.
    pub fn is_clear(&self) -> bool {
        let mut times: Vec<f64> = self.options.values().map(|run| run.measured).collect();
        times.sort_by(f64::total_cmp);
        times.len() > 1 && times[1] > CLEAR * times[0]
    }
}

/// How good the choices are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Judgement {
    /// Choices in which the two best differ by more than a fifth.
    pub clear: usize,
    /// Part of these in which the fastest was predicted.
    pub accuracy: f64,
    /// The same as the mean over the ways of storing that were the fastest at least once.
    pub balanced: f64,
    /// Part of these in which always taking the commonest winner is right.
    pub majority: f64,
    /// Time lost by following the advice, as part of the best time, on average over all choices.
    pub regret: f64,
    /// Root of the mean square of log10(predicted / measured), over everything.
    pub log10_rmse: f64,
    /// Root of the mean square of the relative error.
    pub relative_rmse: f64,
    /// Part of the runs that were inside their 90 % intervals.
    pub coverage: f64,
}

/// Differences up to this are none.
const CLEAR: f64 = 1.2;

/// Judges choices of at least two ways of storing each.
pub fn judge(choices: &[Choice]) -> Judgement {
    let mut out = Judgement::default();
    // By true winner: how often, and how often it was predicted.
    let mut winners: BTreeMap<Class, (f64, f64)> = BTreeMap::new();
    let (mut regret, mut counted) = (0.0, 0.0);
    for choice in choices.iter().filter(|choice| choice.options.len() > 1) {
        let (Some(right), Some(advised)) = (choice.fastest(), choice.advised()) else { continue };
        regret += choice.options[&advised].measured / choice.options[&right].measured - 1.0;
        counted += 1.0;
        if choice.is_clear() {
            let winner = winners.entry(right).or_default();
            winner.0 += 1.0;
            winner.1 += f64::from(u8::from(advised == right));
        }
    }
    let clear: f64 = winners.values().map(|w| w.0).sum();
    out.clear = clear as usize;
    if clear > 0.0 {
        out.accuracy = winners.values().map(|w| w.1).sum::<f64>() / clear;
        out.balanced = winners.values().map(|w| w.1 / w.0).sum::<f64>() / winners.len() as f64;
        out.majority = winners.values().map(|w| w.0).fold(0.0, f64::max) / clear;
    }
    if counted > 0.0 {
        out.regret = regret / counted;
    }
    let runs: Vec<ScoredRun> = choices.iter().flat_map(|choice| choice.options.values().copied()).collect();
    let mean = |of: &dyn Fn(&ScoredRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64;
    let ratio = |run: &ScoredRun| (run.predicted / run.measured).max(1e-6);
    out.log10_rmse = mean(&|run| ratio(run).log10().powi(2)).sqrt();
    out.relative_rmse = mean(&|run| (ratio(run) - 1.0).powi(2)).sqrt();
    out.coverage = mean(&|run| f64::from(u8::from(run.inside)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(times: &[(Class, f64, f64)]) -> Choice {
        let run = |(class, measured, predicted): &(Class, f64, f64)| {
            (*class, ScoredRun { measured: *measured, predicted: *predicted, inside: *measured > 1.0 })
        };
        Choice { options: times.iter().map(run).collect() }
    }

    #[test]
    fn advice_is_judged_where_it_matters() {
        let choices = [
            choice(&[(Class::Hdf5, 1.0, 1.0), (Class::Zarr, 2.0, 2.0)]),
            choice(&[(Class::Hdf5, 1.0, 1.0), (Class::Zarr, 2.0, 2.0)]),
            choice(&[(Class::Hdf5, 3.0, 1.0), (Class::Zarr, 1.0, 2.0)]), // wrong, and costs two thirds
            choice(&[(Class::Hdf5, 1.0, 1.1), (Class::Zarr, 1.1, 1.0)]), // too close to matter
        ];
        let judged = judge(&choices);
        assert_eq!(judged.clear, 3);
        assert!((judged.accuracy - 2.0 / 3.0).abs() < 1e-9 && (judged.balanced - 0.5).abs() < 1e-9);
        assert!((judged.majority - 2.0 / 3.0).abs() < 1e-9);
        assert!((judged.regret - (2.0 + 0.1) / 4.0).abs() < 1e-9);
        assert!((judged.coverage - 0.5).abs() < 1e-9);
        assert_eq!(judge(&[]), Judgement::default());
    }
}
