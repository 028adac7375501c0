//! `hyperslab train`, `predict` and `advise` as a user meets them.
#![allow(clippy::unwrap_used)]

#[path = "common/invented.rs"]
mod invented;
#[path = "common/program.rs"]
mod program;

use hyperslab_model::Profile;
use invented::invented;
use program::{results, run, with};
use std::fs;
use std::path::Path;

const KEYS: &str =
    r#""MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": 1, "DIM_1": "16 K""#;

fn workflow() -> String {
    format!(
        r#"{{"mpi": {{"command": "mpirun", "ranks": "2"}}, "vol": {{}}, "file-system": {{}}, "directory": "data", "benchmarks": [
            {{"benchmark": "write", "file": "test.h5", "configuration": {{{KEYS}}}}},
            {{"benchmark": "read", "file": "test.h5", "configuration": {{{KEYS}}}}}]}}"#
    )
}

/// Columns of a matrix are read one after the other.
const COLUMNS: &str = r#"{"hyperslab_workload":2,"name":"columns","ranks":1,"files":[{"name":"f"}],"arrays":[{"dtype":"<f4","shape":[512,512]}]}
{"do":"open_file","file":0,"how":"read"}
{"do":"open","slot":0,"file":0,"array":0,"name":"a"}
{"do":"read","slot":0,"selection":{"start":[0,7],"count":[512,1]}}
{"do":"read","slot":0,"selection":{"start":[0,200],"count":[512,1]}}
{"do":"read","slot":0,"selection":{"start":[0,300],"count":[512,1]}}
{"do":"close_array","slot":0}
{"do":"close_file","file":0}
"#;

/// A directory with a workflow, a workload and the profile.
fn directory() -> tempfile::TempDir {
    let directory = with(&workflow());
    fs::write(directory.path().join("columns.jsonl"), COLUMNS).unwrap();
    fs::write(directory.path().join("profile.json"), invented()).unwrap();
    directory
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn prediction_touches_nothing_and_shows_where_time_goes() {
    let directory = directory();
    let before = files(directory.path());
    let words = ["predict", "w.json", "--profile", "profile.json", "--foreign", "--counts", "--stack"];
    let (code, out, err) = run(directory.path(), &[&words[..], &["hdf5,zarr(chunk=1024),posix"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    for text in ["storage read", "storage write", "zarr(chunk=1024)", "90 % from", "write_calls", "files_created"] {
        assert!(out.contains(text), "{text}: {out}");
    }
    assert_eq!(files(directory.path()), before);
}

#[test]
fn predictions_can_be_compared_with_real_runs() {
    let directory = directory();
    let words = ["predict", "columns.jsonl", "--profile", "profile.json", "--foreign", "--stack", "posix", "--measure"];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(out.contains("inside the interval") && out.contains("measured"), "{out}");
    let measured = results(&directory.path().join("hyperslab-predict/measured/results.json"));
    assert_eq!(measured["cases"][0]["status"], "ok");
}

#[test]
fn profiles_that_do_not_hold_here_are_refused() {
    let directory = directory();
    let refused = |profile: &str, said: &str| {
        let (code, out, err) = run(directory.path(), &["predict", "w.json", "--profile", profile]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(said), "{err}");
    };
    refused("profile.json", "another machine");
    refused("nowhere.json", "hyperslab train makes one");
    let other = invented().replace("\"hyperslab_profile\": 4", "\"hyperslab_profile\": 99");
    fs::write(directory.path().join("other.json"), other).unwrap();
    refused("other.json", "version 99");
    fs::write(directory.path().join("broken.json"), "{").unwrap();
    refused("broken.json", "broken.json");
}

#[test]
fn columns_are_advised_to_lie_together() {
    let directory = directory();
    let words = ["advise", "columns.jsonl", "--profile", "profile.json", "--foreign", "--top", "3"];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    let best = out.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap();
    assert!(best.contains("512x"), "{out}");
    for text in ["used now", "times faster than hdf5", "storage read", "Settings", "chunks=(512,"] {
        assert!(out.contains(text), "{text}: {out}");
    }
}

#[test]
fn advice_is_verified_by_running_it() {
    let directory = directory();
    let words = ["advise", "columns.jsonl", "--profile", "profile.json", "--foreign", "--verify", "1"];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(out.contains("Following the advice takes"), "{out}");
}

#[test]
fn what_cannot_be_predicted_is_refused() {
    let directory = directory();
    for (words, said) in [
        (&["predict", "w.json", "--stack", "null"][..], "no model of null"),
        (&["predict", "w.json", "--stack", "hdf5("], "never closed"),
        (&["predict", "w.json", "--launcher", "srun"], "possible values"),
        (&["predict", "nothing.json"], "nothing.json"),
        (&["advise", "nothing.jsonl"], "nothing.jsonl"),
    ] {
        let (code, _, err) = run(directory.path(), &[words, &["--profile", "profile.json", "--foreign"]].concat());
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(said), "{said}: {err}");
    }
}

#[test]
fn training_goes_on_where_it_was_and_leaves_only_timings() {
    let directory = tempfile::tempdir().unwrap();
    let train = |within: &str| {
        let (code, out, err) =
            run(directory.path(), &["train", "--dir", "here", "--profile", "p.json", "--within", within, "--evaluate"]);
        assert_eq!(code, 0, "{out}\n{err}");
        (out, err)
    };
    let nothing = ["train", "--dir", "here", "--profile", "p.json", "--within", "0"];
    let (code, out, err) = run(directory.path(), &nothing);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("nothing could be measured") && !directory.path().join("p.json").exists(), "{err}");
    let (out, err) = train("1");
    assert!(out.contains("not measured") && err.contains("[1/"), "{out}\n{err}");
    assert_eq!(
        files(&directory.path().join("here")),
        ["evaluation.csv", "evaluation.html", "evaluation.svg", "timings.jsonl"]
    );
    let lines = fs::read_to_string(directory.path().join("here/timings.jsonl")).unwrap().lines().count();
    let (_, again) = train("0");
    assert!(again.is_empty(), "{again}");
    let now = fs::read_to_string(directory.path().join("here/timings.jsonl")).unwrap().lines().count();
    assert_eq!(lines, now);
    assert!(Profile::from_json(&fs::read_to_string(directory.path().join("p.json")).unwrap()).is_ok());
}
