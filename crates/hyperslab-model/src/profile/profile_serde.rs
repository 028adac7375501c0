//! The written form of a profile: JSON, documented in docs/machine-profile.md.

use super::{Alignment, MachineFacts, PROFILE_VERSION, Profile, default_coefficients, variable};
use crate::configuration::Class;
use crate::contention::{Contention, ContentionCurve, RankKind};
use crate::counts::Count;
use crate::fit::{Bias, Fit, Interval, Quality};
use crate::layers::LayerCost;
use crate::python_costs::{PythonCosts, PythonLibrary};
use hyperslab_core::{CacheState, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    hyperslab_profile: u32,
    program: String,
    measured: f64,
    machine: MachineFacts,
    formats: Vec<WrittenFit>,
    ranks: Vec<WrittenSharing>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    layers: BTreeMap<String, LayerCost>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alignment: Vec<Alignment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copy_rate: Option<f64>,
    /// What libraries of Python add; absent where nobody measured it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    python: BTreeMap<PythonLibrary, PythonCosts>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFit {
    format: Class,
    cache: CacheState,
    /// Seconds for one of each thing done in reads, and in writes. What is absent was not measured.
    read: BTreeMap<String, f64>,
    write: BTreeMap<String, f64>,
    /// Absent when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval_factor: Option<f64>,
    /// What the seconds miss; absent when nothing was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correction: Option<WrittenCorrection>,
    quality: Quality,
}

/// How ranks share a way of storing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSharing {
    format: Class,
    kind: RankKind,
    crowds: Vec<Contention>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCorrection {
    /// Direction and name of each number of a make.
    variables: Vec<(String, String)>,
    runs: Vec<WrittenRun>,
}

/// A run that the correction was learnt from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRun {
    weight: f64,
    /// Roots of the parts of its time.
    make: Vec<f64>,
}

/// Only the version, to be read before anything else.
#[derive(Deserialize)]
struct Version {
    hyperslab_profile: u32,
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read profile", message).hint("hyperslab train makes a new one")
}

pub(super) fn to_json(profile: &Profile) -> Result<String> {
    let formats = profile.fits.iter().map(|(&(format, cache), fit)| {
        let of = |wanted: &str| {
            let measured = fit.coefficients.iter().enumerate().filter(|(place, _)| !fit.guessed.contains(place));
            measured
                .filter_map(|(place, &seconds)| variable(place).map(|(direction, count)| (direction, count, seconds)))
                .filter(|(direction, count, seconds)| {
                    *direction == wanted && (count.ordinary() > 0.0 || *seconds > 0.0)
                })
                .map(|(_, count, seconds)| (count.name().to_owned(), seconds))
                .collect()
        };
        let factor = Some(fit.interval.factor).filter(|factor| factor.is_finite());
        WrittenFit {
            format,
            cache,
            read: of("read"),
            write: of("write"),
            interval_factor: factor,
            correction: written_correction(fit),
            quality: fit.quality,
        }
    });
    let ranks = profile.sharing.iter().map(|(&(format, kind), sharing)| {
        let crowds = sharing.crowds().to_vec();
        WrittenSharing { format, kind, crowds }
    });
    let written = Written {
        hyperslab_profile: PROFILE_VERSION,
        program: profile.program.clone(),
        measured: profile.measured,
        machine: profile.machine.clone(),
        formats: formats.collect(),
        ranks: ranks.collect(),
        missing: profile.missing.clone(),
        layers: profile.layers.clone(),
        alignment: profile.alignment.clone(),
        copy_rate: profile.copy_rate,
        python: profile.python.clone(),
    };
    serde_json::to_string_pretty(&written)
        .map(|text| text + "\n")
        .map_err(|e| Error::new(ErrorKind::Io, "write profile", e.to_string()))
}

fn written_correction(fit: &Fit) -> Option<WrittenCorrection> {
    let Bias { makes, weights } = &fit.correction;
    let used: Vec<usize> = (0..fit.coefficients.len()).filter(|&at| fit.coefficients[at] > 0.0).collect();
    // Runs have nothing of what was not measured.
    let kept: Vec<usize> = (0..used.len()).filter(|&number| !fit.guessed.contains(&used[number])).collect();
    let names = kept.iter().filter_map(|&number| variable(used[number]));
    // Four digits are more than runs are alike in.
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let run = |(make, &weight): (&Vec<f64>, &f64)| WrittenRun {
        weight,
        make: kept.iter().map(|&number| rounded(make[number])).collect(),
    };
    (!makes.is_empty()).then(|| WrittenCorrection {
        variables: names.map(|(direction, count)| (direction.into(), count.name().into())).collect(),
        runs: makes.iter().zip(weights).map(run).collect(),
    })
}

