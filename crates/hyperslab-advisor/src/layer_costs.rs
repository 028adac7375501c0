//! What layers add to calls on this machine, and what alignment changes: measured beside the same calls without them.

use super::layer_trials::LayerTrial;
use anyhow::Result;
use hyperslab_core::{Stack, TransferMode};
use hyperslab_model::{Alignment, LayerCost, Profile};
use hyperslab_run::{Case, Progress, run_case};
use std::path::Path;

/// Layers that are measured, and whether they act on collective transfers of several ranks only.
const LAYERS: [(&str, bool); 6] =
    [("async", false), ("cache", false), ("log", false), ("loglayout", false), ("trace", false), ("twophase", true)];
/// Many small calls, and few large ones: their number, and elements of each.
const SMALL: (u64, u64) = (512, 256);
const LARGE: (u64, u64) = (12, 524_288);
/// The best of so many runs stands for all: what disturbs makes them longer only.
const RUNS: usize = 5;
/// Sizes at whose multiples chunks are put.
const ALIGNMENTS: [u64; 2] = [4 << 10, 1 << 20];
/// Pairs of runs that are compared for it, and the difference below which one is taken to be noise.
const PAIRS: usize = 7;
const NOISE: f64 = 0.05;

/// Adds what layers cost to the profile, or to what is missing from it. Takes a few seconds and leaves no files.
pub fn measure(directory: &Path, progress: &Progress, profile: &mut Profile) -> Result<()> {
    let place = tempfile::Builder::new().prefix("layers-").tempdir_in(directory)?;
    let bench = Bench { directory: place.path(), progress };
    for (name, collective) in LAYERS {
        if progress.stop_requested() {
            return Ok(());
        }
        match bench.layer(name, collective) {
            Ok(cost) => {
                profile.layers.insert(name.into(), cost);
            }
            Err(error) => profile.missing.push(format!("the layer {name}: {error:#}")),
        }
    }
    match bench.alignment() {
        Ok(found) => profile.alignment = found,
        Err(error) => profile.missing.push(format!("alignment: {error:#}")),
    }
    Ok(())
}

struct Bench<'a> {
    directory: &'a Path,
    progress: &'a Progress,
}

impl Bench<'_> {
    /// Writes are measured above a format that discards them, so that only the layer is seen; reads above raw files.
    fn layer(&self, name: &str, collective: bool) -> Result<LayerCost> {
        let (ranks, transfer) = if collective { (2, TransferMode::Collective) } else { (1, TransferMode::Independent) };
        let trial =
            |(calls, elements): (u64, u64), writes: bool| LayerTrial { ranks, calls, elements, writes, transfer };
        let more = |work: LayerTrial, below: &str| -> Result<f64> {
            let prepare = LayerTrial { writes: true, ..work };
            if !work.writes {
                // The file that is read must be there, made without the layer.
                self.seconds(&below.parse()?, &prepare, 1)?;
            }
            // In turns, so that what disturbs one disturbs the other.
            let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
            let stack = format!("{name}/{below}").parse()?;
            for _ in 0..RUNS {
                without = without.min(self.seconds(&below.parse()?, &work, 1)?);
                with = with.min(self.seconds(&stack, &work, 1)?);
            }
            Ok((with - without).max(0.0))
        };
        let (write_call, write_byte) =
            split((SMALL, more(trial(SMALL, true), "null")?), (LARGE, more(trial(LARGE, true), "null")?));
        let (read_call, read_byte) =
            split((SMALL, more(trial(SMALL, false), "posix")?), (LARGE, more(trial(LARGE, false), "posix")?));
        Ok(LayerCost { write_call, write_byte, read_call, read_byte })
    }

    /// Chunks whose size is no multiple of a page, with and without alignment.
    fn alignment(&self) -> Result<Vec<Alignment>> {
        let write =
            LayerTrial { ranks: 1, calls: 8, elements: 500_500, writes: true, transfer: TransferMode::Independent };
        let read = LayerTrial { writes: false, ..write };
        let plain: Stack = "hdf5(chunk=50050)".parse()?;
        let mut found = Vec::new();
        for bytes in ALIGNMENTS {
            let stack: Stack = format!("hdf5(chunk=50050,align={bytes})").parse()?;
            let (mut writing, mut reading) = (Vec::new(), Vec::new());
            for _ in 0..PAIRS {
                let both = |stack: &Stack| {
                    Ok::<_, anyhow::Error>((self.seconds(stack, &write, 1)?, self.seconds(stack, &read, 1)?))
                };
                let (without, with) = (both(&plain)?, both(&stack)?);
                writing.push(with.0 / without.0);
                reading.push(with.1 / without.1);
            }
            found.push(Alignment { bytes, write: agreed(writing), read: agreed(reading) });
        }
        Ok(found)
    }

    /// The shortest time of some runs.
    fn seconds(&self, stack: &Stack, work: &LayerTrial, repeat: usize) -> Result<f64> {
        let format = hyperslab_run::open_stack(stack)?;
        let workload = work.workload(&format!("layers.{}", format.extension()))?;
        let usual = Case::new(&workload, format, self.directory, self.progress);
        let outcome = run_case(&Case { repeat, overwrite: true, ..usual });
        if let Some(error) = outcome.failure {
            return Err(error.into());
        }
        Ok(outcome.repetitions.iter().map(|repetition| repetition.observed()).fold(f64::INFINITY, f64::min))
    }
}

