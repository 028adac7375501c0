//! Sweeps of `hyperslab bench`, as a user meets them.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
mod program;

use program::{results, run};
use serde_json::json;

#[test]
fn points_are_shown_run_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let words = [
        "bench",
        "vpic",
        "particles=1K,4K",
        "steps=1",
        "--format",
        "posix,zarr",
        "--ranks",
        "1..2",
        "--verify",
        "--out",
        "r",
        "--sweep",
        "zarr.chunk=256,1024",
    ];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("8 points, 12 cases") && err.contains("zarr.chunk"), "{err}");
    assert!(out.contains("12 cases ran; every byte verified"), "{out}");
    let results = results(&directory.path().join("r/results.json"));
    let cases = results["cases"].as_array().unwrap();
    let axes = |of: &str| -> Vec<_> {
        let on = cases.iter().filter(|case| case["stack"].as_str().unwrap().starts_with(of));
        on.map(|case| (case["axes"].clone(), case["ranks"].clone(), case["bytes"].clone())).collect()
    };
    let posix = axes("posix");
    assert_eq!(posix.len(), 4, "it has no such option, and takes part once for each of the other axes: {posix:?}");
    assert_eq!(posix[3], (json!({"ranks": 2, "particles": "4K"}), json!(2), json!(2 * 4096 * 32)));
    let zarr = axes("zarr");
    assert_eq!(zarr.len(), 8);
    assert_eq!(zarr[7].0, json!({"ranks": 2, "particles": "4K", "zarr.chunk": 1024}));

    let (code, out, err) = run(directory.path(), &["report", "r", "--format", "json"]);
    assert_eq!(code, 0, "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let curves = report["curves"].as_array().unwrap();
    let named = |axis: &str| curves.iter().find(|curve| curve["axis"] == axis).unwrap();
    assert!(named("particles")["lines"][0]["points"].as_array().unwrap().len() == 2, "{out}");
    let ranks = named("ranks")["lines"].as_array().unwrap();
    assert!(ranks.iter().any(|line| line["name"] == "posix particles=1K"), "lines hold what else was varied: {out}");
}

#[test]
fn a_budget_takes_points_from_all_over() {
    let directory = tempfile::tempdir().unwrap();
    let words = [
        "bench",
        "vpic",
        "particles=1K..64K*2",
        "steps=1",
        "--format",
        "posix",
        "--ranks",
        "1",
        "--out",
        "r",
        "--budget",
        "1ms",
    ];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("6 of 7 points are left out: the budget of 1 ms"), "{err}");
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!((results["cases"].as_array().unwrap().len(), &results["complete"]), (1, &json!(true)));
    let (code, _, err) = run(directory.path(), &[&words[..11], &["5min", "--dry-run"]].concat());
    assert_eq!(code, 0, "{err}");
}

#[test]
fn keys_of_workflows_are_varied_and_scaled() {
    let directory = program::with(
        r#"{"directory": "d", "benchmarks": [
            {"benchmark": "write", "file": "a.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG",
             "TIMESTEPS": "1", "NUM_DIMS": "1", "DIM_1": "4096", "DIM_2": "1", "DIM_3": "1", "MODE": "SYNC"}}]}"#,
    );
    let words = ["bench", "w.json", "--format", "posix", "--ranks", "1,2,4", "--scaling", "strong", "--out", "r"];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    let strong = results(&directory.path().join("r/results.json"));
    let bytes: Vec<_> = strong["cases"].as_array().unwrap().iter().map(|case| case["bytes"].clone()).collect();
    assert_eq!(bytes, vec![json!(4096 * 32); 3]);
    let words = [
        "bench",
        "w.json",
        "--format",
        "posix",
        "--ranks",
        "1",
        "--sweep",
        "TIMESTEPS=1,2,3",
        "--out",
        "s",
        "--overwrite",
    ];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    let swept = results(&directory.path().join("s/results.json"));
    assert_eq!(swept["cases"][2]["axes"], json!({"TIMESTEPS": 3}));
}
