//! Programs under `safe`, killed at the n-th change of a file: what is rolled back is as of the last flush. The same without
//! the connector is counted beside it.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(3600);

/// Files that cannot be made safe, each for a reason of its own, and one of them twice.
const PASSED_ON: &str = "
import h5py, sys
h5py.File('memory.h5', 'w', driver='core', backing_store=False).close()
for _ in range(2):
    file = h5py.File('followed.h5', 'w', libver='latest')
    file.create_dataset('x', (4,), maxshape=(None,), chunks=(4,))
    file.swmr_mode = True
    file.close()
";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("files that safe passes on", passed_on),
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

/// The user is told of every file that is not safe, and of none twice.
fn passed_on() -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    for mode in ["safe", "log"] {
        let folder = program::folder()?;
        let mut command = program::python_command(&python);
        command.args(["-c", PASSED_ON]).current_dir(folder.path());
        let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
        let told: Vec<&str> = ended.errors.lines().filter(|line| line.contains("safe from kills")).collect();
        let of = |file: &str| told.iter().filter(|line| line.contains(file)).count();
        if (told.len(), of("memory.h5"), of("followed.h5")) != (2, 1, 1) {
            return Err(format!("not each file is told of once under {mode}: {}", ended.errors).into());
        }
        ended.expect_success(&format!("files that are passed on under {mode}"))?;
    }
    Ok(Completion::Completed)
}
