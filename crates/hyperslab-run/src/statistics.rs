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
    /// Where the median of all possible measurements lies with 95 % confidence, whatever their distribution; absent
    /// with fewer than six measurements, for which no such interval exists.
    #[serde(rename = "median_95", default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Spread {
    /// From where to where: the interval, or with too few measurements for one, the smallest and the largest.
    pub fn reach(&self) -> [f64; 2] {
        self.interval.unwrap_or([self.min, self.max])
    }

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
            interval: interval_rank(sorted.len()).map(|rank| [sorted[rank - 1], sorted[sorted.len() - rank]]),
        }
    }
}

/// The largest `k`, from 1, such that the median of all lies between the `k`-th smallest and the `k`-th largest of
/// `count` measurements in 95 % of samples at least. Each measurement lies below the median with probability 1/2, so
/// the number of those that do is binomially distributed, and the interval misses when it is below `k` or above
/// `count - k`.
fn interval_rank(count: usize) -> Option<usize> {
    let n = count as f64;
    // Logarithm of the probability of exactly `below`; the probability itself underflows for many measurements.
    let mut exactly = -n * std::f64::consts::LN_2;
    let mut at_most = 0.0;
    for below in 0..count {
        at_most += exactly.exp();
        if 2.0 * at_most > 0.05 {
            return (below > 0).then_some(below);
        }
        exactly += ((n - below as f64) / (below as f64 + 1.0)).ln();
    }
    None
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

    #[test]
    fn the_interval_of_the_median_is_that_of_the_tables() {
        let of = |n: u32| Spread::of((1..=n).map(f64::from)).interval;
        for n in 0..6 {
            assert_eq!(of(n), None, "{n}");
        }
        let known = [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (12, 3, 10), (15, 4, 12), (20, 6, 15), (30, 10, 21)];
        for (n, low, high) in known {
            assert_eq!(of(n), Some([f64::from(low), f64::from(high)]), "{n}");
        }
        // Many: about 0.98 times the square root of their number to each side.
        let [low, high] = of(100_000).unwrap_or_default();
        assert!((high - low - 2.0 * 0.98 * 100_000_f64.sqrt()).abs() < 10.0, "{low} {high}");
    }
}
