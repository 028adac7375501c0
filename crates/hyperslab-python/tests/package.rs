//! The Python package (`python/`) with the program, the connector and the reader of this build: its own tests and the examples
//! of its documentation, by pytest; and the archive for clusters, unpacked and used.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of `hyperslab`, and that of `libhyperslab_reader.so`, which is built with this test. The program is there when
/// the whole workspace is tested; otherwise it is built now.
fn built() -> (PathBuf, PathBuf) {
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let programs = libraries.parent().unwrap().to_owned();
    if !programs.join("hyperslab").exists() {
        let mut command = cargo();
        command.args(["build", "--quiet", "-p", "hyperslab-cli"]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }
    (programs, libraries)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Program, connector and reader as an installation has them: the connector must lie alone.
fn installed(prefix: &Path) -> PathBuf {
    let (programs, libraries) = built();
    let (bin, lib) = (prefix.join("bin"), prefix.join("lib/hyperslab"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    let plugin = [&libraries, &programs].map(|folder| folder.join("libhyperslab_vol.so"));
    let plugin = plugin.iter().find(|path| path.exists()).expect("cargo build -p hyperslab-vol makes the connector");
    // The program asks where it is, so it is copied; the others are loaded by path.
    std::fs::copy(programs.join("hyperslab"), bin.join("hyperslab")).unwrap();
    symlink(plugin, lib.join("libhyperslab_vol.so")).unwrap();
    symlink(libraries.join("libhyperslab_reader.so"), prefix.join("lib/libhyperslab_reader.so")).unwrap();
    bin.join("hyperslab")
}

fn tests_of_the_package(long: bool, what: &[&str]) {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else { return };
    let prefix = tempfile::tempdir().unwrap();
    let program = installed(prefix.path());
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let mut command = Command::new(python);
    command
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"])
        .args(what)
        .current_dir(&package)
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPERSLAB_PROGRAM", program);
    if long {
        command.env("HYPERSLAB_LONG", "1");
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" passed"), "no test ran: {said}");
}

#[test]
fn the_tests_of_the_package_pass() {
    tests_of_the_package(false, &["tests"]);
}

#[test]
fn the_examples_of_its_documentation_are_true() {
    tests_of_the_package(
        false,
        &[
            "--doctest-modules",
            "--doctest-glob=",
            "-o",
            "doctest_optionflags=ELLIPSIS NORMALIZE_WHITESPACE",
            "src/hyperslab",
        ],
    );
}

#[test]
#[ignore = "takes minutes; cargo test -p hyperslab-python --test package -- --ignored"]
fn the_long_tests_of_the_package_pass() {
    tests_of_the_package(true, &["tests", "-m", "long"]);
}

#[test]
fn the_archive_for_clusters_unpacks_and_works() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("built");
    installed(&prefix);
    // As cargo leaves them: all in one folder.
    let from = folder.path().join("from");
    std::fs::create_dir_all(&from).unwrap();
    for name in ["bin/hyperslab", "lib/libhyperslab_reader.so", "lib/hyperslab/libhyperslab_vol.so"] {
        let path = prefix.join(name);
        std::fs::copy(&path, from.join(path.file_name().unwrap())).unwrap();
    }
    let out = folder.path().join("out");
    // There when `cargo xtask test` runs this.
    let xtask = built().0.join("xtask");
    if !xtask.exists() {
        assert!(cargo().args(["build", "--quiet", "-p", "xtask"]).status().unwrap().success());
    }
    let mut command = Command::new(xtask);
    // Cargo tells the program of this package; it is to pack the workspace.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    command.current_dir(&workspace).env("CARGO_MANIFEST_DIR", workspace.join("xtask"));
    command.args(["tarball", "--from"]).arg(&from).arg("--out").arg(&out);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("installed, used, updated and removed"), "{said}");
    let recipe = std::fs::read_to_string(out.join("spack/spack_repo/hyperslab/packages/hyperslab/package.py")).unwrap();
    assert!(!recipe.contains("@") || recipe.contains("@run_after"), "{recipe}");
    let digest = recipe.split("sha256=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(digest.len(), 64, "{recipe}");
    assert!(std::fs::read_to_string(out.join("apptainer.def")).unwrap().contains("install.sh --prefix /opt/hyperslab"));
}
