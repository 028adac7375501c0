//! What was measured, with what the model counts for it, and the profile that is fitted to it.

use super::compressibility::Compressibility;
use super::measured::openings;
use super::measurement::{Access, Measurement};
use super::metadata_ops::{self, Beside};
use super::timings::{Timing, Timings};
use super::{call_floors, memcpy_probe, profile_path, sharing};
use anyhow::{Result, bail};
use hyperslab_core::CacheState;
use hyperslab_core::workload::Workload;
use hyperslab_model::{Class, Counting, Fit, Method, Profile, RankKind, Sample, count, default_coefficients};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The workload of a timing, for which the model counts.
fn workload_of(trial: &Measurement, timing: &Timing) -> Option<hyperslab_core::Result<Workload>> {
    if let Some(what) = Beside::named(&timing.access) {
        return Some(what.workload(trial, "train"));
    }
    if timing.access == openings(RankKind::Threads) {
        return Some(trial.opened("train", 1, timing.direction == "write"));
    }
    let accesses = Access::WRITES.into_iter().chain(Access::READS);
    let access = accesses.into_iter().find(|access| access.name() == timing.access)?;
    Some(match timing.direction.as_str() {
        "write" => trial.write("train", access, timing.cache == "cold"),
        _ => trial.read("train", access),
    })
}

/// A timing with what the model counts for it.
#[derive(Debug)]
pub struct Measured<'a> {
    /// Counts and seconds. Those of one trial are a group.
    pub sample: Sample,
    /// What was measured.
    pub trial: &'a Measurement,
    /// How.
    pub timing: &'a Timing,
}

/// What was measured of one way of storing, counted in one way. `trials`: of these.
pub fn samples<'a>(
    trials: &'a [Measurement],
    timings: &'a Timings,
    class: Class,
    warmth: CacheState,
    counting: Counting,
) -> Result<Vec<Measured<'a>>> {
    let word = if warmth == CacheState::Cold { "cold" } else { "warm" };
    let by_name: BTreeMap<String, &Measurement> =
        trials.iter().filter(|trial| trial.class == class).map(|trial| (trial.name(), trial)).collect();
    let (mut samples, mut data) = (Vec::new(), Compressibility::new(None));
    for timing in timings.all.iter().filter(|timing| timing.cache == word && timing.ranks == 1) {
        let Some(&trial) = by_name.get(&timing.trial) else { continue };
        let Some(workload) = workload_of(trial, timing) else { continue };
        let workload = workload?;
        let configuration =
            hyperslab::configuration(&trial.stack)?.counting(counting).stored(data.shares(&workload, &trial.stack));
        let costs = count(&workload, &configuration)?;
        let warmth = if counting == Counting::Real { warmth } else { CacheState::Cold };
        let row = costs.by_rank.first().map(|work| work.row(warmth)).unwrap_or_default();
        let sample = Sample { row, seconds: timing.median(), group: trial.name() };
        samples.push(Measured { sample, trial, timing });
    }
    Ok(samples)
}

/// Fits a profile to what was measured; adds to `missing` what was not.
pub fn fit(trials: &[Measurement], timings: &Timings, directory: &Path, missing: &mut Vec<String>) -> Result<Profile> {
    let (mut fits, ordinary, least) = (BTreeMap::new(), default_coefficients(), call_floors::measured(directory)?);
    for class in Class::ALL {
        for warmth in [CacheState::Warm, CacheState::Cold] {
            let samples = samples(trials, timings, class, warmth, Counting::Real)?;
            if samples.iter().all(|one| one.trial.layout == metadata_ops::LAYOUT) {
                missing.push(format!("{}: nothing was measured", class.name()));
                continue;
            }
            let samples: Vec<Sample> = samples.into_iter().map(|one| one.sample).collect();
            fits.insert((class, warmth), Fit::bounded(&samples, Method::Corrected, &ordinary, &least)?);
        }
    }
    missing.sort();
    missing.dedup();
    if fits.is_empty() {
        bail!("nothing could be measured: {}", missing.join("; "));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Profile {
        program: env!("CARGO_PKG_VERSION").into(),
        measured: now.as_secs_f64(),
        machine: profile_path::facts(directory),
        sharing: sharing::found(timings, &fits)?,
        fits,
        missing: missing.clone(),
        layers: BTreeMap::new(),
        alignment: Vec::new(),
        copy_rate: Some(memcpy_probe::rate()?),
        python: BTreeMap::new(),
    })
}
