//! What builds of this program need.

use super::{Finding, State};
use crate::mpi_job::find_program;
use std::process::Command;

/// Compilers and their like.
pub fn look() -> Vec<Finding> {
    vec![
        tool("C compiler", &["cc", "gcc", "clang"], "sudo apt-get install build-essential"),
        tool("CMake", &["cmake"], "cargo xtask setup, which installs one privately"),
        tool("MPI compiler", &["mpicc"], "cargo xtask setup --mpi, or load the MPI module of the cluster"),
    ]
}

fn tool(what: &str, names: &[&str], remedy: &str) -> Finding {
    match names.iter().find_map(|name| find_program(name)) {
        Some(path) => {
            let version = first_line(Command::new(&path).arg("--version")).unwrap_or_default();
            Finding::good(what, format!("{} ({version})", path.display()))
        }
        None => Finding::new(what, State::Absent, "not on the PATH").try_this(remedy),
    }
}

/// The first line that a command prints, if it ends well.
pub fn first_line(command: &mut Command) -> Option<String> {
    run_text(command)?.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Everything that a command prints, if it ends well.
pub fn run_text(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
