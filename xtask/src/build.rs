//! `cargo xtask build`: the release program, on its own or with MPI.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::setup::{self, Environment, Wish};
use crate::shell;
use crate::workspace::Workspace;

/// What a build with MPI has instead of the default features.
pub const MPI_FEATURES: [&str; 3] = ["--no-default-features", "--features", "parallel-hdf5,zarr"];

/// The command `build`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--mpi", "--no-apt"], false)?;
    let wish = Wish { tests: false, clients: false, mpi: arguments.has("--mpi"), apt: !arguments.has("--no-apt") };
    let environment = setup::prepare(workspace, wish)?;
    program(workspace, &environment, wish.mpi).map(|_| ())
}

/// Builds the release program, with cargo's own progress on the screen.
pub fn program(workspace: &Workspace, environment: &Environment, mpi: bool) -> Result<PathBuf> {
    let metadata = workspace.metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    let program = Path::new(target).join("release/hyperslab");
    println!("\nbuild");
    if !program.exists() {
        println!("  the first build compiles libraries too, which takes some minutes; later ones do not");
    }
    let begin = Instant::now();
    let mut command = workspace.cargo(&["build", "--release", "--package", "hyperslab"]);
    environment.apply(&mut command);
    if mpi {
        let Some(library) = environment.mpi.first() else {
            bail!("there is no MPI\n  try: {}", environment.missing.join("\n       "));
        };
        library.apply(command.args(MPI_FEATURES));
    }
    let hint = "read the first error above; if it is about CMake, libhdf5 or MPI, docs/building.md helps";
    shell::run_visibly(&mut command, hint)?;
    println!("  {} is ready after {:.1} s", workspace.display(&program), begin.elapsed().as_secs_f64());
    Ok(program)
}
