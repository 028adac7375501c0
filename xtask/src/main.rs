//! `cargo xtask`: set-up and checks of the workspace. Every command does the set-up it needs, says what it installs,
//! and is quick when there is nothing to do.
#![allow(clippy::print_stdout, reason = "a command line: its output is what it is for")]

mod arguments;
mod bench;
mod build;
mod check;
mod crashlab;
mod descriptions;
mod fuzz;
mod install;
mod licences;
mod memory_checks;
mod portable;
mod quickstart;
mod setup;
mod shell;
mod tarball;
mod test;
mod tidy;
mod wheel;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

/// One command: its name, its flags, what it is for, and what runs it.
struct Task {
    name: &'static str,
    flags: &'static str,
    purpose: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
}

const TASKS: [Task; 15] = [
    Task {
        name: "quickstart",
        flags: "[--mpi] [--no-apt]",
        purpose: "build the release program and run a first benchmark: POSIX, HDF5, Zarr; warm and cold; --mpi: on MPI ranks",
        run: quickstart::run,
    },
    Task {
        name: "build",
        flags: "[--mpi] [--no-apt]",
        purpose: "build the release program and the HDF5 connector; --mpi: with MPI ranks, MPI-IO and parallel HDF5",
        run: build::run,
    },
    Task {
        name: "install",
        flags: "[--prefix DIR] [--mpi] [--no-apt]",
        purpose: "build both and put them into DIR/bin and DIR/lib/hyperslab, ~/.local unless told otherwise",
        run: install::run,
    },
    Task {
        name: "wheel",
        flags: "[--out DIR] [--no-apt]",
        purpose: "build the Python package with both in it, for Linux with glibc 2.28 or newer, and check it in a clean environment",
        run: wheel::run,
    },
    Task {
        name: "tarball",
        flags: "[--out DIR] [--from DIR] [--no-apt]",
        purpose: "the same as an archive with an install script, for clusters without root and network, with a recipe for Spack and a definition for Apptainer beside it; --from: of what cargo built there, for machines like this one",
        run: tarball::run,
    },
    Task {
        name: "check",
        flags: "[--no-apt]",
        purpose: "before each commit: tidy, format, clippy of what changed, tests within libraries and programs; no Python, no MPI",
        run: check::run,
    },
    Task {
        name: "test",
        flags: "[--fast] [--no-python] [--mpi] [--no-apt] [--long] [--part NAMES] [-- ARGS]",
        purpose: "all checks: tidy, format, clippy (not with --fast), tests; --mpi: those under mpirun too; --long: also those that take minutes; --part: only these parts of it, listed in docs/testing.md, ARGS go to their programs; without it ARGS go to `cargo test`",
        run: test::run,
    },
    Task {
        name: "bench",
        flags: "[NAME...] [--check] [--no-apt] [-- ARGS]",
        purpose: "the ratio benchmarks; NAMEs choose some, --check and ARGS go to each of them",
        run: bench::run,
    },
    Task {
        name: "fuzz",
        flags: "[TARGET...] [--seconds N] [--build] [--no-apt] [-- ARGS]",
        purpose: "run the fuzz targets, 30 s each unless told otherwise; --build: only build them; ARGS go to libFuzzer",
        run: fuzz::run,
    },
    Task {
        name: "sanitize",
        flags: "[--no-apt] [-- ARGS]",
        purpose: "the tests of copy kernels, filters and the direct path with AddressSanitizer in Rust and C",
        run: memory_checks::sanitize,
    },
    Task {
        name: "miri",
        flags: "[-- ARGS]",
        purpose: "the tests of selections, copies and conversions under Miri, if a toolchain of rustup has it",
        run: memory_checks::miri,
    },
    Task {
        name: "crashlab",
        flags: "[--long] [--mode MODES] [--images N] [--kills N] [--seed S [--prefix N [--keep DIR]]] [--no-apt]",
        purpose: "the crash laboratory: what is left of random HDF5 programs that are killed at any moment; docs/crash-laboratory.md",
        run: crashlab::run,
    },
    Task {
        name: "tidy",
        flags: "",
        purpose: "check dependency arrows, licences, manifests and sources; needs no build",
        run: tidy::run,
    },
    Task {
        name: "setup",
        flags: "[--tests] [--mpi] [--no-apt]",
        purpose: "find or install what a build needs (--tests: what the tests need too; --mpi: MPI and a parallel HDF5)",
        run: setup::run,
    },
    Task { name: "help", flags: "", purpose: "this list", run: help },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<()> {
    let workspace = Workspace::find()?;
    let Some((name, rest)) = words.split_first() else {
        return help(&workspace, &[]);
    };
    if matches!(name.as_str(), "-h" | "--help") || rest.iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        return help(&workspace, &[]);
    }
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(&workspace, rest),
        None => {
            let names = TASKS.map(|task| task.name);
            anyhow::bail!(
                "there is no command {name:?}; {}\n  try: cargo xtask help",
                arguments::did_you_mean(name, &names)
            )
        }
    }
}

fn help(_: &Workspace, _: &[String]) -> Result<()> {
    println!("cargo xtask COMMAND: set-up and checks of the workspace\n");
    for task in &TASKS {
        println!("  {}", format!("{} {}", task.name, task.flags).trim_end());
        println!("      {}", task.purpose);
    }
    println!("\n--no-apt: never install packages of the system, even as root. docs/building.md says more.");
    Ok(())
}
