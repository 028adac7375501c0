//! A Python: which of its packages bring a libhdf5, and whether each loads the connector, tried for real.

use super::trial::{Trial, TrialOutput};
use super::{NEWER, OLDEST, thread_safety};
use crate::doctor::{Finding, State};
use serde::Deserialize;
use std::path::Path;

/// Something that brings a libhdf5.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// A library that nothing here knows how to use through its package.
    library: Option<String>,
}

/// A libhdf5 that a process has loaded.
#[derive(Debug, Deserialize)]
struct Loaded {
    path: String,
    version: (u32, u32, u32),
    thread_safe: bool,
}

/// What a package did.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Did {
    libraries: Vec<Loaded>,
    error: Option<String>,
}

/// Looks through its packages.
pub fn look(python: &Path) -> Vec<Finding> {
    let listed = Trial::new(python, &["list"]).plain();
    let packages: Vec<Package> = match listed.answer() {
        Ok(packages) => packages,
        Err(why) => return vec![Finding::new("python", State::Lacking, format!("does not answer: {why}"))],
    };
    if packages.is_empty() {
        let finding = Finding::new("packages", State::Absent, "neither h5py nor netCDF4 nor another that brings HDF5");
        return vec![finding.try_this(format!("{} -m pip install h5py", python.display()))];
    }
    packages.iter().map(|package| judge(python, package)).collect()
}

fn judge(python: &Path, package: &Package) -> Finding {
    let what = format!("{} {}", package.name, package.version).trim().to_owned();
    let words = ["try", package.library.as_deref().unwrap_or(&package.name)];
    let trial = Trial::new(python, &words);
    let with = match trial.under_the_connector() {
        Ok(with) => with,
        Err(_) => return without_plugin(what, &trial.plain()),
    };
    match (with.answer::<Did>(), with.used_the_connector()) {
        (Ok(Did { libraries, error: None }), true) => {
            Finding::good(what, format!("{}: loads the connector", brought(&libraries)))
        }
        (Ok(Did { libraries, error: None }), false) => {
            let (why, remedy) = why_not(&libraries);
            Finding::new(what, State::Lacking, format!("{}: {why}", brought(&libraries))).try_this(remedy)
        }
        (answer, _) => {
            let why = answer.map_or_else(|why| why, |did| did.error.unwrap_or_default());
            broken(what, &why, &trial.plain())
        }
    }
}

/// It failed under the connector: is it the connector?
fn broken(what: String, why: &str, plain: &TrialOutput) -> Finding {
    match plain.answer::<Did>() {
        Ok(Did { libraries, error: None }) => {
            let seen = format!("{}: fails under the connector: {why}", brought(&libraries));
            Finding::new(what, State::Bad, seen).try_this("hyperslab run --mode off, and report it with this text")
        }
        other => {
            let why = other.map_or_else(|why| why, |did| did.error.unwrap_or_default());
            Finding::new(what, State::Lacking, format!("does not work by itself: {why}")).try_this("install it anew")
        }
    }
}

fn without_plugin(what: String, plain: &TrialOutput) -> Finding {
    match plain.answer::<Did>() {
        Ok(Did { libraries, .. }) => {
            Finding::new(what, State::Lacking, format!("{}: not tried without the plugin", brought(&libraries)))
        }
        Err(why) => Finding::new(what, State::Lacking, why),
    }
}

fn brought(libraries: &[Loaded]) -> String {
    if libraries.is_empty() {
        return "no libhdf5 to be seen".to_owned();
    }
    let words = |library: &Loaded| {
        let (major, minor, patch) = library.version;
        format!("HDF5 {major}.{minor}.{patch}, {} ({})", thread_safety(library.thread_safe), library.path)
    };
    libraries.iter().map(words).collect::<Vec<_>>().join(" and ")
}

fn why_not(libraries: &[Loaded]) -> (&'static str, &'static str) {
    if libraries.iter().any(|library| (library.version.0, library.version.1) < OLDEST) {
        return ("too old for connectors", NEWER);
    }
    let remedy = "HDF5_PLUGIN_PRELOAD and HDF5_VOL_CONNECTOR in what the package itself sets; HDF5_PLUGIN_PRELOAD=:: forbids plugins";
    ("did not load the connector", remedy)
}
