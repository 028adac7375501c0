//! `hyperslab doctor` with programs to look at.
#![allow(clippy::unwrap_used)]

#[path = "common/plugin.rs"]
mod plugin;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::run;
use std::path::Path;

#[test]
fn a_python_is_tried_for_real() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    // As people type it: relative to where they are.
    std::os::unix::fs::symlink(python.parent().unwrap().parent().unwrap(), folder.path().join("venv")).unwrap();
    let name = Path::new("venv/bin").join(python.file_name().unwrap());
    let (code, out, err) = run(folder.path(), &["doctor", name.to_str().unwrap()]);
    let h5py = out.lines().find(|line| line.contains("h5py ")).unwrap_or_default();
    assert!(h5py.contains("  ok  ") && h5py.contains("HDF5 ") && h5py.contains("thread-safe"), "{out}{err}");
    assert!(h5py.ends_with("loads the connector"), "{out}{err}");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn compiled_programs_are_read_and_not_run() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = run(folder.path(), &["doctor", "sh"]);
    assert!(code == 1 && out.contains("neither it nor its libraries use HDF5"), "{out}");
    let (code, out, _) = run(folder.path(), &["doctor", "surely-no-such-program"]);
    assert!(code == 1 && out.contains("no such program"), "{out}");
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\ntouch ran\n").unwrap();
    let (code, out, _) = run(folder.path(), &["doctor", script.to_str().unwrap()]);
    assert!(code == 1 && out.contains("another language"), "{out}");
    assert!(!folder.path().join("ran").exists());
}

/// This program has its libhdf5 inside, and does not export it.
#[cfg(feature = "hdf5")]
#[test]
fn static_linking_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    #[allow(deprecated)]
    let own = assert_cmd::cargo::cargo_bin("hyperslab");
    let (code, out, err) = run(folder.path(), &["doctor", own.to_str().unwrap()]);
    assert!(code == 1 && out.contains("linked statically") && out.contains("-rdynamic"), "{out}{err}");
}
