//! `cargo xtask crashlab`: the crash laboratory. Builds what takes part and runs it; words are those of the laboratory.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::{self, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// Everything that the laboratory runs, in one command, so that shared crates are built once.
const PACKAGES: [&str; 4] = ["hyperslab-cli", "hyperslab-vol", "hyperslab-faultshim", "hyperslab-crashlab"];

/// The command `crashlab`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let apt = !words.iter().any(|word| word == "--no-apt");
    let options = SetupOptions { tests: false, clients: true, long: false, mpi: false, apt };
    let environment = setup::prepare(workspace, options)?;
    let mut build = workspace.cargo(&["build", "--quiet"]);
    build.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    shell::run_visibly(environment.apply(&mut build), "mend what the compiler says above")?;
    let metadata = workspace.metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    let mut laboratory = Command::new(PathBuf::from(target).join("debug/hyperslab-crashlab"));
    laboratory.args(words.iter().filter(|word| *word != "--no-apt"));
    shell::run_visibly(
        environment.apply(&mut laboratory),
        "one failing case again: cargo xtask crashlab --mode M --seed S --length L --prefix N --keep DIR",
    )
}
