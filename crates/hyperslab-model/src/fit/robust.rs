//! Coefficients that make the logarithms of times right, with little regard for runs that were disturbed.

use super::least_squares::{self, WeightedRow};
use super::{Sample, predict};

/// Rounds of improvement.
const ROUNDS: usize = 30;
/// Residuals beyond so many typical ones count less.
const TYPICAL: f64 = 1.5;
/// What ordinary values count, where a run counts 1 and a coefficient of nothing or of twice the ordinary value is as bad as
/// a run that is off by all of its time.
const ORDINARY: f64 = 0.01;

/// The part of a run's time that is left to be explained at least, however much bounded coefficients explain of it.
const LEFT: f64 = 0.05;

/// As [`fit`], with no coefficient below what is known to be the least: those that would be are put there, and the others are
/// fitted to what is left.
pub(super) fn bounded(samples: &[Sample], ordinary: &[f64], least: &[f64]) -> Vec<f64> {
    let mut coefficients = fit(samples, ordinary);
    let below: Vec<usize> = (0..coefficients.len())
        .filter(|&place| least.get(place).is_some_and(|least| coefficients[place] < *least))
        .collect();
    if below.is_empty() {
        return coefficients;
    }
    let without = |sample: &Sample| {
        let mut rest = sample.clone();
        let known: f64 = below.iter().map(|&place| least[place] * sample.row[place]).sum();
        below.iter().for_each(|&place| rest.row[place] = 0.0);
        rest.seconds = (sample.seconds - known).max(LEFT * sample.seconds);
        rest
    };
    let rest: Vec<Sample> = samples.iter().map(without).collect();
    let found = fit(&rest, ordinary);
    for (place, coefficient) in coefficients.iter_mut().enumerate() {
        let bound = least.get(place).copied().unwrap_or(0.0);
        *coefficient = if below.contains(&place) { bound } else { found[place].max(bound) };
    }
    coefficients
}

/// Fits what runs have; the rest has its ordinary value, or takes nothing.
pub(super) fn fit(samples: &[Sample], ordinary: &[f64]) -> Vec<f64> {
    let all = samples.first().map_or(0, |sample| sample.row.len());
    let places: Vec<usize> = (0..all).filter(|&place| samples.iter().any(|s| s.row[place] > 0.0)).collect();
    let of = |row: &[f64]| places.iter().filter_map(|&place| row.get(place).copied()).collect::<Vec<f64>>();
    let measured: Vec<Sample> = samples.iter().map(|s| Sample { row: of(&s.row), ..s.clone() }).collect();
    let mut coefficients = if ordinary.is_empty() { vec![0.0; all] } else { ordinary.to_vec() };
    let found = fit_measured(&measured, &of(ordinary));
    places.iter().zip(found).for_each(|(&place, found)| coefficients[place] = found);
    coefficients
}

/// Starts from relative errors. Each round puts a line in the place of the logarithm near the last prediction, and
/// weighs runs by how well they fit.
fn fit_measured(samples: &[Sample], ordinary: &[f64]) -> Vec<f64> {
    let likely = likely(ordinary);
    let mut best = least_squares::relative(samples, &likely);
    let mut least = loss(samples, &best);
    let mut x = best.clone();
    for _ in 0..ROUNDS {
        let predicted: Vec<f64> = samples.iter().map(|s| predict(&x, &s.row).max(s.seconds * 1e-6)).collect();
        let residual = |i: usize| (samples[i].seconds / predicted[i]).ln();
        let typical = typical((0..samples.len()).map(residual));
        let rows = (0..samples.len()).map(|i| {
            let r = residual(i);
            let weight = (TYPICAL * typical / r.abs().max(1e-12)).min(1.0);
            // Far away the line would overshoot.
            (samples[i].row.iter().map(|v| v / predicted[i]).collect(), 1.0 + r.clamp(-0.7, 1.5), weight)
        });
        let next = least_squares::weighted(&rows.chain(likely.iter().cloned()).collect::<Vec<_>>());
        // Half the way, so that it settles.
        x.iter_mut().zip(&next).for_each(|(x, next)| *x = 0.5 * (*x + next));
        let now = loss(samples, &x);
        if now < least {
            (least, best) = (now, x.clone());
        }
    }
    best
}

/// A row for each variable that has an ordinary value. Where runs tell little, as when two things always come together, the
/// coefficients that are nearest to these are taken.
fn likely(ordinary: &[f64]) -> Vec<WeightedRow> {
    let row = |place: usize| {
        let mut row = vec![0.0; ordinary.len()];
        row[place] = 1.0 / ordinary[place];
        (row, 1.0, ORDINARY)
    };
    (0..ordinary.len()).filter(|&place| ordinary[place] > 0.0).map(row).collect()
}

/// The median of what residuals are, whatever their sign.
fn typical(residuals: impl Iterator<Item = f64>) -> f64 {
    let mut sizes: Vec<f64> = residuals.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0).max(1e-3) * 1.48
}

/// Mean size of the residuals in log space.
fn loss(samples: &[Sample], x: &[f64]) -> f64 {
    let size = |s: &Sample| (s.seconds / predict(x, &s.row).max(s.seconds * 1e-6)).ln().abs();
    samples.iter().map(size).sum::<f64>() / samples.len().max(1) as f64
}
