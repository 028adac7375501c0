//! Programs under `safe`, killed at the n-th change of a file: what is rolled back is as of the last flush. The same without
//! the connector is counted beside it.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(3600);

pub fn trials() -> Vec<Trial> {
    vec![
        trial("killed under safe", || kills("safe codec+safe", 41)),
        long_trial("killed under safe, at every change", || kills("safe codec+safe async+safe plain", 1)),
    ]
}

/// Kills each program at every `step`-th change.
fn kills(which: &str, step: u64) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let shim = match plugin::fault_shim() {
        Ok(shim) => shim,
        Err(why) => return Ok(Completion::ignored_with(why)),
    };
    let folder = program::folder()?;
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("safe_kills.py")).arg("campaign").arg(shim).arg(step.to_string());
    modes::apply(&mut command, modes::PLAIN, folder.path())?;
    command.env("HDF5_PLUGIN_PATH", plugin::folder()?).env("SAFE_KILLS_MODES", which).env("TMPDIR", folder.path());
    let said = program::run(&mut command, LIMIT)?.expect_success("safe_kills.py")?;
    println!("{said}");
    Ok(Completion::Completed)
}
