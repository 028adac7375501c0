//! `hyperslab bench --workload` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
mod program;

use program::{hyperslab, results, run, with};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const KEYS: &str = r#""MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": 1, "DIM_1": "4 K", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "300 ms""#;

fn workflow() -> String {
    format!(
        r#"{{"mpi": {{"command": "mpirun", "ranks": "2"}}, "vol": {{}}, "file-system": {{}}, "directory": "data", "benchmarks": [
            {{"benchmark": "write", "file": "test.h5", "configuration": {{{KEYS}}}}},
            {{"benchmark": "read", "file": "test.h5", "configuration": {{{KEYS}}}}}]}}"#
    )
}

/// A directory where a write and a read of two ranks were recorded.
fn recorded() -> tempfile::TempDir {
    let directory = with(&workflow());
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--stack", "trace(file=out.jsonl)/posix"]);
    assert_eq!(code, 0, "{out}\n{err}");
    for name in ["out.jsonl", "out.2.jsonl"] {
        assert!(directory.path().join(name).is_file(), "{name}");
    }
    directory
}

fn cases(directory: &Path, out: &str) -> Vec<Value> {
    results(&directory.join(out).join("results.json"))["cases"].as_array().unwrap().clone()
}

/// The longest time that a rank computed.
fn computed(case: &Value) -> f64 {
    let ranks = case["repetitions"][0]["ranks"].as_array().unwrap();
    ranks.iter().map(|rank| rank["compute"].as_f64().unwrap()).fold(0.0, f64::max)
}

