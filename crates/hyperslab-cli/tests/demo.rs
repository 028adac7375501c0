//! `hyperslab demo` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::{hyperslab, run, said};
use std::fs;
use std::path::Path;

const QUICK: &[&str] = &["demo", "async", "--steps", "3", "--compute", "10ms", "--storage", "slow(1GB/s,100us)"];

/// Runs with a folder for temporary files that must be empty afterwards.
fn demo(directory: &Path, more: &[&str]) -> (i32, String, String) {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = hyperslab(directory);
    command.env("TMPDIR", temporary.path()).args(QUICK).args(more);
    if !more.contains(&"--size") {
        command.args(["--size", "64KiB"]);
    }
    let output = command.output().unwrap();
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "something is left behind");
    said(output)
}

#[test]
fn two_stacks_are_drawn_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, err) = demo(directory.path(), &["--stack-async", "twophase/slow(1GB/s,100us)/posix"]);
    assert_eq!(code, 0, "{out}\n{err}");
    for part in ["slow(1GB/s,100us)/posix", "twophase/slow(1GB/s,100us)/posix", "█", "x as fast", "compared", "|0 s"]
    {
        assert!(out.contains(part), "{part} is missing in\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "no colours where nobody sees them");
    assert!(err.contains("emulates storage"), "{err}");
    let picture = directory.path().join("hyperslab-demo-async.svg");
    assert!(fs::read_to_string(&picture).unwrap().contains("</svg>"));

    let again = demo(directory.path(), &["--stack-async", "twophase/posix"]);
    assert_eq!(again.0, 0, "its own picture is replaced: {}", again.2);
    fs::write(&picture, "precious").unwrap();
    let (code, _, err) = demo(directory.path(), &["--stack-async", "twophase/posix"]);
    assert!(code == 2 && err.contains("--overwrite"), "{err}");
    assert_eq!(fs::read_to_string(&picture).unwrap(), "precious");
    assert_eq!(demo(directory.path(), &["--stack-async", "twophase/posix", "--overwrite"]).0, 0);
    let (code, _, err) = demo(directory.path(), &["--stack-async", "twophase/posix", "--svg", "no/such/folder/x.svg"]);
    assert!(code != 0 && err.contains("no/such/folder/x.svg"), "{err}");
}

#[test]
fn writes_in_the_background_are_drawn_where_the_layer_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let there = run(directory.path(), &["formats"]).1.contains("\nasync: ");
    let (code, out, err) = demo(directory.path(), &[]);
    match there {
        true => {
            assert_eq!(code, 0, "{out}\n{err}");
            assert!(out.contains("async/slow(1GB/s,100us)/posix") && out.contains("hidden behind computing"), "{out}");
        }
        false => assert!(code == 2 && err.contains("layer \"async\" is not available"), "{err}"),
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    for (more, reason) in [
        (&["--stack-async", "slow/twophase/posix"][..], "put slow last"),
        (&["--stack-async", "nonsense/posix"], "not available"),
        (&["--stack-sync", "slow(fast)/posix"], "a rate such as"),
        (&["--stack-async", "twophase/posix", "--size", "5 furlongs"], "is not a size"),
        (&["--stack-async", "twophase/posix", "--size", "9999TiB"], "are needed"),
    ] {
        let (code, out, err) = demo(directory.path(), more);
        assert!(code == 2 && out.is_empty() && err.contains(reason), "{more:?}: {code} {out} {err}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
