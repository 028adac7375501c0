//! Selections of many pieces, and datasets that grow, against numpy.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(120);
/// Programs of a trial.
const PROGRAMS: &str = "25";

pub fn trials() -> Vec<Trial> {
    in_modes("pieces", pieces)
}

fn pieces(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("pieces.py")).arg(folder.path()).args(["1", PROGRAMS]);
    let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
    ended.expect_success(&format!("pieces.py under {mode}"))?;
    Ok(Completion::Completed)
}
