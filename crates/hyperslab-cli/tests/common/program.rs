//! The program as a user starts it.

use assert_cmd::cargo::CommandCargoExt;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The program, to be started in `directory`. It does not know of any batch job around the tests.
pub fn hyperslab(directory: &Path) -> Command {
    #[allow(deprecated)]
    let mut command = Command::cargo_bin("hyperslab").unwrap();
    command.current_dir(directory);
    for_any_user(&mut command);
    // Jobs that begin and end side by side get into each other's way in a common one.
    command.env("OMPI_MCA_orte_tmpdir_base", directory.join(".openmpi"));
    for variable in ["SLURM_JOB_ID", "COBALT_JOBID", "PBS_JOBID", "LSB_JOBID"] {
        command.env_remove(variable);
    }
    command
}

/// Lets OpenMPI run as root and with more ranks than cores.
pub fn for_any_user(command: &mut Command) -> &mut Command {
    for variable in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"] {
        command.env(format!("OMPI_{variable}"), "1");
    }
    command.env("OMPI_MCA_mpi_yield_when_idle", "1")
}

/// Exit code, standard output and standard error.
pub fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    said(hyperslab(directory).args(arguments).output().unwrap())
}

/// Exit code, standard output and standard error of a finished program.
pub fn said(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A directory with the workflow `w.json`.
pub fn with(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("w.json"), text).unwrap();
    directory
}

/// A results file.
pub fn results(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
