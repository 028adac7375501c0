//! Repetitions brought together.

use crate::measured::{Access, Measured};
use crate::test_run::TestResult;

/// Largest, smallest, mean, and standard deviation of the whole population.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Figures {
    pub max: f64,
    pub min: f64,
    pub mean: f64,
    pub deviation: f64,
}

impl Figures {
    /// Those of `values`; zeros when there are none.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Self {
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean,
            deviation: variance.sqrt(),
        }
    }
}

/// The repetitions of one access.
pub fn phases(result: &TestResult, access: Access) -> Vec<&Measured> {
    result.rows.iter().filter(|row| row.access == access).map(|row| &row.measured).collect()
}

/// Bytes per second of each repetition of one access.
pub fn rates(result: &TestResult, access: Access) -> Vec<f64> {
    phases(result, access).into_iter().map(Measured::rate).collect()
}

/// The best rate of each access, in bytes per second.
pub fn best_rates(result: &TestResult) -> Vec<(Access, f64)> {
    let best = |access| rates(result, access).into_iter().reduce(f64::max).map(|rate| (access, rate));
    [Access::Write, Access::Read].into_iter().filter_map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_the_population() {
        let figures = Figures::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(figures, Figures { max: 9.0, min: 2.0, mean: 5.0, deviation: 2.0 });
        assert_eq!(Figures::of(&[]), Figures::default());
    }
}
