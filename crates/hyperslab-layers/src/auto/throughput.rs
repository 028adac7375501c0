//! Throughput model: predicts transfer times from earlier transfers.

use super::least_squares::fit;
use serde::{Deserialize, Serialize};

/// The transfers of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    pub ranks: u32,
    /// Bytes per rank.
    pub bytes: f64,
    pub seconds: f64,
}

impl Sample {
    /// Whether it is plausible.
    pub fn is_sane(&self) -> bool {
        let positive = |number: f64| number.is_finite() && number > 0.0;
        self.ranks > 0 && positive(self.bytes) && positive(self.seconds)
    }

    /// Aggregate bytes per second.
    fn log_rate(&self) -> f64 {
        (f64::from(self.ranks) * self.bytes / self.seconds).ln()
    }
}

/// Factor within which sizes count as equal.
const SAME_SIZE: f64 = 1.5;
/// Weight of a sample relative to the next one.
const FADING: f64 = 0.7;
/// Minimum number of samples of other sizes for cross-validation.
const ENOUGH: usize = 6;
const RIDGE: f64 = 0.1;

/// Predicts the seconds for `bytes` of each of `ranks` ranks: from the latest transfers of that size, or from a rule fitted
/// to all `samples`, which are in order of time.
pub(super) fn forecast(samples: &[Sample], ranks: u32, bytes: f64) -> Option<f64> {
    let alike = |sample: &Sample| {
        let ratio = sample.bytes / bytes;
        sample.ranks == ranks && ratio < SAME_SIZE && ratio > 1.0 / SAME_SIZE
    };
    let own: Vec<Sample> = samples.iter().copied().filter(alike).collect();
    let log_rate = match own.is_empty() {
        false => faded_mean(&own),
        true => Rule::best(samples)?.log_rate(ranks, bytes),
    };
    Some(f64::from(ranks) * bytes / log_rate.exp())
}

fn faded_mean(samples: &[Sample]) -> f64 {
    let (mut sum, mut weights, mut weight) = (0.0, 0.0, 1.0);
    for sample in samples.iter().rev() {
        sum += weight * sample.log_rate();
        weights += weight;
        weight *= FADING;
    }
    sum / weights
}

/// Model of the aggregate rate as a function of ranks and bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// Power law in ranks and bytes, linear in logarithms.
    Powers([f64; 3]),
    /// Proportional to ranks up to a limit: logarithms of the rate of one rank, and of the limit.
    RanksSaturate(f64, f64),
    /// Latency and bandwidth: a fixed time per epoch, then a rate.
    BytesSaturate(f64, f64),
}

impl Rule {
    /// Selects the rule with the best cross-validation.
    fn best(samples: &[Sample]) -> Option<Self> {
        let candidates = |samples: &[Sample]| {
            let points: Vec<_> = samples.iter().map(|s| ([ln_ranks(s), s.bytes.ln()], s.log_rate(), 1.0)).collect();
            let (one, ranks_limit) = saturating(samples, ln_ranks);
            let (byte, bytes_limit) = saturating(samples, |s| s.bytes.ln());
            [
                Self::Powers(fit(&points, RIDGE)),
                Self::RanksSaturate(one, ranks_limit),
                Self::BytesSaturate(byte, bytes_limit),
            ]
        };
        if samples.is_empty() {
            return None;
        }
        let all = candidates(samples);
        if samples.len() < ENOUGH {
            return Some(all[0]);
        }
        let fitted: Vec<Sample> = samples.iter().enumerate().filter(|(n, _)| n % 3 != 2).map(|(_, s)| *s).collect();
        let held: Vec<Sample> = samples.iter().enumerate().filter(|(n, _)| n % 3 == 2).map(|(_, s)| *s).collect();
        let quality = candidates(&fitted).map(|rule| rule.explained(&held));
        let best = (1..all.len()).fold(0, |best, next| if quality[next] > quality[best] + 0.01 { next } else { best });
        Some(all[best])
    }

    fn log_rate(&self, ranks: u32, bytes: f64) -> f64 {
        let ranks = f64::from(ranks).ln();
        match self {
            Self::Powers([level, by_ranks, by_bytes]) => level + by_ranks * ranks + by_bytes * bytes.ln(),
            Self::RanksSaturate(one, limit) => (one + ranks).min(*limit),
            Self::BytesSaturate(one, limit) => (one + bytes.ln()).min(*limit),
        }
    }

