//! `hyperslab bench` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
mod program;

use program::{hyperslab, results, run, with};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

const WRITE: &str = r#""MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": 1, "DIM_1": "4 K", "MODE": "SYNC""#;

fn workflow(write: &str, read: &str) -> String {
    format!(
        r#"{{"mpi": {{"command": "mpirun", "ranks": "2"}}, "vol": {{}}, "file-system": {{}}, "directory": "data", "benchmarks": [
            {{"benchmark": "write", "file": "test.h5", "configuration": {{{write}}}}},
            {{"benchmark": "read", "file": "test.h5", "configuration": {{{read}}}}}]}}"#
    )
}

#[test]
fn all_formats_run_verified_warm_and_cold() {
    let directory = with(&workflow(WRITE, WRITE));
    let (code, out, err) = run(
        directory.path(),
        &["bench", "w.json", "--format", "posix,hdf5,zarr,null", "--verify", "--warm", "--cold", "--out", "r"],
    );
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["hyperslab_results"], 2);
    let origin = &results["provenance"];
    assert_eq!(origin["inputs"]["w.json"]["benchmarks"][0]["benchmark"], "write", "the workflow whole");
    assert_eq!(origin["stacks"]["hdf5"][0]["options"]["libver"], "v18", "with defaults");
    assert_eq!(origin["build"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(origin["build"]["features"].as_array().unwrap().contains(&"zarr".into()));
    assert!(origin["load_before"][0].is_number() && origin["load_after"][0].is_number() && origin["mount"].is_string());
    assert!(results["started"].as_str().unwrap().ends_with('Z') && results["cases"][0]["load"].is_number());
    assert_eq!(results["complete"], true);
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4 * 2 * 2);
    for case in cases {
        assert_eq!(case["status"], "ok", "{case}");
        assert_eq!(case["bytes"], 2 * 4096 * 32 * 2);
        let expected = if case["stack"] == "null" { "impossible" } else { "yes" };
        assert_eq!(case["verified"], expected);
        assert_eq!(case["repetitions"][0]["ranks"].as_array().unwrap().len(), 2);
    }
    for name in ["posix", "hdf5", "zarr", "warm", "cold", "verified", "was fastest", "results.json"] {
        assert!(out.contains(name), "{name} is missing in\n{out}");
    }
    assert!(directory.path().join("data/test.h5").is_file());
}

#[test]
fn every_pattern_and_dimension_runs_on_every_format() {
    for dims in [
        r#""NUM_DIMS": 1, "DIM_1": 96"#,
        r#""NUM_DIMS": "2", "DIM_1": 8, "DIM_2": 6"#,
        r#""DIM_3": 3, "DIM_2": 4, "DIM_1": 5, "NUM_DIMS": 3"#,
    ] {
        for memory in ["CONTIG", "INTERLEAVED"] {
            for file in ["CONTIG", "INTERLEAVED"] {
                let keys = format!(
                    r#""MEM_PATTERN": "{memory}", "FILE_PATTERN": "{file}", "TIMESTEPS": 2, {dims}, "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "1 ms""#
                );
                let directory = with(&workflow(&keys, &keys));
                let (code, out, err) = run(
                    directory.path(),
                    &["bench", "w.json", "--format", "posix,hdf5,zarr", "--verify", "--ranks", "3"],
                );
                assert_eq!(code, 0, "{memory} {file} {dims}\n{out}\n{err}");
                assert_eq!(out.matches("  yes").count(), 6, "{out}");
            }
        }
    }
}

