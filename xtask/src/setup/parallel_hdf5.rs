//! A parallel libhdf5: the user's own (a module of a cluster), or one built once from the source that comes with a crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Environment, SetupOptions, say};
use crate::shell;
use crate::workspace::Workspace;

const SOURCE_CRATE: &str = "hdf5-metno-src";
/// Written last, so that a build that was cut off is begun anew.
const STAMP: &str = "built-by-xtask.txt";

/// Names a libhdf5 to builds.
pub const VARIABLE: &str = "HDF5_DIR";

/// Where the one is that people use and measure, and how well it is optimised.
const FOR_USE: (&str, &str) = ("target/hdf5-mpi", "-O3 -DNDEBUG");
/// The same for tests, which do with either: it is compiled in half the time.
const FOR_TESTS: (&str, &str) = ("target/hdf5-mpi-tests", "-O1 -DNDEBUG");

/// The folder of a parallel libhdf5 for the MPI library that has this C compiler.
pub fn provide(
    workspace: &Workspace,
    options: SetupOptions,
    environment: &Environment,
    compiler: &Path,
) -> Result<PathBuf> {
    let folder = |kind: (&str, &str)| workspace.root().join(kind.0);
    let chosen = std::env::var_os(VARIABLE).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
    if let Some(own) = chosen.filter(|own| *own != folder(FOR_USE) && *own != folder(FOR_TESTS)) {
        check(&own)?;
        say("found", format!("parallel HDF5 ({}, by {VARIABLE})", own.display()));
        return Ok(own);
    }
    let source = source(workspace)?;
    let stamp = |kind: (&str, &str)| format!("{}\n{}\n{}\n", source.display(), identity(compiler), kind.1);
    let is_there = |kind| fs::read_to_string(folder(kind).join(STAMP)).is_ok_and(|found| found == stamp(kind));
    let enough: &[(&str, &str)] = if options.tests { &[FOR_USE, FOR_TESTS] } else { &[FOR_USE] };
    if let Some(found) = enough.iter().find(|kind| is_there(**kind)) {
        say("found", format!("parallel HDF5 ({})", found.0));
        return Ok(folder(*found));
    }
    let made = if options.tests { FOR_TESTS } else { FOR_USE };
    build(workspace, environment, compiler, made.1, &source, &folder(made))?;
    fs::write(folder(made).join(STAMP), stamp(made)).with_context(|| format!("cannot write to {}", made.0))?;
    Ok(folder(made))
}

/// Refuses a libhdf5 that knows no MPI.
fn check(folder: &Path) -> Result<()> {
    let header = folder.join("include/H5pubconf.h");
    let text = fs::read_to_string(&header).with_context(|| {
        format!("{VARIABLE}: cannot read {}\n  try: name the folder above include and lib", header.display())
    })?;
    if !text.lines().any(|line| line.split_whitespace().eq(["#define", "H5_HAVE_PARALLEL", "1"])) {
        bail!(
            "{VARIABLE}: {} is no parallel HDF5\n  try: another module of the cluster, or unset {VARIABLE} to have one built",
            folder.display()
        );
    }
    Ok(())
}

/// What tells one compiler wrapper from another, since the library depends on its MPI.
fn identity(compiler: &Path) -> String {
    shell::output(Command::new(compiler).arg("-show"), "").unwrap_or_default().trim().to_owned()
}

/// The source, downloaded if it was not yet.
fn source(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo(&["metadata", "--format-version=1", "--features", "hyperslab/bundled-hdf5"]);
    let text = shell::output(&mut command, "a connection to the registry of crates, once")?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata did not print JSON")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == SOURCE_CRATE)
        .find_map(|package| package["manifest_path"].as_str())
        .with_context(|| format!("no package {SOURCE_CRATE} brings the source of libhdf5"))?;
    Ok(Path::new(manifest).with_file_name("ext").join("hdf5"))
}

fn build(
    workspace: &Workspace,
    environment: &Environment,
    compiler: &Path,
    flags: &str,
    source: &Path,
    folder: &Path,
) -> Result<()> {
    say("build", format!("parallel HDF5 with {}, which takes some minutes, once", compiler.display()));
    let work = workspace.state().join("hdf5-mpi-build");
    for old in [&work, &folder.to_owned()] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
    }
    let log = |step: &str| workspace.state().join(format!("log/hdf5-mpi-{step}.txt"));
    let hint = "another parallel HDF5, named by HDF5_DIR; docs/building.md says more";
    let cmake = || {
        let program = environment.variables.iter().find(|(name, _)| *name == "CMAKE").map(|(_, path)| path.clone());
        let mut command = Command::new(program.unwrap_or_else(|| "cmake".into()));
        environment.apply(&mut command);
        command
    };
    let mut configure = cmake();
    configure.env("CC", compiler).arg("-S").arg(source).arg("-B").arg(&work);
    configure.arg(format!("-DCMAKE_INSTALL_PREFIX={}", folder.display()));
    for (names, value) in [
        (
            [
                "BUILD_SHARED_LIBS",
                "HDF5_ENABLE_PARALLEL",
                "HDF5_ENABLE_SUBFILING_VFD",
                "HDF5_ENABLE_ZLIB_SUPPORT",
                "HDF5_NO_PACKAGES",
            ]
            .as_slice(),
            "ON",
        ),
        (
            &[
                "BUILD_STATIC_LIBS",
                "BUILD_TESTING",
                "HDF5_BUILD_CPP_LIB",
                "HDF5_BUILD_EXAMPLES",
                "HDF5_BUILD_FORTRAN",
                "HDF5_BUILD_HL_LIB",
                "HDF5_BUILD_JAVA",
                "HDF5_BUILD_TOOLS",
                "HDF5_BUILD_UTILS",
                "HDF5_ENABLE_SZIP_SUPPORT",
            ],
            "OFF",
        ),
        (&["CMAKE_BUILD_TYPE"], "Release"),
        (&["CMAKE_C_FLAGS_RELEASE"], flags),
        (&["CMAKE_INSTALL_LIBDIR"], "lib"),
    ] {
        configure.args(names.iter().map(|option| format!("-D{option}={value}")));
    }
    shell::run_quietly(&mut configure, &log("configure"), hint)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    shell::run_quietly(cmake().arg("--build").arg(&work).args(["--parallel", &cores]), &log("build"), hint)?;
    shell::run_quietly(cmake().arg("--install").arg(&work), &log("install"), hint)?;
    check(folder)?;
    // Objects of a finished build are of no use.
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))
}
