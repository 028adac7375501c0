//! How sure predictions are, from runs that fits did not know.

use super::{Method, Quality, Sample, coefficients, predict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most groups that are left out one by one; more are left out several at a time.
const MOST_FITS: usize = 40;
/// The part of runs that an interval is to hold.
const COVERED: f64 = 0.9;

/// A factor either way that holds nine of ten runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// At least 1; infinite when too few runs are known.
    pub factor: f64,
}

impl Default for Interval {
    fn default() -> Self {
        Self { factor: f64::INFINITY }
    }
}

impl Interval {
    /// From the logarithms of errors of runs that were not fitted: the smallest that holds nine of ten of them, and one
    /// more for the run that is predicted.
    pub fn new(log_errors: &[f64]) -> Self {
        let mut sizes: Vec<f64> = log_errors.iter().map(|e| e.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let place = ((sizes.len() + 1) as f64 * COVERED).ceil() as usize;
        match sizes.get(place.wrapping_sub(1)) {
            Some(size) => Self { factor: size.exp() },
            None => Self::default(),
        }
    }

    /// From and to.
    pub fn around(&self, seconds: f64) -> (f64, f64) {
        if seconds > 0.0 { (seconds / self.factor, seconds * self.factor) } else { (0.0, 0.0) }
    }
}

/// A run that was predicted without being known.
pub(super) struct LeftOut {
    pub(super) measured: f64,
    pub(super) predicted: f64,
    pub(super) log_error: f64,
    fold: usize,
}

/// Predicts every run by a fit that knows no run of its group, in the order of the runs; none if there is only one group.
pub(super) fn left_out(samples: &[Sample], method: Method) -> Vec<LeftOut> {
    let groups: Vec<&String> = samples.iter().map(|s| &s.group).collect::<BTreeSet<_>>().into_iter().collect();
    let folds = groups.len().min(MOST_FITS);
    let fold_of = |sample: &Sample| groups.binary_search(&&sample.group).unwrap_or(0) % folds.max(1);
    if folds < 2 {
        return Vec::new();
    }
    let mut out: Vec<Option<LeftOut>> = samples.iter().map(|_| None).collect();
    for fold in 0..folds {
        let known: Vec<Sample> = samples.iter().filter(|s| fold_of(s) != fold).cloned().collect();
        let x = coefficients(&known, method);
        for (sample, place) in samples.iter().zip(&mut out).filter(|(s, _)| fold_of(s) == fold) {
            let measured = sample.seconds;
            // A prediction of nothing, or of less, is wrong by a factor of a million.
            let predicted = predict(&x, &sample.row).max(measured * 1e-6);
            *place = Some(LeftOut { measured, predicted, log_error: (predicted / measured).ln(), fold });
        }
    }
    out.into_iter().flatten().collect()
}

/// What the left-out runs say about a fit.
pub(super) fn quality(left_out: &[LeftOut]) -> Quality {
    let n = left_out.len().max(1) as f64;
    let mean = |of: &dyn Fn(&LeftOut) -> f64| left_out.iter().map(of).sum::<f64>() / n;
    let folds: BTreeSet<usize> = left_out.iter().map(|r| r.fold).collect();
    // Each fold is judged by the interval that the others give.
    let covered: usize = folds
        .iter()
        .map(|fold| {
            let others: Vec<f64> = left_out.iter().filter(|r| r.fold != *fold).map(|r| r.log_error).collect();
            let factor = Interval::new(&others).factor;
            left_out.iter().filter(|r| r.fold == *fold && r.log_error.abs() <= factor.ln()).count()
        })
        .sum();
    Quality {
        samples: left_out.len(),
        relative_rmse: mean(&|r| (r.predicted / r.measured - 1.0).powi(2)).sqrt(),
        log10_rmse: mean(&|r| (r.log_error / std::f64::consts::LN_10).powi(2)).sqrt(),
        coverage: covered as f64 / n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_are_inside() {
        let errors: Vec<f64> = (1..=99).map(|i| f64::from(i) / 100.0).collect();
        let interval = Interval::new(&errors);
        assert!((interval.factor.ln() - 0.9).abs() < 1e-9);
        let (low, high) = interval.around(2.0);
        assert!(low < 2.0 && high > 2.0 && (low * high - 4.0).abs() < 1e-9);
        assert_eq!(Interval::new(&[0.1; 5]).factor, f64::INFINITY);
        assert_eq!(interval.around(0.0), (0.0, 0.0));
    }
}
