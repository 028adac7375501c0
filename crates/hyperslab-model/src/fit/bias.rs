//! What a sum of counts cannot say: runs of one make are all a little faster, or slower, than it predicts.
//! A Gaussian process over what the time is made of, learnt from what the fit missed.

use super::{Sample, least_squares, predict};

/// The most runs that are remembered.
const MOST_RUNS: usize = 500;
/// How far two makes may differ and still say something about each other, in roots of parts of the time.
const REACH: f64 = 2.0 / 3.0;
/// How much corrections differ, and how much runs of one make do, as logarithms.
const SIZE: f64 = 0.3;
const NOISE: f64 = 0.12;
/// No correction is larger than a factor of two.
const MOST: f64 = std::f64::consts::LN_2;

/// A factor for every make of work. Work that is unlike all that was measured, and the default, has 1. It depends on what
/// the time is made of and not on how long it is: twice the work takes twice the time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bias {
    /// Makes of the runs that it was learnt from: roots of the part of the time that each variable has, in the order of
    /// the coefficients that are above 0.
    pub makes: Vec<Vec<f64>>,
    /// What each of them says.
    pub weights: Vec<f64>,
}

impl Bias {
    /// Learns from what the coefficients miss.
    pub(super) fn new(samples: &[Sample], coefficients: &[f64]) -> Self {
        let every = samples.len().div_ceil(MOST_RUNS).max(1);
        let chosen: Vec<&Sample> = samples.iter().step_by(every).collect();
        let makes: Vec<Vec<f64>> = chosen.iter().filter_map(|sample| make(coefficients, &sample.row)).collect();
        if makes.len() < chosen.len() {
            return Self::default();
        }
        let missed = |sample: &&Sample| (sample.seconds / predict(coefficients, &sample.row)).ln().clamp(-1.2, 1.2);
        let missed: Vec<f64> = chosen.iter().map(missed).collect();
        let alike: Vec<Vec<f64>> = makes
            .iter()
            .enumerate()
            .map(|(i, one)| {
                let noise = |j: usize| if i == j { NOISE * NOISE } else { 0.0 };
                makes.iter().enumerate().map(|(j, other)| likeness(one, other) + noise(j)).collect()
            })
            .collect();
        let places: Vec<usize> = (0..makes.len()).collect();
        Self { weights: least_squares::solve(&alike, &missed, &places), makes }
    }

    /// The factor for a row of variables that has these coefficients.
    pub(super) fn factor(&self, coefficients: &[f64], row: &[f64]) -> f64 {
        let Some(make) = make(coefficients, row).filter(|_| !self.makes.is_empty()) else { return 1.0 };
        let said = self.makes.iter().zip(&self.weights).map(|(known, weight)| weight * likeness(known, &make));
        said.sum::<f64>().clamp(-MOST, MOST).exp()
    }
}

/// What the time is made of; `None` if there is none.
fn make(coefficients: &[f64], row: &[f64]) -> Option<Vec<f64>> {
    let total = predict(coefficients, row);
    let used = coefficients.iter().zip(row).filter(|(each, _)| **each > 0.0);
    (total > 0.0).then(|| used.map(|(each, value)| (each * value / total).sqrt()).collect())
}

fn likeness(one: &[f64], other: &[f64]) -> f64 {
    let apart: f64 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
    SIZE * SIZE * (-0.5 * apart / (REACH * REACH)).exp()
}