#[test]
fn a_recorded_run_is_replayed_on_other_formats() {
    let directory = recorded();
    let directory = directory.path();
    let (code, out, err) =
        run(directory, &["bench", "--workload", "out.jsonl", "--stack", "posix,hdf5,zarr", "--verify", "--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let written = cases(directory, "r");
    assert_eq!(written.len(), 3);
    for case in &written {
        assert_eq!((&case["status"], &case["verified"]), (&"ok".into(), &"yes".into()), "{case}");
        assert_eq!((&case["ranks"], &case["bytes"]), (&2.into(), &(2 * 4096 * 32 * 2).into()), "{case}");
        assert!(computed(case) > 0.25, "the gap between time steps: {case}");
    }
    assert!(out.contains("replay out.jsonl"), "{out}");
    let arguments = ["bench", "--workload", "out.jsonl", "--format", "posix", "--compute", "none", "--out", "n"];
    let (code, out, err) = run(directory, &[&arguments[..], &["--overwrite", "--repeat", "2"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(computed(&cases(directory, "n")[0]) < 0.1);
}

#[test]
fn what_is_read_is_made_first_and_taken_away() {
    let directory = recorded();
    let directory = directory.path();
    let arguments = ["bench", "--workload", "out.2.jsonl", "--format", "posix,hdf5,zarr", "--verify", "--repeat", "2"];
    let (code, out, err) = run(directory, &[&arguments[..], &["--compute", "none", "--out", "r"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    for case in cases(directory, "r") {
        assert_eq!((&case["status"], &case["verified"]), (&"ok".into(), &"yes".into()), "{case}");
    }
    let left: Vec<_> = fs::read_dir(directory.join("hyperslab-replay")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    // A file that is there is read, and its data are not taken for ours.
    let arguments = ["bench", "--workload", "out.2.jsonl", "--directory", "data", "--format", "posix", "--verify"];
    let (code, out, err) = run(directory, &[&arguments[..], &["--compute", "none", "--out", "d"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    assert_eq!(cases(directory, "d")[0]["verified"], "impossible");
    // Both, one after the other.
    let arguments = ["bench", "--workload", "out.jsonl", "--workload", "out.2.jsonl", "--format", "hdf5"];
    let (code, out, err) = run(directory, &[&arguments[..], &["--compute", "none", "--out", "b"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    assert_eq!(cases(directory, "b").len(), 2);
}

#[test]
fn a_killed_run_is_replayed_as_far_as_it_came() {
    let directory = with(&workflow().replace("\"TIMESTEPS\": \"2\"", "\"TIMESTEPS\": \"500\""));
    let directory = directory.path();
    let mut command = hyperslab(directory);
    command.args(["bench", "w.json", "--stack", "trace(file=out.jsonl)/posix"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let recorded = |rank: usize| {
        let part = directory.join(format!("out.jsonl.rank-{rank}.part"));
        fs::read_to_string(part).is_ok_and(|text| text.contains("\"write\""))
    };
    while !(recorded(0) && recorded(1)) && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let arguments = ["bench", "--workload", "out.jsonl", "--format", "posix", "--verify", "--out", "r"];
    let (code, _, err) = run(directory, &arguments);
    assert!(code == 2 && err.contains("being recorded now"), "{err}");
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, out, err) = run(directory, &[&arguments[..], &["--compute", "none"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("did not come to its end"), "{err}");
    assert_eq!(cases(directory, "r")[0]["verified"], "yes");
}

const BY_HAND: &str = r#"{"hyperslab_workload":1,"name":"by hand","ranks":2,"seed":4,"files":[{"name":"a","update":"overwrite"}],"arrays":[{"dtype":"<f4","shape":[8,4]}]}
{"do":"open_file","file":0,"how":"update"}
{"do":"open","slot":0,"file":0,"array":0,"name":"g/x"}
{"rank":0,"do":"write","slot":0,"selection":{"start":[0,0],"count":[4,4]}}
{"rank":1,"do":"write","slot":0,"selection":{"start":[4,0],"count":[4,4]}}
{"rank":1,"do":"compute","nanoseconds":1000}
{"do":"close_array","slot":0}
{"do":"close_file","file":0}
"#;

#[test]
fn files_that_are_changed_are_made_or_spared() {
    let directory = with("");
    let directory = directory.path();
    fs::write(directory.join("h.jsonl"), BY_HAND).unwrap();
    let arguments = ["bench", "--workload", "h.jsonl", "--format", "posix,hdf5,zarr", "--verify", "--out", "r"];
    let (code, out, err) = run(directory, &[&arguments[..], &["--repeat", "2"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    for case in cases(directory, "r") {
        assert_eq!((&case["status"], &case["verified"]), (&"ok".into(), &"yes".into()), "{case}");
    }
    let precious = directory.join("hyperslab-replay/a.h5");
    fs::write(&precious, "precious").unwrap();
    let (code, out, _) = run(directory, &["bench", "--workload", "h.jsonl", "--format", "hdf5"]);
    assert!(code == 1 && out.contains("would change it"), "{out}");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
}

#[test]
fn wrong_files_are_refused_with_the_place() {
    let directory = recorded();
    let directory = directory.path();
    let trace = fs::read_to_string(directory.join("out.jsonl")).unwrap();
    let lines: Vec<&str> = trace.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let swapped = BY_HAND.replacen("{\"do\":\"open\"", "{\"rank\":0,\"do\":\"open\"", 1);
    for (text, said) in [
        ("", "empty"),
        ("{}", "line 1"),
        ("no JSON", "line 1"),
        (&trace[..trace.len() - 20], "line"),
        (&cut, "cut off"),
        (&trace.replacen("\"do\":\"create\"", "\"do\":\"craete\"", 1), "craete"),
        (&BY_HAND.replacen("[4,4]", "[9,4]", 1), "outside"),
        (&BY_HAND.replacen("workload\":1", "workload\":3", 1), "reads 1 to 2"),
        (&BY_HAND.replacen("\"slot\":0,\"sel", "\"slot\":7,\"sel", 1), "slot 7"),
        (&BY_HAND.replacen("\"ranks\":2", "\"ranks\":1000000", 1), "at most"),
        (&BY_HAND.replacen("\"name\":\"a\"", "\"name\":\"../a\"", 1), "relative"),
        (&swapped, "rank 1"),
    ] {
        fs::write(directory.join("bad.jsonl"), text).unwrap();
        let (code, out, err) = run(directory, &["bench", "--workload", "bad.jsonl", "--format", "posix", "--out", "x"]);
        assert!(code == 2 && err.contains(said) && err.contains("bad.jsonl"), "{said}: {code}\n{out}\n{err}");
    }
    assert!(!directory.join("hyperslab-replay").exists() && !directory.join("x").exists());
    let (code, _, err) = run(directory, &["bench", "--workload", "out.jsonl", "--ranks", "3"]);
    assert!(code == 2 && err.contains("2 ranks"), "{err}");
    for arguments in [&["--workload", "nowhere"][..], &["--workload", "out.jsonl", "w.json"], &["--compute", "none"]] {
        assert_eq!(run(directory, &[&["bench"], arguments].concat()).0, 2, "{arguments:?}");
    }
}
