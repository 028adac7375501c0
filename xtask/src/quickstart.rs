//! `cargo xtask quickstart`: from a checkout to the first table of results.

mod results_view;

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::build;
use crate::setup::{self, Environment, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

const WORKFLOW: &str = "examples/quickstart.json";
/// The folder that the workflow names.
const DATA: &str = "target/quickstart/data";
const RESULTS: &str = "target/quickstart/results";

/// The command `quickstart`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--mpi", "--no-apt"], false)?;
    let options = SetupOptions {
        tests: false,
        clients: false,
        long: false,
        mpi: arguments.has("--mpi"),
        apt: !arguments.has("--no-apt"),
    };
    let environment = setup::prepare(workspace, options)?;
    let program = build::release(workspace, &environment, options.mpi)?.program;
    let (formats, launcher, ranks) = if options.mpi {
        ("posix,mpiio,hdf5,zarr", "mpi", "two MPI ranks")
    } else {
        ("posix,hdf5,zarr", "threads", "two ranks")
    };
    println!("\nbenchmark: one workload, several formats, {ranks}, page cache warm and cold, every byte verified");
    let mut command = Command::new(Path::new(".").join(workspace.display(&program)));
    command.current_dir(workspace.root()).args(["bench", WORKFLOW, "--format", formats, "--ranks", "2"]);
    command.args(["--launcher", launcher]);
    command.args(["--warm", "--cold", "--verify", "--repeat", "3", "--overwrite", "--out", RESULTS]);
    shell::run_visibly(&mut command, "room for 1 GiB in target/quickstart, then cargo xtask quickstart once more")?;
    say_what_next(workspace, &environment, &program);
    Ok(())
}

fn say_what_next(workspace: &Workspace, environment: &Environment, program: &Path) {
    let python = environment.python().map(|path| workspace.display(path));
    println!("\nwhat was written, and what lists it");
    for written in results_view::find(&workspace.root().join(DATA)) {
        let path = workspace.display(&written.path);
        println!("  {:<6} {path}", written.kind.name());
        for command in written.kind.how_to_list(&path, python.as_deref()) {
            println!("         $ {command}");
        }
    }
    if python.is_none() {
        println!("  cargo xtask setup --tests gives h5dump (as root) and a Python with h5py and zarr to look inside");
    }
    println!("  every number of the table, and more: {RESULTS}/results.json");
    println!("  to remove all of it: rm -r target/quickstart");
    let program = workspace.display(program);
    println!("\nwhat next");
    for (command, purpose) in [
        (format!("{program} bench --help"), "every option of the benchmark"),
        (format!("{program} formats"), "the formats and their options"),
        (format!("{program} run -- python SCRIPT"), "a program of yours with its HDF5 calls accelerated"),
        ("cargo xtask install".to_owned(), "put it into ~/.local, for use everywhere"),
        ("cargo xtask test".to_owned(), "check that all of it works on this machine"),
    ] {
        println!("  {command:<46} {purpose}");
    }
    println!("  copy {WORKFLOW} and change sizes or patterns, or take a workflow of h5bench as it is");
}
