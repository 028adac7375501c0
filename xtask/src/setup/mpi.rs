//! An MPI library with its compiler and launcher, and libclang, which reads its header files.

use std::path::Path;
use std::process::Command;

use super::{Environment, Wish, apt, say};
use crate::shell;
use crate::workspace::Workspace;

const PACKAGES: [&str; 3] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev"];

/// Finds MPI, or installs OpenMPI where apt can. Optional: what is missing is listed.
pub fn provide(workspace: &Workspace, wish: Wish, environment: &mut Environment) {
    if !available()
        && wish.apt
        && apt::usable()
        && let Err(error) = apt::install(workspace, &PACKAGES, "MPI ranks")
    {
        say("note", format!("going on without MPI: {error:#}"));
    }
    if available() {
        let version = shell::output(Command::new("mpirun").arg("--version"), "").unwrap_or_default();
        return say("found", format!("MPI ({})", version.lines().next().unwrap_or("mpirun").trim()));
    }
    environment.missing.push(format!(
        "MPI (mpicc, mpirun) or libclang: {}; without root: load the MPI module of the cluster, and set LIBCLANG_PATH to \
         the folder of libclang.so (in the package libclang of PyPI or conda-forge)",
        apt::by_hand(&PACKAGES)
    ));
}

/// Whether crates that use MPI can be built and run.
pub fn available() -> bool {
    ["mpicc", "mpirun"].iter().all(|name| shell::find_program(name).is_some()) && has_libclang()
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
