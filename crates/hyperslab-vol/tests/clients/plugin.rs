//! The connector, built and alone in a folder: HDF5 tries to load every library that it finds beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// The folder for `HDF5_PLUGIN_PATH`.
pub fn folder() -> Result<&'static Path, String> {
    FOLDER.get_or_init(place).as_deref().map_err(Clone::clone)
}

fn place() -> Result<PathBuf, String> {
    // Made together with this program, which lies beside it.
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let built = program.with_file_name("libhyperslab_vol.so");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("plugin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let placed = folder.join("libhyperslab_vol.so");
    std::fs::copy(&built, &placed).map_err(|error| format!("cannot copy {}: {error}", built.display()))?;
    Ok(folder)
}

/// Removes the folder, if it was made.
pub fn remove() {
    if let Some(Ok(folder)) = FOLDER.get() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// The program of the command line, for what it does with the connector's files.
pub fn hyperslab() -> Result<&'static Path, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    // Tests of the whole workspace have it built already.
    let beside = || {
        let program = std::env::current_exe().ok()?;
        Some(program.parent()?.parent()?.join("hyperslab")).filter(|path| path.is_file())
    };
    let build = || built_by_cargo(&["--package", "hyperslab-cli", "--bin", "hyperslab"], "hyperslab", "hyperslab");
    PROGRAM.get_or_init(|| beside().map_or_else(build, Ok)).as_deref().map_err(Clone::clone)
}

/// The library that makes calls fail.
pub fn fault_shim() -> Result<&'static Path, String> {
    static SHIM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || built_by_cargo(&["--package", "hyperslab-faultshim"], "hyperslab_faultshim", ".so");
    SHIM.get_or_init(build).as_deref().map_err(Clone::clone)
}

/// Builds with the same cargo and finds where the file went whose name ends so.
fn built_by_cargo(words: &[&str], target: &str, ending: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--message-format=json"])
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run cargo to build {target}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{target} does not build: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|name| name.as_str().filter(|name| name.ends_with(ending)).map(PathBuf::from))
        .next_back()
        .ok_or_else(|| format!("cargo did not say where {target} is"))
}
