//! Application kernels by name, as a user meets them; their files against an independent expectation.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
mod program;

use program::{results, run};
use std::path::Path;
use std::process::Command;

const NAMES: [&str; 12] = [
    "amrex",
    "bdcats",
    "btio",
    "cosmoflow",
    "e3sm-f",
    "e3sm-g",
    "e3sm-i",
    "flash",
    "macsio",
    "openpmd",
    "vl-stream",
    "vpic",
];

/// Has Python check the files of a kernel; `HYPERSLAB_PYTHON` names one with h5py and numpy.
fn check(kernel: &str, directory: &Path) {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else {
        eprintln!("{kernel}: not compared, HYPERSLAB_PYTHON is not set (cargo xtask test sets it)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/kernels.py");
    let mut command = Command::new(python);
    command.arg(script).arg(kernel).arg(directory).env("PYTHONDONTWRITEBYTECODE", "1");
    let (code, out, err) = program::said(command.output().unwrap());
    assert_eq!((code, out.trim()), (0, "right"), "{kernel}: {err}");
}

/// Runs a kernel on HDF5 in a new directory, verified; returns the directory.
fn ran(words: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let arguments =
        [&["bench"], words, &["--verify", "--launcher", "threads", "--directory", "d", "--out", "r"]].concat();
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 0, "{words:?}: {out}\n{err}");
    directory
}

#[test]
fn every_kernel_runs_without_options_on_every_format() {
    let formats = if cfg!(feature = "hdf5") { "posix,hdf5,zarr" } else { "posix,zarr" };
    for name in NAMES {
        let directory = tempfile::tempdir().unwrap();
        let (code, out, err) = run(
            directory.path(),
            &["bench", name, "--format", formats, "--verify", "--launcher", "threads", "--out", "r"],
        );
        assert_eq!(code, 0, "{name}: {out}\n{err}");
        let results = results(&directory.path().join("r/results.json"));
        for case in results["cases"].as_array().unwrap() {
            assert_eq!((&case["status"], &case["verified"]), (&"ok".into(), &"yes".into()), "{name}: {case}");
            assert!(case["benchmark"].as_str().unwrap().starts_with(name), "{case}");
        }
    }
}

#[test]
fn kernels_are_listed_and_explained() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, _) = run(directory.path(), &["bench", "--list"]);
    assert_eq!(code, 0);
    for name in NAMES {
        assert!(out.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {out}");
        let (code, page, _) = run(directory.path(), &["bench", name, "--help"]);
        assert_eq!(code, 0);
        assert!(page.starts_with(&format!("{name}: ")) && page.contains("KEY=VALUE"), "{page}");
        assert!(page.contains("seed"), "keys of {name}: {page}");
    }
    let (_, page, _) = run(directory.path(), &["bench", "--help"]);
    assert!(page.contains("--stack") && page.contains("KERNEL"), "the command's own page: {page}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn what_is_not_understood_is_refused_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    for (words, reason) in [
        (&["flsh"][..], "flash"),
        (&["flash", "block=3"], "blocks"),
        (&["flash", "blocks=many"], "should be"),
        (&["flash", "blocks"], "KEY=VALUE"),
        (&["btio", "--ranks", "3"], "square"),
        (&["vl-stream", "type=text"], "vl"),
        (&["e3sm-f", "map=nowhere.h5"], "no such file"),
        (&["openpmd", "read=sw"], "sx"),
        (&["amrex", "deflate=10"], "0 to 9"),
        (&["macsio", "mode=SIF", "parts=1.5"], "whole"),
        (&["w.json", "blocks=3"], "keys are for kernels"),
    ] {
        let (code, _, err) = run(directory.path(), &[&["bench"], words].concat());
        assert!(code == 2 && err.contains(reason), "{words:?}: {code} {err}");
    }
}

#[test]
fn maps_of_pio_are_read() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("d1.dat", "version 2001 npes 2 ndims 1\n6\n0 3\n1 2 3\n1 3\n4 5 6\n"),
        ("d2.dat", "version 2001 npes 2 ndims 1\n6\n0 3\n5 3 1\n1 3\n2 4 6\n"),
        ("d3.dat", "version 2001 npes 2 ndims 2\n6 2\n0 6\n5 3 1 11 9 7\n1 6\n2 4 6 8 10 0\n"),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let arguments = [
        "bench",
        "e3sm-f",
        "map=d1.dat,d2.dat,d3.dat",
        "--format",
        "posix",
        "--verify",
        "--launcher",
        "threads",
        "--out",
        "r",
    ];
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    // 323 variables of 6 elements, 63 of 11, one of 6; 27 of a float64.
    assert_eq!(results["cases"][0]["bytes"], (324 * 6 + 63 * 11) * 4 + 27 * 8);
    std::fs::write(directory.path().join("d3.dat"), "version 2001 npes 2 ndims 2\n6 2\n0 6\n5 3 5").unwrap();
    let (code, _, err) = run(directory.path(), &arguments);
    assert!(code == 2 && err.contains("cut off"), "{err}");
}

