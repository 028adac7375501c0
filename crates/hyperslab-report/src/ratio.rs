//! The ratio of two medians, how sure it is, and what that means.

/// Fewer measurements than this on a side tell nothing about their spread.
pub const FEWEST: usize = 3;
/// Draws of random numbers that one comparison may cost, so that very many repetitions do not take minutes.
const MAX_DRAWS: usize = 50_000_000;

/// How the second file relates to the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the second over median of the first.
    pub value: f64,
    /// Its 95 % interval; absent with too few measurements.
    pub interval: Option<[f64; 2]>,
}

/// A ratio in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Beyond the threshold, and not by chance as far as can be told.
    Faster,
    /// Beyond the threshold the other way, and not by chance as far as can be told.
    Slower,
    /// Within the threshold, with the whole interval.
    Same,
    /// The interval allows more than one of the others.
    CannotTell,
}

impl Verdict {
    /// Judges a ratio of rates; `threshold` is a part of 1.
    pub fn of(ratio: &Ratio, threshold: f64) -> Self {
        let [low, high] = ratio.interval.unwrap_or([ratio.value; 2]);
        if ratio.value < 1.0 - threshold && high < 1.0 {
            Self::Slower
        } else if ratio.value > 1.0 + threshold && low > 1.0 {
            Self::Faster
        } else if low >= 1.0 - threshold && high <= 1.0 + threshold {
            Self::Same
        } else {
            Self::CannotTell
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// The medians of two sets of positive numbers, and their ratio. `None` if a set is empty or the ratio no number.
///
/// The interval comes from a bootstrap: both sets are drawn anew from themselves many times, and the middle 95 % of
/// the ratios of their medians are kept. Unlike the quotient of two order-statistics intervals it needs no six
/// repetitions a side and is not wider than it has to be; with three to five repetitions it takes in nearly all they
/// span, which is as much as they tell. The random numbers are always the same, so the same files get the same words.
pub fn of_medians(a: &[f64], b: &[f64]) -> Option<([f64; 2], Ratio)> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let medians = [median(&mut a.to_vec()), median(&mut b.to_vec())];
    let value = medians[1] / medians[0];
    if !value.is_finite() || value <= 0.0 {
        return None;
    }
    let interval = if a.len() < FEWEST || b.len() < FEWEST { None } else { bootstrap(a, b) };
    Some((medians, Ratio { value, interval }))
}

fn bootstrap(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    let resamples = (MAX_DRAWS / (a.len() + b.len())).clamp(200, 10_000);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut of_a, mut of_b) = (a.to_vec(), b.to_vec());
    let mut ratios: Vec<f64> = (0..resamples)
        .map(|_| {
            of_a.fill_with(|| a[random.below(a.len())]);
            of_b.fill_with(|| b[random.below(b.len())]);
            median(&mut of_b) / median(&mut of_a)
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let cut = resamples / 40;
    let interval = [ratios[cut], ratios[resamples - 1 - cut]];
    interval.iter().all(|end| end.is_finite()).then_some(interval)
}

/// The median of at least one number. Reorders them.
fn median(values: &mut [f64]) -> f64 {
    let (middle, even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return *upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Halved first: the sum of two large numbers may be none.
    lower / 2.0 + *upper / 2.0
}

/// The splitmix64 generator.
struct Random(u64);

impl Random {
    /// An evenly spread number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((u128::from(z) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn medians_of_odd_and_even_sets() {
        assert_eq!(median(&mut [3.0]), 3.0);
        assert_eq!(median(&mut [4.0, 1.0]), 2.5);
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&mut [9.0, 1.0, 5.0, 7.0]), 6.0);
        assert_eq!(median(&mut [f64::MAX, f64::MAX]), f64::MAX);
    }

    #[test]
    fn the_interval_holds_the_ratio_and_is_as_wide_as_the_sets() {
        let a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];
        let b = a.map(|x| x * 0.8);
        let ([of_a, of_b], ratio) = of_medians(&a, &b).unwrap();
        assert_eq!((of_a, of_b), (100.0, 80.0));
        let [low, high] = ratio.interval.unwrap();
        assert!(low > 0.78 && low <= 0.8 && (0.8..0.82).contains(&high), "{low} {high}");
        assert_eq!(of_medians(&a, &b).unwrap().1, ratio, "the same every time");
        let wide = of_medians(&[50.0, 100.0, 150.0], &[50.0, 100.0, 150.0]).unwrap().1;
        let [low, high] = wide.interval.unwrap();
        assert!(low < 0.5 && high > 2.0, "{low} {high}");
    }

    #[test]
    fn too_little_gives_no_interval_and_nonsense_no_ratio() {
        assert_eq!(of_medians(&[1.0, 1.0], &[2.0; 9]).unwrap().1, Ratio { value: 2.0, interval: None });
        assert_eq!(of_medians(&[], &[1.0]), None);
        assert_eq!(of_medians(&[1e-300], &[1e300]), None);
        assert_eq!(of_medians(&[1e300; 4], &[1e-300; 4]), None);
        let many = vec![2.0; 100_000];
        assert_eq!(of_medians(&many, &many).unwrap().1.interval, Some([1.0, 1.0]));
    }

    #[test]
    fn verdicts() {
        let judge = |value, interval| Verdict::of(&Ratio { value, interval }, 0.05);
        assert_eq!(judge(0.9, None), Verdict::Slower);
        assert_eq!(judge(0.9, Some([0.85, 0.95])), Verdict::Slower);
        assert_eq!(judge(0.9, Some([0.7, 1.0])), Verdict::CannotTell);
        assert_eq!(judge(1.1, None), Verdict::Faster);
        assert_eq!(judge(1.1, Some([0.99, 1.2])), Verdict::CannotTell);
        assert_eq!(judge(1.0, Some([0.96, 1.04])), Verdict::Same);
        assert_eq!(judge(1.0, Some([0.5, 2.0])), Verdict::CannotTell);
        assert_eq!(judge(0.951, None), Verdict::Same);
    }
}
