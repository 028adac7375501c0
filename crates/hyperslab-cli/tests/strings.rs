//! Strings of variable length: of files that others made, of kernels and of workloads.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "hdf5")]

#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::{results, run};
use std::path::Path;
use std::process::Command;

fn script(function: &str, path: &Path) -> Option<()> {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else {
        eprintln!("{function}: not compared, HYPERSLAB_PYTHON is not set (cargo xtask test sets it)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/strings.py");
    let mut command = Command::new(python);
    command.arg(script).arg(function).arg(path).env("PYTHONDONTWRITEBYTECODE", "1");
    let (code, out, err) = program::said(command.output().unwrap());
    assert_eq!((code, out.trim()), (0, "right"), "{function} {}: {err}", path.display());
    Some(())
}

fn convert(folder: &Path, from: &str, to: &str, options: &[&str]) -> String {
    let (code, out, err) = run(folder, &[&["convert", from, to, "--threads", "2"], options].concat());
    assert_eq!(code, 0, "{from} {to}: {out}{err}");
    out
}

#[test]
fn files_of_others_are_shown_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    if script("make", folder).is_none() {
        return;
    }
    let (code, out, err) = run(folder, &["show", "netcdf4.nc", "--values"]);
    assert_eq!(code, 0, "{out}{err}");
    for part in [
        "string station(station) ;",
        "string codes(time, two) ;",
        "string codes:note = \"ünï\" ;",
        "string codes:list = \"one\", \"\", \"three\" ;",
        "\"Zürich\", \"\", \"a longer name than the others\", \"x\" ;",
        "float values(time, station) ;",
        "\"only\" ;",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    for (from, to, check) in [
        ("netcdf4.nc", "a.nc", "check_netcdf"),
        ("netcdf4.nc", "a.h5", "check_netcdf"),
        ("netcdf4.nc", "a.zarr", "check_netcdf"),
        ("a.zarr", "b.nc", "check_netcdf"),
        ("xarray.nc", "x.nc", "check_xarray"),
        ("xarray.nc", "x.zarr", "check_xarray"),
        ("x.zarr", "y.nc", "check_xarray"),
        ("zarr2.zarr", "z2.h5", "check_zarr"),
        ("zarr3.zarr", "z3.h5", "check_zarr"),
        ("z2.h5", "z.zarr", "check_zarr"),
    ] {
        convert(folder, from, to, &[]);
        script(check, &folder.join(to)).unwrap();
    }
    convert(folder, "zarr3.zarr", "v2.zarr", &["--to", "zarr(version=2)", "--filter", "deflate=4"]);
    script("check_zarr", &folder.join("v2.zarr")).unwrap();
    // Its dimensions are left out with a note, as references they could not be held.
    let out = convert(folder, "h5py.h5", "c.h5", &[]);
    assert!(out.contains("names of dimensions are left out"), "{out}");
    script("check_h5py", &folder.join("c.h5")).unwrap();
    // What a format cannot hold it refuses by name, or lists.
    for to in ["n.nc3", "p.posix", "q.npys"] {
        let (code, _, err) = run(folder, &["convert", "netcdf4.nc", to]);
        assert!(code == 1 && err.contains("variable length") && !folder.join(to).exists(), "{to} {code} {err}");
        let out = convert(folder, "netcdf4.nc", to, &["--lossy"]);
        assert!(out.contains("left out: ") && out.contains("station"), "{out}");
    }
    let (code, _, err) = run(folder, &["convert", "references.h5", "r.h5"]);
    assert!(code == 1 && err.contains("reference") && err.contains("--lossy"), "{code} {err}");
    let out = convert(folder, "references.h5", "r.h5", &["--lossy"]);
    assert!(out.contains("friend") && out.contains("links") && out.contains("1 arrays"), "{out}");
}

#[test]
fn streams_of_strings_run_verified_on_every_format_that_holds_them() {
    let folder = tempfile::tempdir().unwrap();
    let stacks =
        "hdf5,hdf5(plane=on),netcdf4,zarr,zarr(version=2),log/hdf5,async/hdf5,cache/zarr,trace/hdf5,twophase/hdf5";
    let words = ["bench", "vl-stream", "type=vl", "operations=150", "chunk=64", "--directory", "d", "--out", "r"];
    let more = ["--stack", stacks, "--verify", "--launcher", "threads"];
    let (code, out, err) = run(folder.path(), &[&words[..], &more].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&folder.path().join("r/results.json"));
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 10, "{out}");
    for case in cases {
        assert_eq!((case["verified"].as_str(), case["bytes"].as_u64()), (Some("yes"), Some(600)), "{case}");
    }
    let (code, out, _) = run(folder.path(), &[&words[..8], &["r2", "--stack", "posix,netcdf3"]].concat());
    assert!(code != 0 && out.contains("variable length"), "{code} {out}");
}

const WORKLOAD: &str = r#"{"hyperslab_workload":2,"name":"words","about":"","ranks":2,"seed":1,"files":[{"name":"w","created":true}],"arrays":[{"dtype":"string","shape":[6,5],"max_shape":[null,5],"chunk":[4,3],"fill":"index"},{"dtype":"string","shape":[7]}]}
{"do":"open_file","file":0,"how":"create"}
{"do":"create","slot":0,"file":0,"array":0,"name":"g/numbers"}
{"do":"create","slot":1,"file":0,"array":1,"name":"random"}
{"rank":0,"do":"write","slot":0,"selection":{"start":[0,0],"count":[3,5],"stride":[2,1]}}
{"rank":1,"do":"write","slot":0,"selection":{"start":[1,0],"count":[3,5],"stride":[2,1]}}
{"do":"resize","slot":0,"shape":[9,5]}
{"rank":1,"do":"write","slot":0,"selection":{"start":[6,1],"count":[3,2]}}
{"rank":0,"do":"write","slot":1,"selection":{"start":[0],"count":[7]},"transfer":"collective"}
{"rank":1,"do":"write","slot":1,"selection":{"start":[0],"count":[0]},"transfer":"collective"}
{"do":"attribute","file":0,"object":"random","name":"words","value":{"dtype":"string","shape":[2],"data":[97,98,0,0]}}
{"do":"flush","file":0,"how":"visible"}
{"rank":0,"do":"read","slot":0,"selection":{"start":[0,1],"count":[6,2]}}
{"do":"close_array","slot":0}
{"do":"close_array","slot":1}
{"do":"close_file","file":0}
"#;

#[test]
fn workloads_have_strings() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.jsonl"), WORKLOAD).unwrap();
    let words = ["bench", "--workload", "w.jsonl", "--verify", "--out", "r", "--launcher", "threads"];
    let (code, out, err) = run(folder.path(), &[&words[..], &["--stack", "hdf5,netcdf4,zarr,null"]].concat());
    assert!(code == 0 || code == 3, "{out}\n{err}");
    let results = results(&folder.path().join("r/results.json"));
    for case in results["cases"].as_array().unwrap().iter().take(3) {
        assert_eq!(case["status"].as_str().unwrap_or("ok"), "ok", "{case}");
    }
    // A fill rule for another type is refused before anything is made.
    let wrong = WORKLOAD
        .replace("\"dtype\":\"string\",\"shape\":[7]", "\"dtype\":\"<f4\",\"shape\":[7],\"fill\":{\"text\":\"a\"}");
    std::fs::write(folder.path().join("w.jsonl"), wrong).unwrap();
    let (code, _, err) = run(folder.path(), &[&words[..], &["--stack", "hdf5", "--overwrite"]].concat());
    assert!(code != 0 && err.contains("text"), "{code} {err}");
}
