//! Least squares, with and without the demand that nothing is below 0.

use super::Sample;
use hyperslab_core::positive_definite;

/// Against columns that say the same: part of each column's square.
const RIDGE: f64 = 1e-9;

/// Variables, target and weight.
pub(super) type WeightedRow = (Vec<f64>, f64, f64);

/// Solves for relative errors: every run counts alike, however long it took. `more` are rows besides the runs.
pub(super) fn relative(samples: &[Sample], more: &[WeightedRow]) -> Vec<f64> {
    let rows = samples.iter().map(|s| (s.row.iter().map(|v| v / s.seconds).collect(), 1.0, 1.0));
    weighted(&rows.chain(more.iter().cloned()).collect::<Vec<_>>())
}

/// Coefficients that are not below 0.
pub(super) fn weighted(rows: &[WeightedRow]) -> Vec<f64> {
    let (gram, right, scale) = normal_equations(rows);
    let solved = non_negative(&gram, &right);
    solved.iter().zip(&scale).map(|(x, s)| if *s > 0.0 { x / s } else { 0.0 }).collect()
}

/// Ordinary least squares of seconds, as published models are fitted: coefficients of any sign.
pub(super) fn plain(samples: &[Sample]) -> Vec<f64> {
    let rows: Vec<_> = samples.iter().map(|s| (s.row.clone(), s.seconds, 1.0)).collect();
    let (gram, right, scale) = normal_equations(&rows);
    let used: Vec<usize> = (0..scale.len()).filter(|&i| scale[i] > 0.0).collect();
    let mut out = vec![0.0; scale.len()];
    for (x, &i) in solve(&gram, &right, &used).iter().zip(&used) {
        out[i] = x / scale[i];
    }
    out
}

/// The matrix and right side of the normal equations with columns scaled to length 1, and the lengths.
fn normal_equations(rows: &[WeightedRow]) -> (Vec<Vec<f64>>, Vec<f64>, Vec<f64>) {
    let n = rows.first().map_or(0, |(row, ..)| row.len());
    let mut scale = vec![0.0; n];
    for (row, _, weight) in rows {
        for (s, v) in scale.iter_mut().zip(row) {
            *s += weight * v * v;
        }
    }
    scale.iter_mut().for_each(|s| *s = s.sqrt());
    let (mut gram, mut right) = (vec![vec![0.0; n]; n], vec![0.0; n]);
    for (row, target, weight) in rows {
        let scaled: Vec<f64> = row.iter().zip(&scale).map(|(v, s)| if *s > 0.0 { v / s } else { 0.0 }).collect();
        for i in (0..n).filter(|&i| scaled[i] != 0.0) {
            right[i] += weight * scaled[i] * target;
            for j in 0..n {
                gram[i][j] += weight * scaled[i] * scaled[j];
            }
        }
    }
    for (i, row) in gram.iter_mut().enumerate() {
        row[i] += RIDGE;
    }
    (gram, right, scale)
}

/// The least of x'Gx/2 - b'x with no x below 0, by the active-set method of Lawson and Hanson. `gram` is symmetric and
/// positive definite.
pub fn non_negative(gram: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    const SMALL: f64 = 1e-10;
    let n = right.len();
    let (mut x, mut used) = (vec![0.0; n], vec![false; n]);
    for _ in 0..10 * n.max(1) {
        let slope = |i: usize| right[i] - gram[i].iter().zip(&x).map(|(g, x)| g * x).sum::<f64>();
        let steepest = (0..n).filter(|&i| !used[i]).map(|i| (slope(i), i)).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, enters)) = steepest.filter(|(slope, _)| *slope > SMALL) else { break };
        used[enters] = true;
        loop {
            let places: Vec<usize> = (0..n).filter(|&i| used[i]).collect();
            let solved = solve(gram, right, &places);
            if solved.iter().all(|s| *s > 0.0) {
                x.fill(0.0);
                places.iter().zip(&solved).for_each(|(&i, s)| x[i] = *s);
                break;
            }
            // As far towards the solution as nothing falls below 0.
            let step = places.iter().zip(&solved).filter(|(_, s)| **s <= 0.0);
            let step = step.map(|(&i, s)| x[i] / (x[i] - s)).fold(1.0, f64::min);
            for (&i, s) in places.iter().zip(&solved) {
                x[i] += step * (s - x[i]);
                if x[i] <= SMALL * step.max(SMALL) || (*s <= 0.0 && x[i] <= SMALL) {
                    x[i] = 0.0;
                    used[i] = false;
                }
            }
            if !used.contains(&true) {
                break;
            }
        }
    }
    x
}

/// Solves the equations of some places.
pub(super) fn solve(gram: &[Vec<f64>], right: &[f64], places: &[usize]) -> Vec<f64> {
    let matrix: Vec<Vec<f64>> = places.iter().map(|&i| places.iter().map(|&j| gram[i][j]).collect()).collect();
    let right: Vec<f64> = places.iter().map(|&i| right[i]).collect();
    positive_definite::solve(&matrix, &right, RIDGE * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_negative_is_nothing() {
        // x + y = 1, x - y = 3: 2 and -1 without the demand, 2 and 0 with it.
        let rows = vec![(vec![1.0, 1.0], 1.0, 1.0), (vec![1.0, -1.0], 3.0, 1.0)];
        let x = weighted(&rows);
        assert!((x[0] - 2.0).abs() < 1e-6 && x[1] == 0.0, "{x:?}");
        let samples = [([1.0, 1.0], 1.0), ([1.0, 0.0], 2.0)].map(|(row, seconds)| Sample {
            row: row.to_vec(),
            seconds,
            group: String::new(),
        });
        let x = plain(&samples);
        assert!((x[0] - 2.0).abs() < 1e-6 && (x[1] + 1.0).abs() < 1e-6, "{x:?}");
        assert_eq!(weighted(&[(vec![0.0, 2.0], 4.0, 1.0)])[0], 0.0);
    }
}
