//! valgrind: no access of the connector to memory that is not its own, none to what nobody has written.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, c_programs, long_trial, modes, trial};

const LIMIT: Duration = Duration::from_secs(600);
const NO_VALGRIND: &str = "no valgrind: the package valgrind has it";
const NO_LIBRARY: &str = "no libhdf5 to link with: cargo build -p hyperslab-cli makes one";
/// Who a report is about, if it is about us. HDF5 has functions whose names end in `hyperslab`.
const OURS: [&str; 6] = [
    "libhyperslab_vol",
    "hyperslab_vol::",
    "hyperslab_h5direct::",
    "hyperslab_filters::",
    "hyperslab_layers::",
    "hyperslab_journal::",
];
/// Modes of the ordinary run.
const USUAL: [&str; 2] = ["codec+async", "codec+log"];

pub fn trials() -> Vec<Trial> {
    let usual = USUAL.iter().map(|mode| trial(format!("valgrind, C, {mode}"), move || c(mode)));
    let rest = modes::ALL.iter().filter(|mode| !USUAL.contains(mode));
    let rest = rest.map(|mode| long_trial(format!("valgrind, C, {mode}"), move || c(mode)));
    let python = modes::ALL.iter().map(|mode| long_trial(format!("valgrind, h5py, {mode}"), move || h5py(mode)));
    usual.chain(rest).chain(python).collect()
}

fn valgrind() -> Option<Command> {
    let there = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    let mut command = Command::new("valgrind");
    command.args([
        "--quiet",
        "--error-limit=no",
        "--num-callers=40",
        "--leak-check=no",
        "--child-silent-after-fork=yes",
    ]);
    there.then_some(command)
}

/// Runs it and looks for the connector in what valgrind found.
fn watch(command: &mut Command, mode: &str, folder: &Path) -> Outcome {
    let report = folder.join("valgrind.txt");
    let ended = program::run(modes::apply(command, mode, folder)?, LIMIT)?;
    ended.expect_success(&format!("a program in valgrind under {mode}"))?;
    let found = std::fs::read_to_string(&report).map_err(|error| format!("no report of valgrind: {error}"))?;
    // A report is a paragraph; lines begin with the number of the process.
    let text: Vec<&str> = found.lines().map(|line| line.split_once("== ").map_or("", |(_, rest)| rest)).collect();
    let text = text.join("\n");
    let ours: Vec<&str> = text.split("\n\n").filter(|error| OURS.iter().any(|name| error.contains(name))).collect();
    if ours.is_empty() { Ok(Completion::Completed) } else { Err(format!("{mode}:\n{}", ours.join("\n\n")).into()) }
}

fn c(mode: &str) -> Outcome {
    let Some(mut command) = valgrind() else { return Ok(Completion::ignored_with(NO_VALGRIND)) };
    let Some(multi) = c_programs::program("multi")? else { return Ok(Completion::ignored_with(NO_LIBRARY)) };
    let folder = program::folder()?;
    command.arg(format!("--log-file={}", folder.path().join("valgrind.txt").display()));
    watch(command.arg(multi).arg(folder.path()), mode, folder.path())
}

fn h5py(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let Some(mut command) = valgrind() else { return Ok(Completion::ignored_with(NO_VALGRIND)) };
    let folder = program::folder()?;
    command.arg(format!("--log-file={}", folder.path().join("valgrind.txt").display()));
    command.arg(&python).args(["-m", "random_program", "run"]).arg(folder.path()).args(["1", "2", "3"]);
    command.env("PYTHONPATH", program::scripts()).env("PYTHONMALLOC", "malloc").env("PYTHONDONTWRITEBYTECODE", "1");
    watch(&mut command, mode, folder.path())
}