/// The ratio in the middle, if all but one say the same; otherwise there is no difference.
fn agreed(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    let (Some(second), Some(last_but_one)) = (ratios.get(1), ratios.iter().rev().nth(1)) else { return 1.0 };
    let differs = *second > 1.0 + NOISE || *last_but_one < 1.0 - NOISE;
    let middle = ratios[ratios.len() / 2];
    if differs && middle.is_finite() && middle > 0.0 { middle } else { 1.0 }
}

/// Seconds of a call and of a byte, neither below 0, from two measured times.
fn split(small: ((u64, u64), f64), large: ((u64, u64), f64)) -> (f64, f64) {
    let numbers = |(calls, elements): (u64, u64)| (calls as f64, (calls * elements * LayerTrial::ELEMENT) as f64);
    let ((few, little), (many, much)) = (numbers(small.0), numbers(large.0));
    let (small, large) = (small.1, large.1);
    let byte = ((large * few - small * many) / (much * few - little * many)).max(0.0);
    let call = (small - little * byte) / few;
    if call < 0.0 { (0.0, large / much) } else { (call, byte) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_that_are_not_repeated_are_noise() {
        assert_eq!(agreed(vec![0.5, 1.5, 1.0, 0.8, 1.2, 0.9, 1.1]), 1.0);
        assert_eq!(agreed(vec![0.5, 1.5, 0.6, 0.7, 0.6, 0.8, 0.6]), 0.6);
        assert_eq!(agreed(vec![1.3, 1.2, 0.7, 1.4]), 1.3);
        assert_eq!(agreed(Vec::new()), 1.0);
    }

    #[test]
    fn calls_and_bytes_are_told_apart() {
        let time = |(calls, elements): (u64, u64), call: f64, byte: f64| {
            calls as f64 * call + (calls * elements * LayerTrial::ELEMENT) as f64 * byte
        };
        for (call, byte) in [(2e-6, 1e-10), (0.0, 1e-10), (3e-6, 0.0)] {
            let found = split((SMALL, time(SMALL, call, byte)), (LARGE, time(LARGE, call, byte)));
            assert!((found.0 - call).abs() < 1e-12 && (found.1 - byte).abs() < 1e-16, "{found:?}");
        }
        // Noise makes neither negative.
        for (small, large) in [(1e-3, 1e-6), (1e-9, 1e-2), (0.0, 0.0)] {
            let (call, byte) = split((SMALL, small), (LARGE, large));
            assert!(call >= 0.0 && byte >= 0.0);
        }
    }
}
