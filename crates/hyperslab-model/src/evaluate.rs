//! How good advice is: the fastest way of storing, as predicted and as measured.

use crate::configuration::Class;
use std::collections::BTreeMap;

/// One access of one array, measured and predicted on several ways of storing.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Measured and predicted seconds.
    pub options: BTreeMap<Class, (f64, f64)>,
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
}

/// Differences up to this are none.
const CLEAR: f64 = 1.2;

fn best(options: &BTreeMap<Class, (f64, f64)>, time: impl Fn(&(f64, f64)) -> f64) -> Option<Class> {
    options.iter().min_by(|a, b| time(a.1).total_cmp(&time(b.1))).map(|(class, _)| *class)
}

/// Judges choices of at least two ways of storing each.
pub fn judge(choices: &[Choice]) -> Judgement {
    let mut out = Judgement::default();
    // By true winner: how often, and how often it was predicted.
    let mut winners: BTreeMap<Class, (f64, f64)> = BTreeMap::new();
    let (mut regret, mut counted) = (0.0, 0.0);
    for Choice { options } in choices.iter().filter(|choice| choice.options.len() > 1) {
        let (Some(right), Some(advised)) = (best(options, |t| t.0), best(options, |t| t.1)) else { continue };
        let fastest = options[&right].0;
        regret += options[&advised].0 / fastest - 1.0;
        counted += 1.0;
        let others = options.iter().filter(|(class, _)| **class != right).map(|(_, times)| times.0);
        if others.fold(f64::INFINITY, f64::min) > CLEAR * fastest {
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
    let times: Vec<(f64, f64)> = choices.iter().flat_map(|choice| choice.options.values().copied()).collect();
    let mean = |of: &dyn Fn(f64, f64) -> f64| {
        (times.iter().map(|(m, p)| of(*m, p.max(m * 1e-6)).powi(2)).sum::<f64>() / times.len().max(1) as f64).sqrt()
    };
    out.log10_rmse = mean(&|m, p| (p / m).log10());
    out.relative_rmse = mean(&|m, p| p / m - 1.0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(times: &[(Class, f64, f64)]) -> Choice {
        Choice { options: times.iter().map(|(class, measured, predicted)| (*class, (*measured, *predicted))).collect() }
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
        assert_eq!(judge(&[]), Judgement::default());
    }
}