    /// The share of the differences between samples that it explains (r squared), at most 1.
    fn explained(&self, samples: &[Sample]) -> f64 {
        let mean = samples.iter().map(Sample::log_rate).sum::<f64>() / samples.len().max(1) as f64;
        let square = |value: f64| value * value;
        let left: f64 = samples.iter().map(|s| square(s.log_rate() - self.log_rate(s.ranks, s.bytes))).sum();
        let all: f64 = samples.iter().map(|s| square(s.log_rate() - mean)).sum();
        1.0 - left / all.max(1e-12)
    }
}

fn ln_ranks(sample: &Sample) -> f64 {
    f64::from(sample.ranks).ln()
}

/// `min(a * n, limit)` as logarithms, with the knee where it fits best. `ln_n` is the logarithm of n.
fn saturating(samples: &[Sample], ln_n: impl Fn(&Sample) -> f64) -> (f64, f64) {
    let mut points: Vec<(f64, f64)> = samples.iter().map(|sample| (ln_n(sample), sample.log_rate())).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut best, mut least) = ((f64::INFINITY, f64::INFINITY), f64::INFINITY);
    for knee in 0..=points.len() {
        let (rising, flat) = points.split_at(knee);
        let mean = |values: &mut dyn Iterator<Item = f64>, number: usize| match number {
            0 => f64::INFINITY,
            _ => values.sum::<f64>() / number as f64,
        };
        let slope = mean(&mut rising.iter().map(|(n, rate)| rate - n), rising.len());
        let limit = mean(&mut flat.iter().map(|(_, rate)| *rate), flat.len());
        let miss: f64 = points.iter().map(|(n, rate)| ((slope + n).min(limit) - rate).powi(2)).sum();
        if miss < least {
            (best, least) = ((slope, limit), miss);
        }
    }
    best
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sample(ranks: u32, bytes: f64, rate: f64) -> Sample {
        Sample { ranks, bytes, seconds: f64::from(ranks) * bytes / rate }
    }

    #[test]
    fn the_latest_of_the_same_size_count_most() {
        let mut samples: Vec<Sample> = (0..10).map(|_| sample(1, 1e6, 1e9)).collect();
        assert!((forecast(&samples, 1, 1.2e6).unwrap() - 1.2e-3).abs() < 1e-9);
        samples.extend((0..8).map(|_| sample(1, 1e6, 1e8)));
        let slow = forecast(&samples, 1, 1e6).unwrap();
        assert!((0.8e-2..1.01e-2).contains(&slow), "{slow}");
        assert_eq!(forecast(&[], 1, 1e6), None);
    }

    #[test]
    fn powers_are_found() {
        let rate = |ranks: u32, bytes: f64| 1e6 * f64::from(ranks).powf(0.5) * bytes.powf(0.3);
        let mut samples = Vec::new();
        for ranks in [1, 2, 4, 8] {
            for bytes in [1e4, 1e5, 1e6, 1e7] {
                samples.push(sample(ranks, bytes, rate(ranks, bytes)));
            }
        }
        for (ranks, bytes) in [(3, 3e5), (16, 1e6), (8, 1e8)] {
            let seconds = forecast(&samples, ranks, bytes).unwrap();
            let right = f64::from(ranks) * bytes / rate(ranks, bytes);
            assert!((seconds / right).ln().abs() < 0.1, "{ranks} {bytes}: {seconds} {right}");
        }
    }

    #[test]
    fn a_rate_that_saturates_is_seen_to() {
        let rate = |ranks: u32| (f64::from(ranks) * 1e8).min(8e8);
        let ranks = [1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32];
        let samples: Vec<Sample> = ranks.iter().map(|ranks| sample(*ranks, 1e7, rate(*ranks))).collect();
        assert!(matches!(Rule::best(&samples), Some(Rule::RanksSaturate(..))));
        let seconds = forecast(&samples, 128, 1e7).unwrap();
        assert!((seconds / (128.0 * 1e7 / 8e8)).ln().abs() < 0.05, "{seconds}");
        // A fixed time of a millisecond, then 1 GB/s.
        let sizes = [1e3, 1e4, 1e5, 1e7, 1e8, 1e9, 3e3, 3e4, 3e7];
        let samples: Vec<Sample> = sizes.iter().map(|bytes| sample(1, *bytes, (bytes * 1e3_f64).min(1e9))).collect();
        assert!(matches!(Rule::best(&samples), Some(Rule::BytesSaturate(..))));
        assert!((forecast(&samples, 1, 1e10).unwrap() - 10.0).abs() < 0.5);
    }

    #[test]
    fn few_samples_speak_for_other_sizes() {
        let one = [sample(1, 1e6, 1e9)];
        assert!((forecast(&one, 1, 1e8).unwrap() - 0.1).abs() < 1e-9);
        assert!(forecast(&one, 8, 1e6).unwrap() > 1e-3, "ranks share the rate, for all that is known");
    }
}
