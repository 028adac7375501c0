//! Linear equations with a symmetric positive definite matrix: those of least squares.

/// Solves `matrix` x = `right` by Cholesky's decomposition. Pivots are held at `least` or above, so that columns that say the
/// same have an answer, too. Only the lower half of the matrix is looked at.
pub fn solve<R: AsRef<[f64]>>(matrix: &[R], right: &[f64], least: f64) -> Vec<f64> {
    let n = right.len();
    let mut lower = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = matrix[i].as_ref()[j] - inner;
            lower[i][j] = if i == j { rest.max(least).sqrt() } else { rest / lower[j][j] };
        }
    }
    let mut x: Vec<f64> = Vec::with_capacity(n);
    for i in 0..n {
        let inner: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
        x.push((right[i] - inner) / lower[i][i]);
    }
    for i in (0..n).rev() {
        let inner: f64 = (i + 1..n).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - inner) / lower[i][i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_fulfils_the_equations() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        let right = [1.0, -2.0, 3.0];
        let x = solve(&matrix, &right, 1e-12);
        for (row, right) in matrix.iter().zip(right) {
            let found: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((found - right).abs() < 1e-12, "{x:?}");
        }
        assert!(solve(&[[1.0, 1.0], [1.0, 1.0]], &[2.0, 2.0], 1e-9).iter().all(|x| x.is_finite()));
    }
}
