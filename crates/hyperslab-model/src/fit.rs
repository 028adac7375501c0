//! Coefficients from measured times: a sum of counts, each with the seconds that one of it takes, none below 0.

mod interval;
mod least_squares;
mod robust;

pub use interval::Interval;
pub use least_squares::non_negative;

use hyperslab_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// One measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The variables.
    pub row: Vec<f64>,
    /// How long it took.
    pub seconds: f64,
    /// Runs of one group are left out together when the fit is judged, since they know of each other.
    pub group: String,
}

/// Seconds for one of each variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// One for each variable, none below 0.
    pub coefficients: Vec<f64>,
    /// How far predictions of runs that were not fitted were off.
    pub interval: Interval,
    /// How good it is.
    pub quality: Quality,
}

/// How good a fit is on runs that were left out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Runs that it was made from.
    pub samples: usize,
    /// Root of the mean square of the error as part of the measured time.
    pub relative_rmse: f64,
    /// Root of the mean square of log10(predicted / measured).
    pub log10_rmse: f64,
    /// Part of the runs that were inside the 90 % interval of a fit that did not know them.
    pub coverage: f64,
}

/// How coefficients are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Least squares of seconds, coefficients of any sign: as published.
    Plain,
    /// Least squares of relative errors, no coefficient below 0.
    Relative,
    /// The same in log space, where runs that fit badly count less.
    Robust,
}

impl Fit {
    /// Fits samples of positive times. Refuses none, and rows of different lengths.
    pub fn new(samples: &[Sample], method: Method) -> Result<Self> {
        check(samples)?;
        let coefficients = coefficients(samples, method);
        let left_out = interval::left_out(samples, method);
        let interval = Interval::new(&left_out.iter().map(|r| r.log_error).collect::<Vec<_>>());
        Ok(Self { coefficients, interval, quality: interval::quality(&left_out) })
    }

    /// Seconds for a row of variables. Never below 0, and never less for more.
    pub fn seconds(&self, row: &[f64]) -> f64 {
        predict(&self.coefficients, row)
    }
}

fn check(samples: &[Sample]) -> Result<()> {
    let bad = |message: &str| Err(Error::invalid("fit", message.to_owned()));
    let Some(first) = samples.first() else { return bad("there is nothing to fit") };
    for sample in samples {
        if sample.row.len() != first.row.len() {
            return bad("runs have different numbers of variables");
        }
        if !(sample.seconds > 0.0 && sample.seconds.is_finite()) {
            return bad("a run took no time, or for ever");
        }
        if sample.row.iter().any(|v| !v.is_finite() || *v < 0.0) {
            return bad("a variable is below 0 or no number");
        }
    }
    Ok(())
}

pub(crate) fn coefficients(samples: &[Sample], method: Method) -> Vec<f64> {
    match method {
        Method::Plain => least_squares::plain(samples),
        Method::Relative => least_squares::relative(samples),
        Method::Robust => robust::fit(samples),
    }
}

pub(crate) fn predict(coefficients: &[f64], row: &[f64]) -> f64 {
    coefficients.iter().zip(row).map(|(c, v)| c * v).sum()
}

/// Predictions of runs by fits that did not know their groups: measured and predicted seconds, in the order of the runs.
/// None if there is only one group.
pub fn leave_groups_out(samples: &[Sample], method: Method) -> Result<Vec<(f64, f64)>> {
    check(samples)?;
    let left_out = interval::left_out(samples, method);
    Ok(left_out.iter().map(|r| (r.measured, r.predicted)).collect())
}
