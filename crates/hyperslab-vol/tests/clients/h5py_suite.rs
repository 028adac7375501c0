//! h5py's own tests: the same result for each with and without the connector.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, trial};

const LIMIT: Duration = Duration::from_secs(300);
/// Of the ordinary run.
const USUAL: [&str; 3] = ["codec", "async", "safe"];
/// Tests whose result may differ, and why.
const MAY_DIFFER: [(&str, &str); 0] = [];

/// The result of each test.
type Results = BTreeMap<String, String>;

pub fn trials() -> Vec<Trial> {
    let usual = USUAL.iter().map(|mode| trial(format!("h5py's tests, {mode}"), move || compare(mode)));
    let rest = modes::ALL.iter().filter(|mode| !USUAL.contains(mode));
    let rest = rest.map(|mode| long_trial(format!("h5py's tests, {mode}"), move || compare(mode)));
    let older =
        modes::ALL.iter().map(|mode| long_trial(format!("h5py 3.14's tests, {mode}"), move || compare_older(mode)));
    usual.chain(rest).chain(older).collect()
}

fn compare(mode: &str) -> Outcome {
    static PLAIN: OnceLock<Result<Results, String>> = OnceLock::new();
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    if !program::has_module(&python, "pytest") {
        return Ok(Completion::ignored_with("the Python of HYPERSLAB_PYTHON has no pytest: cargo xtask setup --tests"));
    }
    let plain = PLAIN.get_or_init(|| results(&python, modes::PLAIN)).as_ref().map_err(Clone::clone)?;
    differences(plain, &results(&python, mode)?)
}

/// HDF5 1.14 is in an older h5py.
fn compare_older(mode: &str) -> Outcome {
    static PLAIN: OnceLock<Result<Results, String>> = OnceLock::new();
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON_HDF5_1_14").filter(|path| !path.is_empty()) else {
        return Ok(Completion::ignored_with("HYPERSLAB_PYTHON_HDF5_1_14 is not set: cargo xtask test --long sets it"));
    };
    let plain = PLAIN.get_or_init(|| results(Path::new(&python), modes::PLAIN)).as_ref().map_err(Clone::clone)?;
    differences(plain, &results(Path::new(&python), mode)?)
}

fn results(python: &Path, mode: &str) -> Result<Results, String> {
    let folder = program::folder()?;
    let report = folder.path().join("results.json");
    let mut command = program::python_command(python);
    command.arg(program::scripts().join("h5py_suite.py")).arg(&report).current_dir(folder.path());
    command.env("TMPDIR", folder.path());
    let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
    let text = std::fs::read_to_string(&report).map_err(|_| {
        ended.expect_success(&format!("h5py's tests under {mode}")).err().unwrap_or("no results".into())
    })?;
    serde_json::from_str(&text).map_err(|error| format!("results of h5py's tests: {error}"))
}

fn differences(plain: &Results, found: &Results) -> Outcome {
    if plain.len() < 500 {
        return Err(format!("only {} tests of h5py ran", plain.len()).into());
    }
    let mut wrong = Vec::new();
    for name in plain.keys().chain(found.keys().filter(|name| !plain.contains_key(*name))) {
        let of = |results: &Results| results.get(name).cloned().unwrap_or("missing".into());
        if of(plain) != of(found) && !MAY_DIFFER.iter().any(|(known, _)| known == name) {
            wrong.push(format!("{name}: {} without the connector, {} with it", of(plain), of(found)));
        }
    }
    if wrong.is_empty() { Ok(Completion::Completed) } else { Err(wrong.join("\n").into()) }
}
