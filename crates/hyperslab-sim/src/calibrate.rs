//! Fits the timing parameters of a system to measured runs.

// Matrices are clearer by row and column.
#![allow(clippy::needless_range_loop)]

use crate::simulation::transfer_seconds;
use crate::stage::Rates;
use crate::timing::{PARAMETERS, TimingParameters};
use crate::walk::Walked;

/// A run that was measured.
#[derive(Debug, Clone)]
pub struct MeasuredRun {
    /// Where it is from, in words.
    pub name: String,
    /// What it did.
    pub walked: Walked,
    /// The rates of its system.
    pub rates: Rates,
    /// Seconds of its transfers.
    pub seconds: f64,
    /// How much it counts.
    pub weight: f64,
}

/// What a fit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The parameters.
    pub timing: TimingParameters,
    /// Standard deviations of their logarithms.
    pub deviations: [f64; PARAMETERS],
    /// Pairs that the runs cannot tell apart, with their correlation.
    pub alike: Vec<(&'static str, &'static str, f64)>,
    /// Parameters that no run depends on.
    pub unknown: Vec<&'static str>,
}

/// How far, as a factor's logarithm, a parameter may be from where the fit begins before that speaks against it.
const PRIOR: f64 = 1.0;
/// Relative scatter of runs.
const SCATTER: f64 = 0.05;
const STEPS: usize = 60;
/// Two parameters with a correlation beyond this cannot be told apart.
const ALIKE: f64 = 0.95;

/// Fits the logarithms of all parameters to the logarithms of times, robustly, from `start`.
pub fn fit(runs: &[MeasuredRun], start: &TimingParameters) -> Fitted {
    let begin = start.values().map(|value| value.max(1e-12).ln());
    let mut at = begin;
    let mut damping = 1e-2;
    let mut cost = cost_of(runs, &at, &begin);
    for _ in 0..STEPS {
        let (normal, gradient) = normal_equations(runs, &at, &begin);
        let mut better = false;
        for _ in 0..8 {
            let mut damped = normal;
            (0..PARAMETERS).for_each(|i| damped[i][i] *= 1.0 + damping);
            let Some(step) = solve(damped, gradient) else { break };
            let mut next = at;
            (0..PARAMETERS).for_each(|i| next[i] += step[i].clamp(-0.7, 0.7));
            let next_cost = cost_of(runs, &next, &begin);
            if next_cost < cost {
                better = cost - next_cost > 1e-7 * cost;
                (at, cost, damping) = (next, next_cost, damping * 0.3);
                break;
            }
            damping *= 4.0;
        }
        if !better {
            break;
        }
    }
    described(runs, &at, &begin)
}

fn timing_of(at: &[f64; PARAMETERS]) -> TimingParameters {
    TimingParameters::of(at.map(f64::exp))
}

/// The scaled residual of a run.
fn residual(run: &MeasuredRun, timing: &TimingParameters) -> f64 {
    let seconds = transfer_seconds(&run.walked, &run.rates, timing).max(1e-12);
    (seconds / run.seconds.max(1e-12)).ln() / SCATTER
}

/// A cost that grows slower for what is far off: single runs that the model cannot explain do not bend it.
fn robust(residual: f64) -> (f64, f64) {
    let square = residual * residual / 4.0;
    (4.0 * (1.0 + square).ln() / 2.0, 1.0 / (1.0 + square))
}

fn cost_of(runs: &[MeasuredRun], at: &[f64; PARAMETERS], begin: &[f64; PARAMETERS]) -> f64 {
    let timing = timing_of(at);
    let data: f64 = runs.iter().map(|run| run.weight * robust(residual(run, &timing)).0).sum();
    data + (0..PARAMETERS).map(|i| ((at[i] - begin[i]) / PRIOR).powi(2) / 2.0).sum::<f64>()
}

type Square = [[f64; PARAMETERS]; PARAMETERS];

fn normal_equations(
    runs: &[MeasuredRun],
    at: &[f64; PARAMETERS],
    begin: &[f64; PARAMETERS],
) -> (Square, [f64; PARAMETERS]) {
    const NUDGE: f64 = 1e-4;
    let mut normal = [[0.0; PARAMETERS]; PARAMETERS];
    let mut gradient = [0.0; PARAMETERS];
    let timing = timing_of(at);
    let nudged: Vec<TimingParameters> = (0..PARAMETERS)
        .map(|i| {
            let mut other = *at;
            other[i] += NUDGE;
            timing_of(&other)
        })
        .collect();
    for run in runs {
        let here = residual(run, &timing);
        let weight = robust(here).1 * run.weight;
        let mut slope = [0.0; PARAMETERS];
        (0..PARAMETERS).for_each(|i| slope[i] = (residual(run, &nudged[i]) - here) / NUDGE);
        for i in 0..PARAMETERS {
            gradient[i] -= weight * slope[i] * here;
            (0..PARAMETERS).for_each(|j| normal[i][j] += weight * slope[i] * slope[j]);
        }
    }
    for i in 0..PARAMETERS {
        normal[i][i] += 1.0 / (PRIOR * PRIOR);
        gradient[i] -= (at[i] - begin[i]) / (PRIOR * PRIOR);
    }
    (normal, gradient)
}

/// Gaussian elimination with pivots; `None` for what has no solution.
fn solve(mut rows: Square, mut right: [f64; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
    for column in 0..PARAMETERS {
        let pivot = (column..PARAMETERS).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        right.swap(column, pivot);
        let head = rows[column][column];
        if !head.is_finite() || head.abs() < 1e-300 {
            return None;
        }
        for row in column + 1..PARAMETERS {
            let factor = rows[row][column] / head;
            (column..PARAMETERS).for_each(|k| rows[row][k] -= factor * rows[column][k]);
            right[row] -= factor * right[column];
        }
    }
    let mut found = [0.0; PARAMETERS];
    for row in (0..PARAMETERS).rev() {
        let known: f64 = (row + 1..PARAMETERS).map(|k| rows[row][k] * found[k]).sum();
        found[row] = (right[row] - known) / rows[row][row];
    }
    found.iter().all(|value| value.is_finite()).then_some(found)
}

fn described(runs: &[MeasuredRun], at: &[f64; PARAMETERS], begin: &[f64; PARAMETERS]) -> Fitted {
    let (normal, _) = normal_equations(runs, at, begin);
    let mut covariance = [[0.0; PARAMETERS]; PARAMETERS];
    for i in 0..PARAMETERS {
        let mut unit = [0.0; PARAMETERS];
        unit[i] = 1.0;
        covariance[i] = solve(normal, unit).unwrap_or(unit.map(|one| one * PRIOR * PRIOR));
    }
    let deviations: [f64; PARAMETERS] = std::array::from_fn(|i| covariance[i][i].max(0.0).sqrt());
    let mut alike = Vec::new();
    let names = TimingParameters::NAMES;
    for i in 0..PARAMETERS {
        for j in i + 1..PARAMETERS {
            let correlation = covariance[i][j] / (deviations[i] * deviations[j]).max(1e-300);
            if correlation.abs() > ALIKE {
                alike.push((names[i], names[j], correlation));
            }
        }
    }
    let unknown = (0..PARAMETERS).filter(|i| deviations[*i] > 0.95 * PRIOR).map(|i| names[i]).collect();
    Fitted { timing: timing_of(at), deviations, alike, unknown }
}
