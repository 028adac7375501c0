//! What the benchmark needs besides itself: the plugin, the library that slows files down, a C program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A library of this workspace, built for release by the same cargo.
pub fn library(package: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", package, "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run cargo to build {package}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{package} does not build: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let name = package.replace('-', "_");
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.filter(|message| message["target"]["name"] == *name).flat_map(|message| {
        let files = message["filenames"].as_array().cloned().unwrap_or_default();
        files.into_iter().filter_map(|file| file.as_str().map(PathBuf::from)).collect::<Vec<_>>()
    });
    let shared = files.filter(|file| file.extension().is_some_and(|end| end == "so"));
    shared.last().ok_or_else(|| format!("cargo did not say where the library of {package} is"))
}

/// Compiles the C program against a libhdf5 of version 1.14 or newer; `Err` begins with `skipped` where there is none.
pub fn c_program(folder: &Path) -> Result<PathBuf, String> {
    let (compiler, flags) = hdf5()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/connector/pieces.c");
    let program = folder.join("pieces");
    let mut command = Command::new(&compiler);
    command.arg("-O2").arg("-o").arg(&program).arg(source).args(&flags);
    let output = command.output().map_err(|error| format!("skipped: cannot run {compiler}: {error}"))?;
    match output.status.success() {
        true => Ok(program),
        false => Err(format!("{compiler} failed: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A compiler and its flags: those of the parallel HDF5 that `cargo xtask setup --mpi` builds, or of pkg-config.
fn hdf5() -> Result<(String, Vec<String>), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/hdf5-mpi");
    if let Ok(root) = root.canonicalize()
        && root.join("include/hdf5.h").is_file()
    {
        let (include, lib) = (root.join("include"), root.join("lib"));
        let flags = [
            format!("-I{}", include.display()),
            format!("-L{}", lib.display()),
            format!("-Wl,-rpath,{}", lib.display()),
        ];
        let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
        return Ok((compiler, flags.into_iter().chain(["-lhdf5".to_owned()]).collect()));
    }
    let ask = |words: &[&str]| {
        let output = Command::new("pkg-config").args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match ask(&["--atleast-version=1.14", "--cflags", "--libs", "hdf5"]) {
        Some(flags) => Ok(("cc".into(), flags.split_whitespace().map(str::to_owned).collect())),
        None => Err("skipped: no HDF5 of 1.14 or newer to compile with; cargo xtask setup --mpi builds one".into()),
    }
}
