//! Fits against times made from known coefficients.
#![allow(clippy::unwrap_used)]

use hyperslab_model::{Fit, Method, Sample, folds_by_group, leave_out};
use proptest::prelude::*;

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, of mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Runs of sizes over six orders of magnitude, with noise of a factor.
fn samples(truth: &[f64], count: usize, noise: f64, seed: u64) -> Vec<Sample> {
    let mut numbers = Numbers(seed);
    (0..count)
        .map(|i| {
            let row: Vec<f64> = truth.iter().map(|_| 10f64.powf(numbers.next() * 6.0)).collect();
            let exact: f64 = row.iter().zip(truth).map(|(v, c)| v * c).sum();
            Sample { row, seconds: exact * (noise * numbers.normal()).exp(), group: format!("{}", i % 20) }
        })
        .collect()
}

const TRUTH: [f64; 5] = [2e-6, 5e-6, 3e-9, 0.0, 7e-7];

#[test]
fn known_coefficients_are_found_again() {
    for method in [Method::Relative, Method::Robust] {
        let fit = Fit::new(&samples(&TRUTH, 300, 0.1, 1), method, &[]).unwrap();
        for (found, truth) in fit.coefficients.iter().zip(TRUTH) {
            assert!((found - truth).abs() <= 0.1 * truth + 1e-8, "{method:?}: {:?}", fit.coefficients);
        }
        assert!(fit.quality.log10_rmse < 0.06 && (0.85..=0.95).contains(&fit.quality.coverage), "{:?}", fit.quality);
    }
}

#[test]
fn disturbed_runs_do_little_harm_in_log_space() {
    let mut disturbed = samples(&TRUTH, 300, 0.05, 2);
    disturbed.iter_mut().step_by(10).for_each(|sample| sample.seconds *= 20.0);
    let off = |method| {
        let fit = Fit::new(&disturbed, method, &[]).unwrap();
        let size = |(found, truth): (&f64, f64)| (found / truth).ln().abs();
        [0, 1, 4].into_iter().map(|i| size((&fit.coefficients[i], TRUTH[i]))).fold(0.0, f64::max)
    };
    assert!(off(Method::Robust) < 0.1, "{}", off(Method::Robust));
}

#[test]
fn intervals_hold_nine_of_ten_new_runs() {
    let fit = Fit::new(&samples(&TRUTH, 400, 0.2, 3), Method::Robust, &[]).unwrap();
    let new = samples(&TRUTH, 1000, 0.2, 4);
    let inside = new.iter().filter(|sample| {
        let (low, high) = fit.interval.around(fit.seconds(&sample.row));
        (low..=high).contains(&sample.seconds)
    });
    let part = inside.count() as f64 / 1000.0;
    assert!((0.86..=0.94).contains(&part), "{part}");
}

#[test]
fn plain_least_squares_goes_below_nothing_where_ours_does_not() {
    // Two long runs that were disturbed drag coefficients of small ones along.
    let mut runs = samples(&TRUTH, 60, 0.3, 5);
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let last = runs.len() - 1;
    runs[last].seconds *= 3.0;
    let negative = |method| Fit::new(&runs, method, &[]).unwrap().coefficients.iter().any(|c| *c < 0.0);
    assert!(negative(Method::Plain) && !negative(Method::Robust));
    let error = |method| -> f64 {
        let left_out = leave_out(&runs, (method, &[]), &folds_by_group(&runs)).unwrap();
        let runs: Vec<_> = left_out.into_iter().flatten().collect();
        runs.iter().map(|run| (run.predicted / run.measured).log10().powi(2)).sum::<f64>() / runs.len() as f64
    };
    assert!(error(Method::Robust) < error(Method::Plain));
}

#[test]
fn what_runs_do_not_tell_is_ordinary() {
    // The second always comes with the first; the fourth never comes.
    let truth = [2e-4, 1e-6, 3e-9, 5e-5];
    let mut runs = samples(&truth[..3], 200, 0.05, 7);
    for run in &mut runs {
        run.row.push(0.0);
        run.row[1] = run.row[0];
        run.seconds = (truth[0] + truth[1]) * run.row[0] + truth[2] * run.row[2];
    }
    let ordinary = [1e-4, 2e-6, 1e-8, 4e-5];
    for method in [Method::Robust, Method::Corrected] {
        let fit = Fit::new(&runs, method, &ordinary).unwrap();
        let [first, second, third, fourth] = fit.coefficients[..] else { panic!("{fit:?}") };
        assert!((first + second - 2.01e-4).abs() < 4e-6 && second < 4e-6, "{:?}", fit.coefficients);
        assert!((third / truth[2] - 1.0).abs() < 0.02 && (fourth / ordinary[3] - 1.0).abs() < 1e-6, "{fourth}");
        assert_eq!(fit.guessed, [3]);
        let fit = Fit::new(&runs, method, &[]).unwrap();
        assert!(fit.coefficients[3] == 0.0 && fit.guessed.is_empty());
    }
    assert!(Fit::new(&runs, Method::Robust, &ordinary[..3]).is_err());
}

