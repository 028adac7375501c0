//! netCDF4, xarray and hdf5plugin: what one process writes another reads, with the connector in one, the other, or both; and two
//! libhdf5 in one process.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(120);
const NO_NETCDF: &str = "the Python of HYPERSLAB_PYTHON has no netCDF4 and xarray: cargo xtask setup --tests";

pub fn trials() -> Vec<Trial> {
    let round = in_modes("netCDF4 and xarray", round_trips);
    let plugins = in_modes("hdf5plugin", plugins);
    round.into_iter().chain(plugins).chain(in_modes("two libhdf5 in one process", two_libraries)).collect()
}

/// Has a process for each step, in its mode.
fn steps(module: &str, script: &str, steps: &[(&str, &str)], missing: &'static str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    if !program::has_module(&python, module) {
        return Ok(Completion::ignored_with(missing));
    }
    let folder = program::folder()?;
    for (what, mode) in steps {
        let mut command = program::python_command(&python);
        command.arg(program::scripts().join(script)).args(what.split_whitespace()).arg(folder.path());
        let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
        ended.expect_success(&format!("{script} {what} under {mode}"))?;
    }
    Ok(Completion::Completed)
}

fn round_trips(mode: &str) -> Outcome {
    let plain = modes::PLAIN;
    let there = [("write", mode), ("append", plain), ("check", plain), ("check", mode)];
    let back = [("write", plain), ("append", mode), ("check", plain)];
    for list in [there.as_slice(), back.as_slice()] {
        let done = steps("netCDF4, xarray", "netcdf.py", list, NO_NETCDF)?;
        if !matches!(done, Completion::Completed) {
            return Ok(done);
        }
    }
    Ok(Completion::Completed)
}

fn plugins(mode: &str) -> Outcome {
    let plain = modes::PLAIN;
    let missing = "the Python of HYPERSLAB_PYTHON has no hdf5plugin: cargo xtask setup --tests";
    steps("hdf5plugin", "plugins.py", &[("write", mode), ("check", plain), ("write", plain), ("check", mode)], missing)
}

fn two_libraries(mode: &str) -> Outcome {
    steps("netCDF4", "two_libraries.py", &[("", mode)], NO_NETCDF)
}
