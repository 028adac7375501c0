//! The Python package (`python/`) with the program, the connector and the reader of this build: its own tests, by pytest.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of `hyperslab`, and that of `libhyperslab_reader.so`, which is built with this test. The program is there when
/// the whole workspace is tested; otherwise it is built now.
fn built() -> (PathBuf, PathBuf) {
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let programs = libraries.parent().unwrap().to_owned();
    if !programs.join("hyperslab").exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "-p", "hyperslab-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }
    (programs, libraries)
}

#[test]
fn the_tests_of_the_package_pass() {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else { return };
    let (programs, libraries) = built();
    // A folder as an installation has it: the connector must lie alone.
    let prefix = tempfile::tempdir().unwrap();
    let (bin, lib) = (prefix.path().join("bin"), prefix.path().join("lib/hyperslab"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    let plugin = [&libraries, &programs].map(|folder| folder.join("libhyperslab_vol.so"));
    let plugin = plugin.iter().find(|path| path.exists()).expect("cargo build -p hyperslab-vol makes the connector");
    // The program asks where it is, so it is copied; the others are loaded by path.
    std::fs::copy(programs.join("hyperslab"), bin.join("hyperslab")).unwrap();
    std::os::unix::fs::symlink(plugin, lib.join("libhyperslab_vol.so")).unwrap();
    let reader = libraries.join("libhyperslab_reader.so");
    std::os::unix::fs::symlink(reader, prefix.path().join("lib/libhyperslab_reader.so")).unwrap();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let output = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"])
        .current_dir(&package)
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPERSLAB_PROGRAM", bin.join("hyperslab"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed"), "no test ran: {said}");
}
