//! The tools of HDF5: the same output with the connector as without.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, c_programs, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(60);
const NO_TOOLS: &str =
    "no h5dump of HDF5 1.14 or newer: cargo xtask setup --tests, or one on the PATH or in HYPERSLAB_HDF5_TOOLS";

pub fn trials() -> Vec<Trial> {
    in_modes("HDF5 tools", tools)
}

/// The folder of tools that know connectors.
fn folder_of_tools() -> Option<PathBuf> {
    let named = std::env::var_os("HYPERSLAB_HDF5_TOOLS").map(PathBuf::from);
    let path =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let set_up = c_programs::target().join("hdf5-tools");
    named.into_iter().chain([set_up]).chain(path).find(|folder| new_enough(&folder.join("h5dump")))
}

fn new_enough(h5dump: &Path) -> bool {
    let Ok(output) = Command::new(h5dump).arg("--version").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().next_back().unwrap_or_default().to_owned();
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (1, 14)
}

fn tools(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let Some(tools) = folder_of_tools() else { return Ok(Completion::ignored_with(NO_TOOLS)) };
    let folder = program::folder()?;
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("for_tools.py")).arg(folder.path());
    program::run(modes::apply(&mut command, modes::PLAIN, folder.path())?, LIMIT)?.expect_success("for_tools.py")?;
    let statistics = folder.path().join("statistics.jsonl");
    let say = |words: &[&str], mode: &str| -> Result<(Option<i32>, String), String> {
        let mut command = Command::new(tools.join(words[0]));
        command.args(&words[1..]).current_dir(folder.path());
        modes::apply(&mut command, mode, folder.path())?;
        let ended = program::run(command.env("HYPERSLAB_STATS", &statistics), LIMIT)?;
        Ok((ended.status.code(), ended.output + &ended.errors))
    };
    let compare = |words: &[&str]| -> Result<(), String> {
        let (plain, found) = (say(words, modes::PLAIN)?, say(words, mode)?);
        if plain == found { Ok(()) } else { Err(format!("{words:?}: {plain:?} without {mode}, {found:?} with it")) }
    };
    for words in [
        ["h5dump", "all.h5"].as_slice(),
        &["h5dump", "-p", "-H", "all.h5"],
        &["h5dump", "-d", "/packed[2,3;2,2;3,4]", "all.h5"],
        &["h5dump", "missing.h5"],
        &["h5ls", "-r", "-v", "all.h5"],
        &["h5ls", "-d", "all.h5/packed"],
        &["h5diff", "all.h5", "all.h5"],
        &["h5diff", "-v", "all.h5", "other.h5"],
        &["h5stat", "all.h5"],
    ] {
        compare(words)?;
    }
    for (at, options) in [
        ["-f", "GZIP=5"].as_slice(),
        &["-f", "NONE"],
        &["-l", "CONTI"],
        &["-l", "CHUNK=10x7", "-f", "SHUF", "-f", "GZIP=1"],
    ]
    .iter()
    .enumerate()
    {
        let packed = format!("packed{at}.h5");
        let words = [["h5repack"].as_slice(), options, &["all.h5", &packed]].concat();
        let (code, said) = say(&words, mode)?;
        if code != Some(0) {
            return Err(format!("{words:?} under {mode}: {code:?} {said}").into());
        }
        let (code, said) = say(&["h5diff", "all.h5", &packed], modes::PLAIN)?;
        if code != Some(0) {
            return Err(format!("{words:?} under {mode} made another file: {said}").into());
        }
    }
    // Otherwise nothing of the above would say anything.
    let loaded = std::fs::read_to_string(&statistics).unwrap_or_default();
    if !loaded.contains("\"hyperslab_connector_stats\"") {
        return Err(format!("no tool has loaded the connector in mode {mode}").into());
    }
    Ok(Completion::Completed)
}
