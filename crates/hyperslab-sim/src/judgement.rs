//! How good a model is on runs that it did not know.

/// Errors of predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Number of rows.
    pub rows: usize,
    /// Spearman's rank correlation.
    pub correlation: f64,
    /// Median of the relative errors.
    pub median: f64,
    /// Nine of ten relative errors are at most so large.
    pub ninety: f64,
    /// Mean of the logarithms: above 0 times are too long.
    pub bias: f64,
}

impl Accuracy {
    /// Of pairs of predicted and measured values.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let mut errors: Vec<f64> = pairs.iter().map(|(found, known)| (found / known - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let bias = pairs.iter().map(|(found, known)| (found / known).ln()).sum::<f64>() / pairs.len().max(1) as f64;
        Self {
            rows: pairs.len(),
            correlation: spearman(pairs),
            median: quantile(&errors, 0.5),
            ninety: quantile(&errors, 0.9),
            bias,
        }
    }
}

/// The value that this share of sorted ones does not exceed, between neighbours.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Rank correlation; ties share their mean rank.
pub fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let first = ranks(pairs.iter().map(|pair| pair.0).collect());
    let second = ranks(pairs.iter().map(|pair| pair.1).collect());
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let (mut both, mut one, mut two) = (0.0, 0.0, 0.0);
    for (a, b) in first.iter().zip(&second) {
        both += (a - mean) * (b - mean);
        one += (a - mean).powi(2);
        two += (b - mean).powi(2);
    }
    if one > 0.0 && two > 0.0 { both / (one * two).sqrt() } else { f64::NAN }
}

fn ranks(values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let mut end = at;
        while end + 1 < order.len() && values[order[end + 1]] == values[order[at]] {
            end += 1;
        }
        let shared = (at + end) as f64 / 2.0 + 1.0;
        order[at..=end].iter().for_each(|place| ranks[*place] = shared);
        at = end + 1;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_order_correlate_fully() {
        assert!((spearman(&[(1.0, 10.0), (2.0, 20.0), (3.0, 90.0)]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[(1.0, 9.0), (2.0, 5.0), (3.0, 1.0)]) + 1.0).abs() < 1e-12);
        assert!(spearman(&[(1.0, 1.0), (1.0, 2.0)]).is_nan());
    }

    #[test]
    fn errors_are_relative() {
        let accuracy = Accuracy::of(&[(1.1, 1.0), (2.0, 2.0), (2.7, 3.0)]);
        assert!((accuracy.median - 0.1).abs() < 1e-9 && accuracy.ninety <= 0.1 + 1e-9 && accuracy.rows == 3);
    }
}