pub(super) fn from_json(text: &str) -> Result<Profile> {
    let plain = |e: serde_json::Error| bad(e.to_string().replace(char::is_control, " "));
    let version: Version = serde_json::from_str(text).map_err(plain)?;
    let written: Written = match version.hyperslab_profile {
        PROFILE_VERSION => serde_json::from_str(text).map_err(plain)?,
        2 | 3 => {
            let mut value: Value = serde_json::from_str(text).map_err(plain)?;
            if version.hyperslab_profile == 2 {
                value = from_version_2(value).map_err(plain)?;
            }
            serde_json::from_value(from_version_3(value)).map_err(plain)?
        }
        other => {
            let message = format!("version {other} of the profile form; this build reads 2 to {PROFILE_VERSION}");
            return Err(Error::unsupported("read profile", message).hint("run hyperslab train again"));
        }
    };
    let mut fits = BTreeMap::new();
    for fit in written.formats {
        let key = (fit.format, fit.cache);
        if fits.insert(key, read_fit(fit)?).is_some() {
            return Err(bad(format!("{} is there twice", key.0.name())));
        }
    }
    let mut sharing = BTreeMap::new();
    for WrittenSharing { format, kind, crowds } in written.ranks {
        if sharing.insert((format, kind), ContentionCurve::new(crowds)?).is_some() {
            return Err(bad(format!("{} share {} twice", kind.name(), format.name())));
        }
    }
    written.layers.iter().try_for_each(|(name, cost)| cost.check(name))?;
    if written.alignment.iter().any(|known| [known.read, known.write].iter().any(|f| !(f.is_finite() && *f > 0.0))) {
        return Err(bad("an alignment takes no time, or for ever"));
    }
    let python = written.python.values();
    let mut python = python.flat_map(|each| [each.read_call, each.write_call, each.read_chunk, each.write_chunk]);
    if python.any(|seconds| !(seconds.is_finite() && seconds >= 0.0)) {
        return Err(bad("a time of a library of Python makes no sense"));
    }
    if written.copy_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
        return Err(bad("copies in memory take no time, or for ever"));
    }
    Ok(Profile {
        program: written.program,
        measured: written.measured,
        machine: written.machine,
        fits,
        sharing,
        missing: written.missing,
        layers: written.layers,
        alignment: written.alignment,
        copy_rate: written.copy_rate,
        python: written.python,
    })
}

/// Version 2 knew threads only, and one number for reading and writing, of what many of them get done.
fn from_version_2(mut profile: Value) -> serde_json::Result<Value> {
    let Some(keys) = profile.as_object_mut() else { return Ok(profile) };
    let servers: BTreeMap<Class, f64> = serde_json::from_value(keys.remove("servers").unwrap_or_default())?;
    let ranks = servers.into_iter().map(|(format, rate)| {
        let crowd = |ranks: usize, rate: f64| Contention { ranks, create: 0.0, open: 0.0, read: rate, write: rate };
        let many = (rate.ceil() as usize).clamp(2, 1 << 20);
        WrittenSharing { format, kind: RankKind::Threads, crowds: vec![crowd(1, 1.0), crowd(many, rate)] }
    });
    keys.insert("ranks".into(), serde_json::to_value(ranks.collect::<Vec<_>>())?);
    Ok(profile)
}

/// In version 3 what was absent took no time.
fn from_version_3(mut profile: Value) -> Value {
    let formats = profile.get_mut("formats").and_then(Value::as_array_mut);
    for fit in formats.into_iter().flatten() {
        for direction in ["read", "write"] {
            let Some(seconds) = fit.get_mut(direction).and_then(Value::as_object_mut) else { continue };
            for count in Count::ALL {
                seconds.entry(count.name()).or_insert_with(|| 0.0.into());
            }
        }
    }
    if let Some(keys) = profile.as_object_mut() {
        keys.insert("hyperslab_profile".into(), PROFILE_VERSION.into());
    }
    profile
}

fn read_fit(fit: WrittenFit) -> Result<Fit> {
    let mut coefficients = default_coefficients();
    let mut guessed: BTreeSet<usize> = (0..coefficients.len()).filter(|&place| coefficients[place] > 0.0).collect();
    for (names, offset) in [(&fit.read, 0), (&fit.write, Count::ALL.len())] {
        for (name, &seconds) in names {
            let place = Count::ALL.iter().position(|count| count.name() == name);
            let place = place.ok_or_else(|| bad(format!("nothing is called {name:?}")))?;
            if !(seconds.is_finite() && seconds >= 0.0) {
                return Err(bad(format!("{name} takes {seconds} seconds")));
            }
            coefficients[offset + place] = seconds;
            guessed.remove(&(offset + place));
        }
    }
    let interval = match fit.interval_factor {
        None => Interval::default(),
        Some(factor) if factor.is_finite() && factor >= 1.0 => Interval { factor },
        Some(factor) => return Err(bad(format!("an interval of a factor of {factor}"))),
    };
    let correction = match fit.correction {
        None => Bias::default(),
        Some(written) => read_correction(written, &coefficients, &guessed)
            .ok_or_else(|| bad(format!("the correction of {} does not belong to its seconds", fit.format.name())))?,
    };
    let guessed = guessed.into_iter().collect();
    Ok(Fit { coefficients, guessed, correction, interval, quality: fit.quality })
}

/// The correction in the order of the coefficients; `None` if it makes no sense.
fn read_correction(written: WrittenCorrection, coefficients: &[f64], guessed: &BTreeSet<usize>) -> Option<Bias> {
    let used = (0..coefficients.len()).filter(|&at| coefficients[at] > 0.0);
    // No run that it was learnt from had any of what was not measured.
    let of = |at: usize| -> Option<Option<usize>> {
        let (direction, count) = variable(at)?;
        let found = written.variables.iter().position(|(d, name)| d == direction && name == count.name());
        (found.is_some() || guessed.contains(&at)).then_some(found)
    };
    let order: Vec<Option<usize>> = used.map(of).collect::<Option<_>>()?;
    let mut correction = Bias::default();
    for WrittenRun { weight, make } in written.runs {
        let sensible = weight.is_finite()
            && make.len() == written.variables.len()
            && make.iter().all(|part| (0.0..=1.0).contains(part));
        if !sensible {
            return None;
        }
        correction.makes.push(order.iter().map(|at| at.map_or(0.0, |at| make[at])).collect());
        correction.weights.push(weight);
    }
    Some(correction)
}
