//! Weighted linear regression of measured rates.

use hyperslab_core::positive_definite;

/// Regressors, measured value, and weight.
pub(super) type Point = ([f64; 2], f64, f64);

/// Coefficients of `1`, `x[0]` and `x[1]` that fit `y` best, each point with its weight. Slopes are held near 0 by `ridge`, in
/// units of weight, so that points that lie on one line or all in one place have an answer, too.
pub(super) fn fit(points: &[Point], ridge: f64) -> [f64; 3] {
    let total: f64 = points.iter().map(|(_, _, weight)| weight).sum();
    if total <= 0.0 {
        return [0.0; 3];
    }
    let mean = |value: &dyn Fn(&Point) -> f64| points.iter().map(|point| point.2 * value(point)).sum::<f64>() / total;
    // Around the middle, so that the ridge leaves the level alone.
    let (first, second, level) = (mean(&|p| p.0[0]), mean(&|p| p.0[1]), mean(&|p| p.1));
    let (mut aa, mut ab, mut bb, mut ay, mut by) = (ridge, 0.0, ridge, 0.0, 0.0);
    for ([a, b], y, weight) in points {
        let (a, b, y) = (a - first, b - second, y - level);
        aa += weight * a * a;
        ab += weight * a * b;
        bb += weight * b * b;
        ay += weight * a * y;
        by += weight * b * y;
    }
    let determinant = aa * bb - ab * ab;
    let slopes = match determinant > f64::EPSILON * aa * bb {
        true => positive_definite::solve(&[[aa, ab], [ab, bb]], &[ay, by], f64::MIN_POSITIVE),
        false => vec![0.0; 2],
    };
    [level - slopes[0] * first - slopes[1] * second, slopes[0], slopes[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_coefficients_come_back() {
        let points: Vec<_> = (0..30)
            .map(|n| {
                let x = [f64::from(n % 5), f64::from(n / 5)];
                (x, 3.0 + 0.5 * x[0] - 0.2 * x[1], 1.0)
            })
            .collect();
        let [level, first, second] = fit(&points, 1e-9);
        assert!((level - 3.0).abs() < 1e-6 && (first - 0.5).abs() < 1e-6 && (second + 0.2).abs() < 1e-6);
    }

    #[test]
    fn columns_that_are_proportional_have_an_answer() {
        // Weak scaling: as many ranks, as many bytes.
        let points: Vec<_> = (0..8).map(|n| ([f64::from(n), 2.0 * f64::from(n)], f64::from(n), 1.0)).collect();
        let [level, first, second] = fit(&points, 0.01);
        let at = |n: f64| level + first * n + second * 2.0 * n;
        assert!((at(3.0) - 3.0).abs() < 0.05 && (at(10.0) - 10.0).abs() < 0.1);
        assert_eq!(fit(&[([1.0, 2.0], 5.0, 1.0)], 0.1), [5.0, 0.0, 0.0]);
        assert_eq!(fit(&[], 0.1), [0.0; 3]);
    }
}
