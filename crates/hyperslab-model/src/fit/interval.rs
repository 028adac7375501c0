//! How sure predictions are, from runs that fits did not know.

use super::{Fit, Fold, Method, Quality, Sample};
use serde::{Deserialize, Serialize};

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
    pub fn new(log_errors: impl Iterator<Item = f64>) -> Self {
        let mut sizes: Vec<f64> = log_errors.map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let place = ((sizes.len() + 1) as f64 * COVERED).ceil() as usize;
        match sizes.get(place.wrapping_sub(1)) {
            Some(size) => Self { factor: size.exp() },
            None => Self::default(),
        }
    }

    /// The same for what is less sure by a factor.
    pub fn wider(&self, factor: f64) -> Self {
        Self { factor: self.factor * factor }
    }

    /// From and to.
    pub fn around(&self, seconds: f64) -> (f64, f64) {
        if seconds > 0.0 { (seconds / self.factor, seconds * self.factor) } else { (0.0, 0.0) }
    }
}

/// A run that was predicted without being known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOut {
    /// Seconds that it took.
    pub measured: f64,
    /// Seconds that were predicted.
    pub predicted: f64,
    /// Whether it is inside the 90 % interval that runs of other folds give.
    pub inside: bool,
    fold: usize,
}

impl LeftOut {
    pub(super) fn log_error(&self) -> f64 {
        (self.predicted / self.measured).ln()
    }
}

/// Predicts the runs that each fold judges by a fit to those that it knows, in the order of the runs.
pub(super) fn left_out(
    samples: &[Sample],
    (method, ordinary, least): (Method, &[f64], &[f64]),
    folds: &[Fold],
) -> Vec<Option<LeftOut>> {
    let mut out: Vec<Option<LeftOut>> = samples.iter().map(|_| None).collect();
    for (number, fold) in folds.iter().enumerate() {
        let known: Vec<Sample> = fold.known.iter().map(|&place| samples[place].clone()).collect();
        if known.is_empty() {
            continue;
        }
        let fit = Fit::known(&known, method, ordinary, least);
        for &place in &fold.judged {
            let Sample { row, seconds: measured, .. } = &samples[place];
            // A prediction of nothing, or of less, is wrong by a factor of a million.
            let predicted = fit.seconds(row).max(measured * 1e-6);
            out[place] = Some(LeftOut { measured: *measured, predicted, inside: false, fold: number });
        }
    }
    // Each fold is judged by the interval that the others give.
    for number in 0..folds.len() {
        let others = out.iter().flatten().filter(|run| run.fold != number).map(LeftOut::log_error);
        let factor = Interval::new(others).factor;
        let mine = out.iter_mut().flatten().filter(|run| run.fold == number);
        mine.for_each(|run| run.inside = run.log_error().abs() <= factor.ln());
    }
    out
}

/// What the left-out runs say about a fit.
pub(super) fn quality(left_out: &[LeftOut]) -> Quality {
    let n = left_out.len().max(1) as f64;
    let mean = |of: &dyn Fn(&LeftOut) -> f64| left_out.iter().map(of).sum::<f64>() / n;
    Quality {
        samples: left_out.len(),
        relative_rmse: mean(&|r| (r.predicted / r.measured - 1.0).powi(2)).sqrt(),
        log10_rmse: mean(&|r| (r.log_error() / std::f64::consts::LN_10).powi(2)).sqrt(),
        coverage: mean(&|r| f64::from(u8::from(r.inside))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_are_inside() {
        let interval = Interval::new((1..=99).map(|i| f64::from(i) / 100.0));
        assert!((interval.factor.ln() - 0.9).abs() < 1e-9);
        let (low, high) = interval.around(2.0);
        assert!(low < 2.0 && high > 2.0 && (low * high - 4.0).abs() < 1e-9);
        assert_eq!(Interval::new([0.1; 5].into_iter()).factor, f64::INFINITY);
        assert_eq!(interval.around(0.0), (0.0, 0.0));
    }
}
