//! The checks that need MPI, on every MPI library that the set-up found.

use std::process::Command;

use anyhow::Result;

use super::durations::Durations;
use super::{Outcome, Report};
use crate::build::MPI_FEATURES as FEATURES;
use crate::setup::{Environment, Mpi};
use crate::shell;
use crate::workspace::Workspace;

/// For the second MPI library, which needs a build of its own: only what calls MPI itself.
const FEW_FEATURES: [&str; 3] = ["--no-default-features", "--features", "mpi"];
/// Trials of the workflows' keys that are the same on any ranks.
const SAME_ON_THREADS: [&str; 16] = [
    "--skip",
    "reports::",
    "--skip",
    "timing::",
    "--skip",
    "kernels::",
    "--skip",
    "modify::repeated",
    "--skip",
    "reads::",
    "--skip",
    "patterns::memory",
    "--skip",
    "patterns::numbers",
    "--skip",
    "patterns::order",
];

/// Adds a step for each library. Clippy, and what only repeats the first library's checks, is for `long` runs.
pub fn run(workspace: &Workspace, environment: &Environment, long: bool, report: &mut Report) {
    let Some((usual, others)) = environment.mpi.split_first() else {
        return report.step("mpi", || Ok(Outcome::Skipped("no MPI here, and none could be installed".to_owned())));
    };
    let mut durations = std::mem::take(&mut report.durations);
    if long {
        report.step("mpi lint", || {
            let packages =
                ["--package", "hyperslab-comm", "--package", "hyperslab-formats", "--package", "hyperslab-cli"];
            let words = [&["clippy", "--all-targets"], &packages[..], &FEATURES, &["--", "-D", "warnings"]].concat();
            let mut command = workspace.cargo(&words);
            shell::run_visibly(usual.apply(environment.apply(&mut command)), "mend what clippy lists above")?;
            Ok(Outcome::Passed(String::new()))
        });
    }
    report.step("mpi", || {
        // The same packages each time: for others, cargo would build shared crates again with other features. The last one
        // has no tests here; through loom it decides features of crates below zarrs, which takes long to build.
        let names = ["hyperslab-comm", "hyperslab-formats", "hyperslab-cli", "hyperslab-interleavings"];
        let packages = [&names.map(|name| ["-p", name]).concat()[..], &FEATURES[..]].concat();
        let tests = ["--test", "mpi", "--test", "hdf5_mpi"];
        let more: &[&str] = if long { &["--", "--include-ignored"] } else { &[] };
        test(workspace, environment, usual, &[&packages[..], &tests, more].concat(), None, &mut durations)?;
        // Ranks spend much of their short lives waiting for each other to start.
        let keys = [&packages[..], &["--test", "h5bench_keys", "--", "--test-threads=4"], &SAME_ON_THREADS].concat();
        test(workspace, environment, usual, &keys, None, &mut durations)?;
        Ok(Outcome::Passed(usual.name.to_owned()))
    });
    if !long {
        report.step("mpi more", || Ok(Outcome::Skipped("clippy, and a second MPI library: with --long".to_owned())));
    }
    for other in others {
        report.step("mpich", || {
            let folder = Some("target/mpich");
            let comm = ["-p", "hyperslab-comm", "--features", "mpi", "--test", "mpi"];
            test(workspace, environment, other, &comm, folder, &mut durations)?;
            let formats = [&["-p", "hyperslab-formats"], &FEW_FEATURES[..], &["--test", "mpi"]].concat();
            test(workspace, environment, other, &formats, folder, &mut durations)?;
            Ok(Outcome::Passed(other.name.to_owned()))
        });
    }
    report.durations = durations;
}

/// Tests on one library. Crates remember which MPI they were built with, so another one needs another `folder`.
fn test(
    workspace: &Workspace,
    environment: &Environment,
    mpi: &Mpi,
    words: &[&str],
    folder: Option<&str>,
    durations: &mut Durations,
) -> Result<()> {
    let mut command: Command = workspace.cargo(&["test"]);
    command.args(words);
    if let Some(folder) = folder {
        command.env("CARGO_TARGET_DIR", workspace.root().join(folder));
    }
    environment.apply(&mut command);
    let hint = "mpirun -n 2 hostname, to see whether MPI runs at all";
    shell::run_watched(mpi.apply(&mut command), hint, |line| durations.see(line))
}
