//! Foreign programs that the tests hold against Hyperslab: h5py, netCDF4, xarray, zarr-python, h5dump, ncdump, ncvalidator.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Environment, SetupOptions, apt, private_python::PrivatePython, remember, say};
use crate::shell;
use crate::workspace::Workspace;

/// Names the Python that has the clients; the tests read it.
pub const VARIABLE: &str = "HYPERSLAB_PYTHON";
/// Names one whose h5py brings HDF5 1.14.
const OLDER_VARIABLE: &str = "HYPERSLAB_PYTHON_HDF5_1_14";
/// What a Python of the user's must have; tests with netCDF4, xarray and h5py's own suite (pytest) are skipped without those.
const MODULES: &str = "numpy, h5py, hdf5plugin, zarr";

/// A Python with numpy, h5py, hdf5plugin and zarr: the user's, if `HYPERSLAB_PYTHON` names one that has them, else the
/// private one.
pub fn python(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) -> Result<()> {
    if let Some(path) = chosen(workspace) {
        let check = format!("import {MODULES}");
        match shell::output(Command::new(&path).args(["-c", &check]), "install them there, or unset HYPERSLAB_PYTHON") {
            Ok(_) => {
                say("found", format!("Python with {MODULES} ({})", path.display()));
                environment.set(VARIABLE, path);
                return Ok(());
            }
            Err(error) => say("note", format!("{VARIABLE} is of no use, taking a private Python: {error:#}")),
        }
    }
    let python = PrivatePython::open(workspace, options).context(
        "the tests and the connector's benchmark use Python's h5py and zarr; cargo xtask test --no-python leaves that out",
    )?;
    python.install("test", "files are checked with them")?;
    say("found", format!("Python with {MODULES} ({})", workspace.display(&python.interpreter())));
    environment.set(VARIABLE, python.interpreter());
    Ok(())
}

/// A second Python, whose h5py brings HDF5 1.14. Optional: only long tests ask for it.
pub fn older_python(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) {
    let folder = workspace.root().join("target/python-hdf5-1.14");
    let ready = PrivatePython::open_in(workspace, options, folder)
        .and_then(|python| python.install("older", "long tests of the connector").map(|()| python.interpreter()));
    match ready {
        Ok(path) => environment.set(OLDER_VARIABLE, path),
        Err(error) => environment.missing.push(format!("h5py with HDF5 1.14: {error:#}")),
    }
}

/// Makes the tests believe that there is no such Python, whatever the variable says.
pub fn leave_out_python(environment: &mut Environment) {
    environment.removed.push(VARIABLE);
    environment.missing.push("tests with h5py and zarr-python: --no-python".to_owned());
}

/// Keeps naming the private Python if an earlier set-up for tests made it; installs nothing.
pub fn recall(workspace: &Workspace, environment: &mut Environment) {
    if let Some(path) = chosen(workspace) {
        environment.set(VARIABLE, path);
    } else if let Some(python) = PrivatePython::existing(workspace).filter(|python| python.has("test")) {
        environment.set(VARIABLE, python.interpreter());
    }
}

/// The Python that the user chose. The environment file may have set the variable too; that one is ours.
fn chosen(workspace: &Workspace) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(VARIABLE)?);
    (!path.as_os_str().is_empty() && !path.starts_with(workspace.python_environment())).then_some(path)
}

/// A program of the tests that apt may have.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
    /// Where it is to be had without root.
    elsewhere: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        program: "h5dump",
        package: "hdf5-tools",
        purpose: "h5dump checks HDF5 files in the tests",
        elsewhere: "the package hdf5 of conda-forge",
    },
    Tool {
        program: "ncdump",
        package: "netcdf-bin",
        purpose: "ncdump checks classic NetCDF files in the tests",
        elsewhere: "the package libnetcdf of conda-forge",
    },
    Tool {
        program: "ncvalidator",
        package: "pnetcdf-bin",
        purpose: "ncvalidator checks classic NetCDF files in the tests",
        elsewhere: "the package libpnetcdf of conda-forge",
    },
];

/// h5dump, ncdump and ncvalidator, where apt can give them. Optional; a failed attempt is remembered, so that the next set-up
/// is quick.
pub fn tools(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) {
    for tool in &TOOLS {
        tool.find(workspace, options, environment);
    }
}

impl Tool {
    fn find(&self, workspace: &Workspace, options: SetupOptions, environment: &mut Environment) {
        let program = self.program;
        if let Some(path) = shell::find_program(program) {
            return say("found", format!("{program} ({})", path.display()));
        }
        let failed_before = workspace.state().join(format!("{program}-cannot-be-installed"));
        if options.apt && apt::usable() && !failed_before.exists() {
            match apt::install(workspace, &[self.package], self.purpose) {
                Ok(()) => return,
                Err(error) => {
                    say("note", format!("going on without {program}: {error:#}"));
                    remember(&failed_before);
                }
            }
        }
        let by_hand = apt::by_hand(&[self.package]);
        let missing = format!("{program}: {by_hand}; without root: {}, on the PATH", self.elsewhere);
        environment.missing.push(missing);
    }
}