#[cfg(feature = "hdf5")]
#[test]
fn files_are_those_of_the_programs() {
    for (kernel, words) in [
        ("flash", &["flash", "blocks=5", "guard=4", "--ranks", "3"][..]),
        ("btio", &["btio", "grid=12x13x14", "dumps=3", "--ranks", "9"]),
        ("cosmoflow", &["cosmoflow", "files=4"]),
        ("openpmd", &["openpmd"]),
        ("amrex", &["amrex", "levels=2", "--ranks", "3"]),
        ("stream", &["vl-stream"]),
        ("strings", &["vl-stream", "type=vl", "operations=300"]),
    ] {
        let directory = ran(words);
        check(kernel, &directory.path().join("d"));
    }
    for (kernel, runs) in [
        (
            "e3sm",
            [
                ("canonical", &["e3sm-f", "records=2", "history=h1", "--ranks", "3"][..]),
                ("blob", &["e3sm-f", "records=2", "history=h1", "layout=blob", "--ranks", "3"]),
            ],
        ),
        ("macsio", [("own", &["macsio", "dumps=2"][..]), ("shared", &["macsio", "mode=SIF", "dumps=2"])]),
    ] {
        let both = tempfile::tempdir().unwrap();
        for (name, words) in runs {
            std::fs::rename(ran(words).path().join("d"), both.path().join(name)).unwrap();
        }
        check(kernel, both.path());
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn the_log_layout_is_a_layer() {
    let directory = ran(&["e3sm-f", "layout=log", "history=h1", "operation=both"]);
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["cases"][0]["stack"], "loglayout/hdf5");
    assert_eq!(results["cases"][1]["verified"], "yes");
}

/// Workflows as h5bench's users have them for these kinds, with the keys of its samples.
#[cfg(feature = "hdf5")]
#[test]
fn workflows_of_h5bench_run() {
    let workflow = |benchmarks: &str| {
        format!(
            r#"{{"mpi": {{"command": "mpirun", "configuration": "--oversubscribe -np 2"}}, "vol": {{}}, "file-system": {{}},
                "directory": "storage", "benchmarks": [{benchmarks}]}}"#
        )
    };
    let openpmd = r#"{"benchmark": "openpmd", "configuration": {"operation": "write", "dim": "3", "balanced": "true", "ratio": "1",
        "steps": "6", "minBlock": "4 4 4", "grid": "4 2 2", "encoding": "f"}},
        {"benchmark": "openpmd", "configuration": {"operation": "read", "pattern": "sy"}}"#;
    let amrex = r#"{"amrex": {"file": "amrex.h5", "configuration": {"ncells": "16", "max_grid_size": "8", "nlevs": "1", "ncomp": "6",
        "nppc": "2", "nplotfile": "2", "nparticlefile": "2", "sleeptime": "0", "restart_check": "1", "mode": "SYNC"}}}"#;
    let e3sm = r#"{"benchmark": "e3sm", "file": "test.h5", "configuration": {"k": "", "r": "2", "i": "../../datasets/map_f_case_16p.h5"}}"#;
    let macsio = r#"{"benchmark": "macsio", "file": "test.h5", "configuration": {"parallel_file_mode": "MIF 8", "part_size": "64K", "num_dumps": 2}}"#;
    for (benchmarks, cases, said) in [
        (openpmd, 2, ""),
        (amrex, 3, ""),
        (e3sm, 2, "one of case F for 16 ranks is generated"),
        (macsio, 1, "every rank has its own"),
        (r#"{"benchmark": "openpmd", "configuration": {"operation": "read", "pattern": "fx"}}"#, 1, "made first"),
    ] {
        let directory = program::with(&workflow(benchmarks));
        let (code, out, err) =
            run(directory.path(), &["bench", "w.json", "--verify", "--launcher", "threads", "--out", "r"]);
        assert_eq!(code, 0, "{benchmarks}: {out}\n{err}");
        assert!(err.contains(said), "{err}");
        let results = results(&directory.path().join("r/results.json"));
        let all = results["cases"].as_array().unwrap();
        assert_eq!(all.len(), cases, "{benchmarks}");
        assert!(all.iter().all(|case| case["verified"] == "yes"), "{results}");
    }
    for (benchmarks, said) in [
        (amrex.replace("ncells", "ncels"), "did you mean \"ncells\""),
        (amrex.replace(r#""nlevs": "1""#, r#""nlevs": "2""#), "grids_from_file"),
        (amrex.replace("SYNC", "SINC"), "SYNC"),
        (openpmd.replace("4 4 4", "4 4"), "3 numbers"),
        (openpmd.replace("\"sy\"", "\"sw\""), "no pattern"),
        (e3sm.replace("\"i\"", "\"o\""), "map is missing"),
        (macsio.replace("MIF 8", "MIV"), "MIFFPP"),
        (macsio.replace("MIF 8", "MIF 1"), "turns"),
        (macsio.replace("num_dumps", "num_loads"), "not possible"),
    ] {
        let directory = program::with(&workflow(&benchmarks));
        let (code, _, err) = run(directory.path(), &["bench", "w.json", "--launcher", "threads"]);
        assert!(code == 2 && err.contains(said), "{benchmarks}: {code} {err}");
    }
}
