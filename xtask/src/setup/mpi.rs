//! MPI libraries, each with its compiler and launcher, and libclang, which reads their header files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Environment, SetupOptions, apt, parallel_hdf5, say};
use crate::shell;
use crate::workspace::Workspace;

const PACKAGES: [&str; 4] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev", "zlib1g-dev"];
const MPICH_PACKAGES: [&str; 2] = ["libmpich-dev", "mpich"];

/// An MPI library, and the parallel libhdf5 that goes with it, if there is one.
#[derive(Debug)]
pub struct Mpi {
    /// What people call it.
    pub name: &'static str,
    /// Its C compiler.
    pub compiler: PathBuf,
    /// What starts its programs.
    pub launcher: PathBuf,
    /// Where its parallel libhdf5 is.
    pub hdf5: Option<PathBuf>,
}

impl Mpi {
    /// Sets the variables by which builds and tests find this library.
    pub fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if let Some(hdf5) = &self.hdf5 {
            command.env(parallel_hdf5::VARIABLE, hdf5);
        }
        command.env("MPICC", &self.compiler).env("HYPERSLAB_MPIRUN", &self.launcher)
    }
}

/// Finds the machine's MPI, or installs OpenMPI where apt can, and builds what belongs to it. Optional: what is missing
/// is listed.
pub fn provide(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) -> Result<Option<Mpi>> {
    let find = || programs(&usual_compiler(), "mpirun").filter(|_| has_libclang());
    if find().is_none() && options.apt && apt::usable() {
        attempt(apt::install(workspace, &PACKAGES, "MPI ranks"));
    }
    let Some((compiler, launcher)) = find() else {
        environment.missing.push(format!(
            "MPI (mpicc, mpirun) or libclang: {}; without root: load the MPI module of the cluster, and set LIBCLANG_PATH \
             to the folder of libclang.so (in the package libclang of PyPI or conda-forge)",
            apt::by_hand(&PACKAGES)
        ));
        return Ok(None);
    };
    say("found", format!("MPI ({})", version(&launcher)));
    let hdf5 = Some(parallel_hdf5::provide(workspace, options, environment, &compiler)?);
    Ok(Some(Mpi { name: "MPI", compiler, launcher, hdf5 }))
}

/// MPICH beside another MPI, under the names that Debian gives its programs; installed where apt can. Without HDF5, which
/// would have to be built once more.
pub fn provide_mpich(
    workspace: &Workspace,
    options: SetupOptions,
    environment: &mut Environment,
) -> Result<Option<Mpi>> {
    let find = || programs("mpicc.mpich", "mpirun.mpich");
    if find().is_none() && options.apt && apt::usable() {
        attempt(apt::install(workspace, &MPICH_PACKAGES, "the tests run on a second MPI library"));
    }
    let Some((compiler, launcher)) = find() else {
        let how = apt::by_hand(&MPICH_PACKAGES);
        environment.missing.push(format!("MPICH beside the usual MPI (mpicc.mpich, mpirun.mpich): {how}"));
        return Ok(None);
    };
    say("found", "MPICH");
    Ok(Some(Mpi { name: "MPICH", compiler, launcher, hdf5: None }))
}

/// Going on without something optional, after saying why.
fn attempt(done: Result<()>) {
    if let Err(error) = done {
        say("note", format!("going on without: {error:#}"));
    }
}

fn usual_compiler() -> String {
    std::env::var("MPICC").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "mpicc".to_owned())
}

fn programs(compiler: &str, launcher: &str) -> Option<(PathBuf, PathBuf)> {
    Some((shell::find_program(compiler)?, shell::find_program(launcher)?))
}

fn version(launcher: &Path) -> String {
    let text = shell::output(Command::new(launcher).arg("--version"), "").unwrap_or_default();
    text.lines().next().unwrap_or("mpirun").trim().to_owned()
}

fn has_libclang() -> bool {
    let given = std::env::var_os("LIBCLANG_PATH").is_some_and(|path| !path.is_empty());
    // Where Debian and others put it: beside the programs of LLVM, or among the libraries.
    let folders =
        ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path().join("lib"));
    given || folders.iter().map(Into::into).chain(llvm).any(|folder| holds_libclang(&folder))
}

fn holds_libclang(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| {
        let name = name.to_string_lossy();
        (name.starts_with("libclang.so") || name.starts_with("libclang-")) && name.contains(".so")
    })
}
