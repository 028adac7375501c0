//! `hyperslab compare` as a user meets it: on results of real runs, on edited copies, and on files that are none.
#![allow(clippy::unwrap_used)]

use assert_cmd::cargo::CommandCargoExt;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const WORKFLOW: &str = r#"{"directory": "data", "benchmarks": [
    {"benchmark": "write", "file": "t.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 1, "NUM_DIMS": 1, "DIM_1": 256}},
    {"benchmark": "read", "file": "t.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 1, "NUM_DIMS": 1, "DIM_1": 256}}]}"#;

fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    #[allow(deprecated)]
    let mut command = Command::cargo_bin("hyperslab").unwrap();
    let Output { status, stdout, stderr } = command.current_dir(directory).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (code, out, err) = (status.code().unwrap_or(-1), text(stdout), text(stderr));
    assert!(!err.contains("panicked"), "{err}");
    (code, out, err)
}

/// A directory with the results of a real run of `repeat` repetitions, as written and as a value.
fn measured(repeat: &str) -> (tempfile::TempDir, Value) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("w.json"), WORKFLOW).unwrap();
    let arguments =
        ["bench", "w.json", "--format", "posix,hdf5", "--ranks", "2", "--repeat", repeat, "--out", "r", "--verify"];
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = serde_json::from_slice(&fs::read(directory.path().join("r/results.json")).unwrap()).unwrap();
    (directory, results)
}

/// The results with the given observed times, in all cases, and raw times half of them.
fn with_times(results: &Value, times: impl Fn(usize, usize) -> f64) -> Value {
    let mut results = results.clone();
    for (c, case) in results["cases"].as_array_mut().unwrap().iter_mut().enumerate() {
        for (r, repetition) in case["repetitions"].as_array_mut().unwrap().iter_mut().enumerate() {
            for rank in repetition["ranks"].as_array_mut().unwrap() {
                rank["observed"] = json!(times(c, r));
                rank["raw"] = json!(times(c, r) / 2.0);
            }
        }
    }
    results
}

fn compare(directory: &Path, a: &Value, b: &Value, more: &[&str]) -> (i32, String, String) {
    fs::write(directory.join("a.json"), a.to_string()).unwrap();
    fs::write(directory.join("b.json"), b.to_string()).unwrap();
    run(directory, &[&["compare", "a.json", "b.json"], more].concat())
}

/// Times around one second that differ a little from repetition to repetition.
fn steady(repetition: usize) -> f64 {
    1.0 + 0.001 * repetition as f64
}