#[test]
fn compression_and_alignment_reach_the_file() {
    let keys = format!(
        r#"{WRITE}, "COMPRESS": "YES", "CHUNK_DIM_1": "1 K", "ALIGN": "YES", "ALIGN_LEN": 65536, "ALIGN_THRESHOLD": 1"#
    );
    let directory = with(&workflow(&keys, WRITE));
    let (code, out, err) =
        run(directory.path(), &["bench", "w.json", "--verify", "--format", "hdf5,zarr", "--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["cases"][0]["stack"], "hdf5(align=64KiB,align_threshold=1)");
    assert!(out.contains("ALIGN has no effect on zarr"), "{out}");
}

#[test]
fn a_dry_run_prints_the_plan_and_touches_nothing() {
    let directory = with(&workflow(WRITE, WRITE));
    let (code, out, _) = run(directory.path(), &["bench", "w.json", "--format", "hdf5,zarr(codec=zstd)", "--dry-run"]);
    assert_eq!(code, 0);
    assert!(out.contains("zarr(codec=zstd)") && out.contains("512.00 KiB"), "{out}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn bad_input_is_refused_with_exit_2_and_nothing_is_made() {
    let good = workflow(WRITE, WRITE);
    let cases: &[(&str, String, &[&str], &str)] = &[
        ("broken JSON", "{\n  \"mpi\": ,\n}".into(), &[], "line 2, column 10"),
        ("not an object", "[1]".into(), &[], "object"),
        ("top-level key", good.replace("\"vol\"", "\"vols\""), &[], "did you mean \"vol\""),
        ("pattern key", good.replace("DIM_1", "DIMM_1"), &[], "did you mean \"DIM_1\""),
        ("pattern value", good.replace("\"CONTIG\"", "\"CONTIGUOUS\""), &[], "CONTIG"),
        ("number", good.replace("4 K", "four"), &[], "whole number"),
        ("zero", good.replace("4 K", "0"), &[], "at least 1"),
        ("overflow", good.replace("4 K", "9999999999 G"), &[], "benchmarks[0].configuration"),
        ("too large for the disk", good.replace("4 K", "4 T"), &[], "memory"),
        ("benchmark kind", good.replace("\"write\"", "\"wriet\""), &[], "did you mean \"write\""),
        ("mode", good.replace("SYNC", "SYNCH"), &[], "did you mean \"SYNC\""),
        (
            "operation",
            good.replacen("\"MODE\"", "\"IO_OPERATION\": \"READ\", \"MODE\"", 1),
            &[],
            "IO_OPERATION is READ",
        ),
        (
            "partial write",
            good.replacen("\"MODE\"", "\"TO_READ_NUM_PARTICLES\": 5, \"MODE\"", 1),
            &[],
            "belongs to read",
        ),
        ("filter", good.replacen("\"MODE\"", "\"FILTERS\": \"deflat\", \"MODE\"", 1), &[], "did you mean"),
        ("filter level", good.replacen("\"MODE\"", "\"FILTERS\": \"deflate=10\", \"MODE\"", 1), &[], "0 to 9"),
        (
            "no such list",
            good.replacen("\"MODE\"", "\"ENV_METADATA_FILE\": \"nowhere\", \"MODE\"", 1),
            &[],
            "ENV_METADATA_FILE nowhere",
        ),
        ("CSV elsewhere", good.replacen("\"MODE\"", "\"CSV_FILE\": \"../x.csv\", \"MODE\"", 1), &[], "plain file name"),
        ("blocks", good.replace("\"MODE\"", "\"READ_OPTION\": \"LDC\", \"MODE\""), &[], "needs NUM_DIMS=2"),
        ("strides", good.replace("\"MODE\"", "\"READ_OPTION\": \"STRIDED\", \"MODE\""), &[], "BLOCK_SIZE is missing"),
        (
            "strides that overlap",
            good.replace("\"MODE\"", "\"READ_OPTION\": \"STRIDED\", \"STRIDE_SIZE\": 2, \"BLOCK_SIZE\": 3, \"MODE\""),
            &[],
            "overlap",
        ),
        ("what to run", good.clone(), &["--filter", "append"], "leaves no benchmark"),
        ("what there is", good.clone(), &["--filter", "writ"], "did you mean \"write\""),
        ("vol key", good.replace("\"vol\": {}", "\"vol\": {\"pth\": \"x\"}"), &[], "did you mean \"path\""),
        ("no benchmarks", r#"{"directory": "data", "benchmarks": []}"#.into(), &[], "empty"),
        ("no directory", r#"{"benchmarks": [1]}"#.into(), &[], "directory is missing"),
        ("file outside", good.replace("test.h5", "../test.h5"), &[], "relative"),
        ("absolute file", good.replace("test.h5", "/etc/test.h5"), &[], "relative"),
        ("format", good.clone(), &["--format", "hdf6"], "did you mean \"hdf5\""),
        ("option", good.clone(), &["--stack", "hdf5(chunks=4)"], "did you mean \"chunk\""),
        ("layer", good.clone(), &["--stack", "turbo/hdf5"], "not available in this build"),
        ("stack", good.clone(), &["--stack", "hdf5(chunk=4"], "never closed"),
        ("ranks", good.clone(), &["--ranks", "0"], "from 1 to 1048576"),
        ("both", good.clone(), &["--format", "hdf5", "--stack", "zarr"], "cannot be used with"),
        ("memory limit", good.replacen("\"MODE\"", "\"IO_MEM_LIMIT\": 1000, \"MODE\"", 1), &[], "IO_MEM_LIMIT"),
    ];
    for (what, text, arguments, message) in cases {
        let directory = with(text);
        let (code, out, err) = run(directory.path(), &[&["bench", "w.json"], *arguments].concat());
        assert_eq!(code, 2, "{what}: {out}\n{err}");
        assert!(err.contains(message), "{what}: {message:?} is missing in {err}");
        assert!(!err.contains("panicked"), "{err}");
        assert!(!directory.path().join("data/test.h5").exists() && !directory.path().join("r").exists());
    }
    let (code, _, err) = run(tempfile::tempdir().unwrap().path(), &["bench", "nowhere.json"]);
    assert_eq!(code, 2);
    assert!(err.contains("nowhere.json") && err.contains("No such file"), "{err}");
}

#[test]
fn existing_files_are_kept_unless_told() {
    for format in ["posix", "hdf5", "zarr"] {
        let directory = with(&workflow(WRITE, WRITE));
        let name = match format {
            "hdf5" => "data/test.h5".to_owned(),
            other => format!("data/test.{other}"),
        };
        fs::create_dir(directory.path().join("data")).unwrap();
        fs::write(directory.path().join(&name), "precious").unwrap();
        for more in [&[][..], &["--overwrite"]] {
            let arguments = [&["bench", "w.json", "--format", format], more].concat();
            let (code, out, err) = run(directory.path(), &arguments);
            assert_eq!(code, 1, "{format} {more:?}: {out}\n{err}");
            assert_eq!(fs::read(directory.path().join(&name)).unwrap(), b"precious", "{format} {more:?}");
        }
        fs::remove_file(directory.path().join(&name)).unwrap();
        assert_eq!(run(directory.path(), &["bench", "w.json", "--format", format, "--out", "r"]).0, 0);
        let (code, _, err) = run(directory.path(), &["bench", "w.json", "--format", format, "--out", "r"]);
        assert_eq!(code, 2);
        assert!(err.contains("--overwrite"), "{err}");
        let arguments = ["bench", "w.json", "--format", format, "--out", "r", "--overwrite", "--verify"];
        assert_eq!(run(directory.path(), &arguments).0, 0, "{format}");
    }
}

#[test]
fn a_read_without_its_write_makes_its_file_and_says_so() {
    let text = workflow(WRITE, WRITE).replace("\"benchmark\": \"write\"", "\"benchmark\": \"read\"");
    let directory = with(&text);
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--verify"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("read: there is no file") && err.contains("one is made first"), "{err}");
    assert!(out.contains("every byte verified"), "{out}");
}

#[test]
fn filters_are_raw_time_and_ranks_that_take_turns_are_not_counted_at_once() {
    let compressed = WRITE.replace("4 K", "64 K") + r#", "COMPRESS": "YES""#;
    let directory = with(&workflow(&compressed, &compressed));
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--filter", "write", "--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    let case = &results["cases"][0];
    let repetition = &case["repetitions"][0]["ranks"];
    let of = |key: &str| -> Vec<f64> {
        repetition.as_array().unwrap().iter().map(|rank| rank[key].as_f64().unwrap()).collect()
    };
    let most = |key: &str| of(key).into_iter().fold(0.0, f64::max);
    assert!(most("raw") > most("metadata"), "deflate takes most of the time: {repetition}");
    assert!(most("transferring") >= most("raw"), "{repetition}");
    assert!(of("transferring").windows(2).all(|pair| pair[0] == pair[1]), "{repetition}");
    let rate = case["bytes"].as_f64().unwrap() / most("transferring");
    assert!((case["raw_rate"]["median"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9, "{case}");
}

#[test]
fn a_file_of_mode_log_is_read_through_its_layer() {
    let mode = |mode: &str| WRITE.replace("SYNC", mode);
    let directory = with(&workflow(&mode("LOG"), &mode("SYNC")));
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--format", "posix", "--verify", "--out", "r"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    assert!(err.contains("was written in MODE=LOG"), "{err}");
    assert_eq!(
        (&results["cases"][0]["stack"], &results["cases"][1]["stack"]),
        (&"loglayout/posix".into(), &"loglayout/posix".into())
    );
}

#[test]
fn what_this_build_cannot_run_is_skipped_and_said_so() {
    for (text, reason) in [
        (
            workflow(&format!(r#"{WRITE}, "SUBFILING": "YES""#), WRITE),
            "SUBFILING=YES needs ranks that are MPI processes",
        ),
        (workflow(&format!(r#"{WRITE}, "COMPRESS": "YES", "COMPRESS_FILTER": "SZ3""#), WRITE), "COMPRESS_FILTER=SZ3"),
    ] {
        let directory = with(&text);
        let (code, out, err) = run(directory.path(), &["bench", "w.json", "--out", "r", "--validate-mode"]);
        assert!(err.contains(reason) && out.contains(reason), "{reason}: {out}\n{err}");
        let results = results(&directory.path().join("r/results.json"));
        assert_eq!(results["cases"][0]["status"], "skipped");
        // A read whose write was skipped is skipped too.
        assert_eq!(code, 3, "{reason}: {out}\n{err}");
        let (code, _, _) = run(directory.path(), &["bench", "w.json", "--abort-on-failure", "--out", "s"]);
        assert_eq!(code, 3);
        let results = program::results(&directory.path().join("s/results.json"));
        assert_eq!(results["cases"][1]["status"], "planned");
    }
    let compressed = format!(r#"{WRITE}, "COMPRESS": "YES""#);
    let directory = with(&workflow(&compressed, WRITE));
    let (code, out, _) = run(directory.path(), &["bench", "w.json", "--format", "posix,hdf5", "--verify"]);
    assert_eq!(code, 3);
    assert!(out.contains("posix has no such filters"), "{out}");
    assert_eq!(out.matches("  yes").count(), 2, "{out}");
}

#[test]
fn where_h5bench_would_measure_something_else_one_line_says_so() {
    let two =
        WRITE.replace("\"NUM_DIMS\": 1", "\"NUM_DIMS\": 2, \"DIM_2\": 2, \"CHUNK_DIM_1\": 64, \"CHUNK_DIM_2\": 2");
    let kinds = |write: &str, read: &str| {
        let text = workflow(&two, &two).replace("\"benchmark\": \"write\"", &format!("\"benchmark\": \"{write}\""));
        text.replace("\"benchmark\": \"read\"", &format!("\"benchmark\": \"{read}\""))
    };
    let per_rank = format!(r#"{WRITE}, "FILE_PER_PROC": "YES""#);
    for (text, words) in [
        (
            kinds("write-unlimited", "append"),
            vec!["writes nothing", "addresses of its buffers", "every rank adds DIM_1"],
        ),
        (kinds("write_normal_dist", "overwrite"), vec!["does not know this name", "one rank's for every rank"]),
        (workflow(&per_rank, &per_rank), vec!["does not open those files"]),
    ] {
        let directory = with(&text);
        let (code, out, err) = run(directory.path(), &["bench", "w.json", "--dry-run"]);
        assert_eq!(code, 0, "{err}");
        for words in words {
            assert_eq!(out.matches(words).count(), 1, "{words:?} in\n{out}");
        }
    }
}

#[test]
fn striping_is_set_where_lfs_says_that_it_can_be() {
    use std::os::unix::fs::PermissionsExt;
    let text = workflow(WRITE, WRITE).replace(
        "\"file-system\": {}",
        "\"file-system\": {\"lustre\": {\"stripe-size\": \"1 M\", \"stripe-count\": 4}}",
    );
    for (script, words, calls) in [
        ("exit 0", "set for new files in data", "getstripe data\nsetstripe -S 1M -c 4 data\n"),
        ("test $1 = getstripe && exit 1; exit 0", "data is not on Lustre", "getstripe data\n"),
        (
            "test $1 = getstripe || { echo no >&2; exit 1; }",
            "lfs says no",
            "getstripe data\nsetstripe -S 1M -c 4 data\n",
        ),
    ] {
        let directory = with(&text);
        let program = directory.path().join("lfs");
        fs::write(&program, format!("#!/bin/sh\necho \"$*\" >> calls\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap_or_default());
        let output = hyperslab(directory.path()).env("PATH", path).args(["bench", "w.json"]).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert!(err.contains(words), "{words:?} in\n{err}");
        assert_eq!(fs::read_to_string(directory.path().join("calls")).unwrap(), calls);
    }
    let (_, _, err) = run(with(&text).path(), &["bench", "w.json"]);
    assert!(err.contains("no lfs program") || err.contains("Lustre"), "{err}");
}

#[test]
fn the_example_of_every_benchmark_runs_on_every_format() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/base-suite.json");
    let directory = with("");
    let arguments = ["bench", example.to_str().unwrap(), "--format", "hdf5,zarr,posix", "--verify", "--out", "r"];
    let (code, out, err) = run(directory.path(), &arguments);
    assert_eq!(code, 3, "{out}\n{err}");
    let results = results(&directory.path().join("r/results.json"));
    for case in results["cases"].as_array().unwrap() {
        // Raw files have no chunks; everything else must run, and be right.
        let growing = case["stack"] == "posix" && case["file"] == "growing.posix";
        assert_eq!(case["status"], if growing { "skipped" } else { "ok" }, "{case}");
        assert!(growing || case["verified"] == "yes", "{case}");
    }
}

#[test]
fn a_report_that_cannot_be_written_fails_its_case_and_no_other() {
    // No file can have so long a name.
    let long = "x".repeat(300);
    let keys = format!(r#"{WRITE}, "CSV_FILE": "{long}""#);
    let directory = with(&workflow(&keys, WRITE));
    let (code, out, err) = run(directory.path(), &["bench", "w.json", "--out", "r", "--verify"]);
    assert_eq!(code, 1, "{out}\n{err}");
    assert!(out.contains("its reports could not be written"), "{out}");
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["cases"][0]["status"], "failed");
    assert_eq!(results["cases"][1]["status"], "ok", "the data file is there");
}

#[test]
fn ctrl_c_leaves_valid_results_and_no_partial_file() {
    let slow = format!(r#"{WRITE}, "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "60 s""#);
    let directory = with(&workflow(&slow, WRITE));
    let mut child = hyperslab(directory.path())
        .args(["bench", "w.json", "--out", "r"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = directory.path().join("data/test.h5");
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    let mut out = String::new();
    child.stdout.unwrap().read_to_string(&mut out).unwrap();
    assert!(out.contains("stopped") && out.contains("not run"), "{out}");
    let results = results(&directory.path().join("r/results.json"));
    assert_eq!(results["complete"], false);
    assert_eq!(results["cases"][0]["status"], "interrupted");
    assert_eq!(results["cases"][1]["status"], "planned");
    assert!(!file.exists());
}

#[test]
fn without_a_workflow_a_small_one_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, err) = run(directory.path(), &["bench", "--format", "null"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(err.contains("built-in"), "{err}");
}

#[test]
fn formats_are_listed_with_their_options() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, _) = run(directory.path(), &["formats"]);
    assert_eq!(code, 0);
    for word in ["posix (compiled in)", "hdf5 (compiled in)", "zarr (compiled in)", "null", "chunk", "deflate", "shard"]
    {
        assert!(out.contains(word), "{word} is missing in\n{out}");
    }
}
