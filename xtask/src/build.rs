//! `cargo xtask build`: the release program, on its own or with MPI, and the HDF5 connector.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::setup::{self, Environment, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// What a build with MPI has instead of the default features.
pub const MPI_FEATURES: [&str; 3] = ["--no-default-features", "--features", "parallel-hdf5,zarr"];

/// The HDF5 connector's file.
pub const PLUGIN: &str = "libhyperslab_vol.so";

/// What was built.
pub struct Built {
    /// The program.
    pub program: PathBuf,
    /// The HDF5 connector.
    pub plugin: PathBuf,
}

/// The command `build`.
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
    release(workspace, &environment, options.mpi).map(|_| ())
}

/// Builds the release program and the connector, with cargo's own progress on the screen.
pub fn release(workspace: &Workspace, environment: &Environment, mpi: bool) -> Result<Built> {
    let metadata = workspace.metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    let folder = Path::new(target).join("release");
    let built = Built { program: folder.join("hyperslab"), plugin: folder.join(PLUGIN) };
    println!("\nbuild");
    if !built.program.exists() {
        println!("  the first build compiles libraries too, which takes some minutes; later ones do not");
    }
    let begin = Instant::now();
    let mut command =
        workspace.cargo(&["build", "--release", "--package", "hyperslab-cli", "--package", "hyperslab-vol"]);
    environment.apply(&mut command);
    if mpi {
        let Some(library) = environment.mpi.first() else {
            bail!("there is no MPI\n  try: {}", environment.missing.join("\n       "));
        };
        library.apply(command.args(MPI_FEATURES));
    }
    let hint = "read the first error above; if it is about CMake, libhdf5 or MPI, docs/building.md helps";
    shell::run_visibly(&mut command, hint)?;
    let alone = put_alone(&folder)?;
    println!("  {} is ready after {:.1} s", workspace.display(&built.program), begin.elapsed().as_secs_f64());
    println!("  {} is the HDF5 connector: hyperslab run finds it there", workspace.display(&alone));
    Ok(built)
}

/// Links the plugin into a folder of its own: libhdf5 opens every library of a plugin folder.
fn put_alone(folder: &Path) -> Result<PathBuf> {
    let (alone, there) = (folder.join("plugin"), Path::new("..").join(PLUGIN));
    let link = alone.join(PLUGIN);
    let cannot = || format!("cannot link {PLUGIN} into {}", alone.display());
    fs::create_dir_all(&alone).with_context(cannot)?;
    if fs::read_link(&link).is_ok_and(|path| path == there) {
        return Ok(link);
    }
    match fs::remove_file(&link) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(cannot),
        _ => symlink(there, &link).with_context(cannot)?,
    }
    Ok(link)
}