#[test]
fn results_hold_what_the_comparison_and_the_reader_need() {
    let (_directory, results) = measured("6");
    let libraries = &results["machine"]["libraries"];
    for name in ["hdf5", "zarrs"] {
        let version = libraries[name].as_str().unwrap();
        assert!(version.split('.').count() >= 3 && version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
    }
    for case in results["cases"].as_array().unwrap() {
        let kind = case["benchmark"].as_str().unwrap();
        // Eight properties, two ranks, six repetitions.
        assert_eq!(case["operations"][kind]["count"], 8 * 2 * 6, "{case}");
        let [low, high] = [0, 1].map(|end| case["observed"]["median_95"][end].as_f64().unwrap());
        assert_eq!([Some(low), Some(high)], [case["observed"]["min"].as_f64(), case["observed"]["max"].as_f64()]);
        let own = |which: &str| case[which]["own"].as_f64().unwrap();
        assert!(own("fastest_rank") > 0.0 && own("fastest_rank") <= own("slowest_rank"), "{case}");
        assert_ne!(case["fastest_rank"]["rank"], case["slowest_rank"]["rank"]);
        let short = case["observed"]["median"].as_f64().unwrap() < 5e-3;
        assert_eq!(case["warnings"].to_string().contains("too short"), short, "{}", case["warnings"]);
    }
}

#[test]
fn each_verdict_is_reached_and_only_a_slower_case_fails() {
    let (directory, results) = measured("5");
    let here = directory.path();
    let a = with_times(&results, |_, r| steady(r));
    let (code, out, err) = compare(here, &a, &a, &[]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("4 same") && out.contains("B/A") && out.contains("hdf5"), "{out}");

    let b = with_times(&results, |c, r| match c {
        0 => steady(r) * 1.25,
        1 => steady(r) * 0.5,
        2 => steady(r),
        _ => [0.4, 1.0, 2.5, 0.6, 1.8][r],
    });
    let (code, out, _) = compare(here, &a, &b, &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("1 slower; 1 faster; 1 same; 1 cannot tell."), "{out}");
    assert!(out.contains("0.800"), "{out}");
    let (code, out, _) = compare(here, &a, &b, &["--threshold", "25"]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(compare(here, &a, &b, &["--metric", "raw"]).0, 1);

    let (code, out, _) = compare(here, &a, &b, &["--json"]);
    assert_eq!(code, 1);
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["hyperslab_comparison"], 1);
    let verdicts: Vec<&str> =
        said["cases"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["slower", "faster", "same", "cannot tell"]);
    let first = &said["cases"][0];
    assert!((first["ratio"].as_f64().unwrap() - 0.8).abs() < 1e-9);
    let end = |i: usize| first["ratio_95"][i].as_f64().unwrap();
    assert!(end(0) <= 0.8 && 0.8 <= end(1) && end(1) < 1.0, "{first}");
    assert_eq!(first["a"]["repetitions"], 5);
}

#[test]
fn few_repetitions_claim_no_interval() {
    let (directory, results) = measured("2");
    let a = with_times(&results, |_, r| steady(r));
    let b = with_times(&results, |_, r| steady(r) * 1.2);
    let (code, out, _) = compare(directory.path(), &a, &b, &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("none") && out.contains("there is no interval"), "{out}");
    let said: Value = serde_json::from_str(&compare(directory.path(), &a, &b, &["--json"]).1).unwrap();
    assert!(said["cases"][0]["ratio_95"].is_null());
}

#[test]
fn what_cannot_be_compared_is_listed() {
    let (directory, results) = measured("3");
    let a = with_times(&results, |_, r| steady(r));
    let mut b = a.clone();
    b["cases"][0]["status"] = json!("failed");
    b["cases"][0]["error"] = json!("disk \u{1b}[31mfull");
    b["cases"][1]["stack"] = json!("zarr");
    b["cases"][2]["repetitions"][1]["ranks"] = json!([]);
    b["cases"][3]["number"] = json!(9);
    b["machine"]["host"] = json!("elsewhere");
    b["machine"]["file_system"] = json!("lustre");
    b["machine"]["libraries"]["hdf5"] = json!("1.8.0");
    b["machine"]["libraries"].as_object_mut().unwrap().remove("zarrs");
    b["complete"] = json!(false);
    let (code, out, err) = compare(directory.path(), &a, &b, &[]);
    assert_eq!(code, 1, "a case fails now: {out}{err}");
    for words in [
        "counts as a regression",
        "failed in the second file: disk  [31mfull",
        "only in the first file",
        "only in the second file",
        "no observed figure",
        "4/9",
        "1 same",
        "different machine",
        "and elsewhere",
        "different file system",
        "different version of hdf5",
        "and 1.8.0",
        "different version of zarrs",
        "did not come to its end",
    ] {
        assert!(out.contains(words), "{words:?} is missing in\n{out}");
    }
    let (code, ..) = compare(directory.path(), &b, &a, &[]);
    assert_eq!(code, 0, "what failed before and works now is no regression");
    assert!(!out.contains('\u{1b}'), "{out}");
}

#[test]
fn equal_cases_are_matched_in_their_order_and_runs_without_bytes_by_their_time() {
    let (directory, results) = measured("3");
    let mut a = with_times(&results, |_, r| steady(r));
    let again = a["cases"][0].clone();
    a["cases"].as_array_mut().unwrap().push(again);
    let mut b = with_times(&a, |c, r| steady(r) * if c == 4 { 2.0 } else { 1.0 });
    for results in [&mut a, &mut b] {
        results["cases"][1]["bytes"] = json!(0);
        for repetition in results["cases"][1]["repetitions"].as_array_mut().unwrap() {
            for rank in repetition["ranks"].as_array_mut().unwrap() {
                rank["bytes_read"] = json!(0);
            }
        }
    }
    let (code, out, _) = compare(directory.path(), &a, &b, &["--json"]);
    assert_eq!(code, 1, "{out}");
    let said: Value = serde_json::from_str(&out).unwrap();
    let verdicts: Vec<&str> =
        said["cases"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["same", "same", "same", "same", "slower"]);
    let (_, out, _) = compare(directory.path(), &a, &b, &[]);
    assert!(out.contains("1001.000 ms"), "{out}");
    let (_, out, _) = compare(directory.path(), &a, &b, &["--metric", "raw"]);
    assert!(out.contains("no raw figure"), "{out}");
}

#[test]
fn folders_several_files_and_other_stacks_are_compared() {
    let (directory, results) = measured("5");
    let here = directory.path();
    for (name, factor) in [("a", 1.0), ("b", 1.0), ("c", 2.0)] {
        fs::create_dir(here.join(name)).unwrap();
        let mut file = with_times(&results, |_, r| steady(r) * factor);
        if name == "c" {
            file["cases"][0]["stack"] = json!("posix(direct=yes)");
        }
        fs::write(here.join(name).join("results.json"), file.to_string()).unwrap();
    }
    let (code, out, err) = run(here, &["compare", "a", "b", "c"]);
    assert_eq!(code, 1, "{err}");
    assert!(out.starts_with("Observed rates, B against A"), "the verdict first: {out}");
    assert!(out.contains("4 same") && out.contains("3 slower") && out.contains("only in the first file"), "{out}");
    let (code, out, _) = run(here, &["compare", "a", "c", "--match", "benchmark,workload,ranks,cache"]);
    assert_eq!(code, 1);
    assert!(out.contains("4 slower") && out.contains("posix -> posix(direct)"), "{out}");
    let (_, out, _) = run(here, &["compare", "a", "b", "c", "--json"]);
    let objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let (code, out, _) = run(here, &["compare", "a", "c", "--format", "junit"]);
    assert_eq!(code, 1);
    assert!(out.contains("failures=\"3\" skipped=\"2\"") && out.ends_with("</testsuites>\n"), "{out}");
    let (code, out, _) = run(here, &["compare", "a", "c", "--format", "github"]);
    assert_eq!((code, out.matches("::error").count(), out.matches("::warning").count()), (1, 3, 2), "{out}");
}

#[test]
fn hostile_and_broken_files_are_refused_with_exit_2() {
    let (directory, results) = measured("3");
    let here = directory.path();
    let good = with_times(&results, |_, r| steady(r));
    fs::write(here.join("good.json"), good.to_string()).unwrap();
    let edited = |edit: fn(&mut Value)| {
        let mut copy = good.clone();
        edit(&mut copy);
        copy.to_string()
    };
    let text = good.to_string();
    let broken: Vec<(&str, String, &str)> = vec![
        ("empty", String::new(), "cut short"),
        ("no JSON", "hyperslab".into(), "not JSON"),
        ("cut short", text[..text.len() / 2].into(), "cut short"),
        ("another version", edited(|r| r["hyperslab_results"] = json!(3)), "version 3"),
        ("deep", "[".repeat(100_000), "bad.json"),
        ("another type", edited(|r| r["cases"] = json!(7)), "not what it must be"),
        ("a stack that is none", edited(|r| r["cases"][0]["stack"] = json!("hdf5(((")), "bad.json"),
        ("huge numbers", text.replacen("\"observed\":1.0", "\"observed\":1e999", 1), "not JSON"),
        ("control characters", edited(|r| r["cases"][0]["status"] = json!("\u{1b}[2Jx")), "not what it must be"),
        ("no cases", edited(|r| r["cases"] = json!([])), "no case in common"),
        (
            "no repetitions",
            edited(|r| (0..4).for_each(|c| r["cases"][c]["repetitions"] = json!([]))),
            "no case in common",
        ),
    ];
    for (what, text, message) in broken {
        fs::write(here.join("bad.json"), text).unwrap();
        for pair in [["good.json", "bad.json"], ["bad.json", "good.json"]] {
            let (code, out, err) = run(here, &["compare", pair[0], pair[1]]);
            assert_eq!(code, 2, "{what}: {out}{err}");
            assert!(err.contains(message) && !err.contains('\u{1b}'), "{what}: {message:?} is missing in {err}");
        }
    }
    let zero = with_times(&results, |c, _| [0.0, -1.0, 1e-320, 1e300][c]);
    let (code, out, err) = compare(here, &good, &zero, &[]);
    assert_eq!(code, 1, "the last case is slower, the others are nothing: {out}{err}");
    assert!(out.contains("no observed figure"), "{out}");

    let large = fs::File::create(here.join("large.json")).unwrap();
    large.set_len((1 << 30) + 1).unwrap();
    let (code, _, err) = run(here, &["compare", "good.json", "large.json"]);
    assert_eq!(code, 2);
    assert!(err.contains("1 GiB"), "{err}");
    assert_eq!(run(here, &["compare", "good.json", "nowhere.json"]).0, 2);
    for threshold in ["-1", "100", "NaN", "five"] {
        assert_eq!(run(here, &["compare", "good.json", "good.json", &format!("--threshold={threshold}")]).0, 2);
    }
    let (code, out, _) = run(here, &["compare", "--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Exit codes: 0") && out.contains("Example:"), "{out}");
}