#[test]
fn what_runs_do_tell_is_not_what_is_ordinary() {
    let ordinary = TRUTH.map(|each| 20.0 * each + 1e-9);
    let fit = Fit::new(&samples(&TRUTH, 300, 0.1, 1), Method::Robust, &ordinary).unwrap();
    for (found, truth) in fit.coefficients.iter().zip(TRUTH) {
        assert!((found - truth).abs() <= 0.1 * truth + 1e-8, "{:?}", fit.coefficients);
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let sample = |row: &[f64], seconds| Sample { row: row.to_vec(), seconds, group: "a".into() };
    for bad in [
        vec![],
        vec![sample(&[1.0], 1.0), sample(&[1.0, 2.0], 1.0)],
        vec![sample(&[1.0], 0.0)],
        vec![sample(&[1.0], f64::NAN)],
        vec![sample(&[-1.0], 1.0)],
    ] {
        assert!(Fit::new(&bad, Method::Robust, &[]).is_err(), "{bad:?}");
    }
    // One run fits, but says nothing about how sure it is.
    let fit = Fit::new(&[sample(&[2.0], 1.0)], Method::Robust, &[]).unwrap();
    assert!((fit.seconds(&[4.0]) - 2.0).abs() < 1e-6 && fit.interval.factor.is_infinite());
}

#[test]
fn what_a_sum_cannot_say_is_learnt() {
    // Work of much of the second kind takes half as long again as a sum says.
    let mut runs = samples(&TRUTH[..2], 300, 0.05, 6);
    for run in &mut runs {
        let part = TRUTH[1] * run.row[1] / (TRUTH[0] * run.row[0] + TRUTH[1] * run.row[1]);
        run.seconds *= if part > 0.3 && part < 0.7 { 1.5 } else { 1.0 };
    }
    let error = |method| Fit::new(&runs, method, &[]).unwrap().quality.log10_rmse;
    assert!(error(Method::Corrected) < 0.7 * error(Method::Robust), "{}", error(Method::Corrected));
    // Twice the work takes twice the time, and what is unlike everything is not corrected by much.
    let fit = Fit::new(&runs, Method::Corrected, &[]).unwrap();
    let (row, twice) = ([1e3, 5e2], [2e3, 1e3]);
    assert!((fit.seconds(&twice) / fit.seconds(&row) - 2.0).abs() < 1e-9);
    let sum: f64 = fit.coefficients.iter().zip(row).map(|(c, v)| c * v).sum();
    assert!((0.5..=2.0).contains(&(fit.seconds(&row) / sum)));
}

proptest! {
    #[test]
    fn predictions_are_never_negative_and_never_less_for_more(
        seed in any::<u64>(),
        noise in 0.0f64..1.0,
        grown in prop::collection::vec(1.0f64..1e6, 5),
    ) {
        let fit = Fit::new(&samples(&TRUTH, 40, noise, seed), Method::Robust, &[]).unwrap();
        let mut numbers = Numbers(seed ^ 1);
        let row: Vec<f64> = grown.iter().map(|_| numbers.next() * 1e9).collect();
        let more: Vec<f64> = row.iter().zip(&grown).map(|(v, by)| v * by).collect();
        prop_assert!(fit.seconds(&row) >= 0.0);
        prop_assert!(fit.seconds(&more) >= fit.seconds(&row));
        let fit = Fit::new(&samples(&TRUTH, 40, noise, seed), Method::Corrected, &[]).unwrap();
        let twice: Vec<f64> = row.iter().map(|v| v * 2.0).collect();
        prop_assert!(fit.seconds(&row) >= 0.0 && fit.seconds(&twice) >= fit.seconds(&row));
    }
}

#[test]
fn coefficients_are_never_below_what_was_measured_by_itself() {
    // Two variables that always come together: the fit alone may give all to one of them.
    let sample = |row: &[f64], seconds: f64| Sample { row: row.to_vec(), seconds, group: "a".into() };
    let runs: Vec<Sample> = (1..40)
        .map(|n| sample(&[f64::from(n), f64::from(n), f64::from(n % 7)], 1e-3 * f64::from(n) + 1e-4 * f64::from(n % 7)))
        .collect();
    let bounded = Fit::bounded(&runs, Method::Robust, &[], &[4e-4, 4e-4, 0.0]).unwrap();
    assert!(bounded.coefficients[..2].iter().all(|each| *each >= 4e-4 * (1.0 - 1e-9)), "{:?}", bounded.coefficients);
    for run in &runs {
        assert!((bounded.seconds(&run.row) / run.seconds - 1.0).abs() < 0.1, "{:?}", bounded.coefficients);
    }
    assert!(Fit::bounded(&runs, Method::Robust, &[], &[1.0]).is_err());
}
