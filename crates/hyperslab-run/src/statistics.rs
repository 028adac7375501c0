//! Several measurements of the same thing.

use serde::{Deserialize, Serialize};

/// Smallest, quartiles and largest of a set of measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of measurements.
    pub count: usize,
    /// Smallest.
    pub min: f64,
    /// A quarter lie below.
    pub q1: f64,
    /// Half lie below.
    pub median: f64,
    /// Three quarters lie below.
    pub q3: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; all zero when there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return Self::default() };
        // Linear interpolation between the neighbours of the quantile's place.
        let quantile = |q: f64| {
            let place = q * last as f64;
            let below = place.floor() as usize;
            let above = (below + 1).min(last);
            sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
        };
        Self {
            count: sorted.len(),
            min: sorted[0],
            q1: quantile(0.25),
            median: quantile(0.5),
            q3: quantile(0.75),
            max: sorted[last],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!((spread.min, spread.q1, spread.median, spread.q3, spread.max), (1.0, 1.75, 2.5, 3.25, 4.0));
        assert_eq!(Spread::of([5.0]).q3, 5.0);
        assert_eq!(Spread::of([]).count, 0);
    }
}
