//! Fields of elements that are written one after another, and everyone who may look meanwhile.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(120);

pub fn trials() -> Vec<Trial> {
    in_modes("fields", fields)
}

/// With room for all fields, for some, and for none.
fn fields(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    for more in ["", ";memory=1MiB", ";memory=1MiB;threads=1"] {
        let folder = program::folder()?;
        let mut command = program::python_command(&python);
        command.arg(program::scripts().join("fields.py")).arg(folder.path());
        let ended = program::run(modes::apply_with(&mut command, mode, folder.path(), more)?, LIMIT)?;
        ended.expect_success(&format!("fields.py under {mode}{more}"))?;
    }
    Ok(Completion::Completed)
}
