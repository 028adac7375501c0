//! Names and places in a file that belong to one object after another, in every mode.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, modes, trial};

const LIMIT: Duration = Duration::from_secs(120);
/// Those whose layers keep something, each alone.
const MODES: [&str; 6] = ["codec", "async", "log", "cache", "codec+log", "codec+auto"];

pub fn trials() -> Vec<Trial> {
    MODES.into_iter().map(|mode| trial(format!("objects, {mode}"), move || all(mode))).collect()
}

fn all(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("objects.py")).arg(folder.path());
    let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
    let last = ended.output.lines().next_back().unwrap_or("nothing begun").to_owned();
    ended.expect_success(&format!("objects.py under {mode} ({last})"))?;
    Ok(Completion::Completed)
}
