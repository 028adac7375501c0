//! Coefficients from measured times: a sum of counts, each with the seconds that one of it takes, none below 0. What runs do
//! not tell is what it is on ordinary machines.

mod bias;
mod interval;
mod least_squares;
mod robust;

pub use bias::Bias;
pub use interval::{Interval, LeftOut};
pub use least_squares::non_negative;

use hyperslab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fit {
    /// One for each variable, none below 0.
    pub coefficients: Vec<f64>,
    /// Places of those that are ordinary values only, since no run had any.
    pub guessed: Vec<usize>,
    /// What they miss.
    pub correction: Bias,
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
    /// The same, and a correction learnt from what it misses.
    Corrected,
}

impl Fit {
    /// Fits samples of positive times. Refuses none, and rows of different lengths. `ordinary`: what is likely for each
    /// variable before anything is measured, 0 or nothing if that is not known. [`Method::Plain`] and [`Method::Relative`]
    /// make no use of it.
    pub fn new(samples: &[Sample], method: Method, ordinary: &[f64]) -> Result<Self> {
        Self::bounded(samples, method, ordinary, &[])
    }

    /// The same with what is known to be the least for each variable, such as the time of a system call that was measured by
    /// itself: no coefficient is less, and the others explain what is left. 0, or nothing, is no bound.
    pub fn bounded(samples: &[Sample], method: Method, ordinary: &[f64], least: &[f64]) -> Result<Self> {
        check(samples, ordinary)?;
        if !least.is_empty() && least.len() != samples.first().map_or(0, |first| first.row.len()) {
            return Err(Error::invalid("fit", "there are bounds for other variables".to_owned()));
        }
        let mut fit = Self::known(samples, method, ordinary, least);
        let folds = folds_by_group(samples);
        let left_out = interval::left_out(samples, (method, ordinary, least), &folds);
        let left_out: Vec<LeftOut> = left_out.into_iter().flatten().collect();
        fit.interval = Interval::new(left_out.iter().map(LeftOut::log_error));
        fit.quality = interval::quality(&left_out);
        Ok(fit)
    }

    /// Without asking how good it is.
    fn known(samples: &[Sample], method: Method, ordinary: &[f64], least: &[f64]) -> Self {
        let coefficients = match method {
            Method::Plain => least_squares::plain(samples),
            Method::Relative => least_squares::relative(samples, &[]),
            Method::Robust | Method::Corrected => robust::bounded(samples, ordinary, least),
        };
        let correction = match method {
            Method::Corrected => Bias::new(samples, &coefficients),
            _ => Bias::default(),
        };
        let measured = |place: usize| samples.iter().any(|sample| sample.row[place] > 0.0);
        let guessed = (0..coefficients.len()).filter(|&place| coefficients[place] > 0.0 && !measured(place)).collect();
        Self { coefficients, guessed, correction, ..Self::default() }
    }

    /// Seconds for a row of variables. Never below 0; more of everything takes longer in proportion.
    pub fn seconds(&self, row: &[f64]) -> f64 {
        predict(&self.coefficients, row) * self.correction.factor(&self.coefficients, row)
    }
}

/// Runs that a fit is made from, and runs that it is judged by, by their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fold {
    /// The fit knows these.
    pub known: Vec<usize>,
    /// It does not know these.
    pub judged: Vec<usize>,
}

/// The most groups that are left out one by one; more are left out several at a time.
const MOST_FOLDS: usize = 20;

/// Leaves out every group once; nothing if there is only one.
pub fn folds_by_group(samples: &[Sample]) -> Vec<Fold> {
    let groups: Vec<&String> = samples.iter().map(|s| &s.group).collect::<BTreeSet<_>>().into_iter().collect();
    let folds = groups.len().min(MOST_FOLDS);
    let fold_of = |sample: &Sample| groups.binary_search(&&sample.group).unwrap_or(0) % folds.max(1);
    let fold = |number: usize| {
        let (judged, known) = (0..samples.len()).partition(|&place| fold_of(&samples[place]) == number);
        Fold { known, judged }
    };
    if folds < 2 { Vec::new() } else { (0..folds).map(fold).collect() }
}

fn check(samples: &[Sample], ordinary: &[f64]) -> Result<()> {
    let bad = |message: &str| Err(Error::invalid("fit", message.to_owned()));
    let Some(first) = samples.first() else { return bad("there is nothing to fit") };
    if !ordinary.is_empty() && ordinary.len() != first.row.len() {
        return bad("there are ordinary values for other variables");
    }
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

fn predict(coefficients: &[f64], row: &[f64]) -> f64 {
    coefficients.iter().zip(row).map(|(c, v)| c * v).sum()
}

/// Predictions of runs by fits that did not know them, in the order of the runs; nothing for runs that no fold judges.
/// `how`: method and ordinary values, as for [`Fit::new`].
pub fn leave_out(samples: &[Sample], how: (Method, &[f64]), folds: &[Fold]) -> Result<Vec<Option<LeftOut>>> {
    check(samples, how.1)?;
    Ok(interval::left_out(samples, (how.0, how.1, &[]), folds))
}
