//! `hyperslab advise` as a user meets it: what is compared, said, refused and verified.
#![allow(clippy::unwrap_used)]

#[path = "common/invented.rs"]
mod invented;
#[allow(dead_code)]
#[path = "common/program.rs"]
mod program;

use invented::invented;
use program::run;
use std::fs;
use std::path::Path;

/// The first lines of a workload of one file and these arrays.
fn header(ranks: usize, arrays: &str, created: bool) -> String {
    let created = if created { r#","created":true"# } else { "" };
    format!(
        r#"{{"hyperslab_workload":2,"name":"w","ranks":{ranks},"files":[{{"name":"f"{created}}}],"arrays":[{arrays}]}}"#
    )
}

fn lines(header: &str, steps: &[&str]) -> String {
    let mut text = format!("{header}\n");
    steps.iter().for_each(|step| text.push_str(&format!("{step}\n")));
    text
}

const MATRIX: &str = r#"{"dtype":"<i4","shape":[256,256],"fill":"index"}"#;
const CREATE: &str = r#"{"do":"open_file","file":0,"how":"create"}"#;
const CLOSE: &str = r#"{"do":"close_file","file":0}"#;

/// Time steps of 64 rows each, with computing in between.
fn steps() -> String {
    let mut all = vec![CREATE.to_owned(), r#"{"do":"create","slot":0,"file":0,"array":0,"name":"a"}"#.into()];
    for step in 0..4 {
        all.push(format!(r#"{{"do":"write","slot":0,"selection":{{"start":[{},0],"count":[64,256]}}}}"#, step * 64));
        all.push(r#"{"do":"compute","nanoseconds":2000000}"#.into());
    }
    all.extend([r#"{"do":"close_array","slot":0}"#.into(), CLOSE.into()]);
    lines(&header(1, MATRIX, true), &all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn directory(workload: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("w.jsonl"), workload).unwrap();
    fs::write(directory.path().join("profile.json"), invented()).unwrap();
    directory
}

fn advise(directory: &Path, more: &[&str]) -> (i32, String, String) {
    run(directory, &[&["advise", "w.jsonl", "--profile", "profile.json", "--foreign"][..], more].concat())
}

/// The stacks of the list.
fn stacks(out: &str) -> Vec<String> {
    let rows = out.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next()?.parse::<usize>().ok()?;
        words.next().map(str::to_owned)
    });
    rows.collect()
}

#[test]
fn sizes_reasons_and_assumptions_are_said() {
    let directory = directory(&steps().replace("\"index\"", "\"random\""));
    let (code, out, err) = advise(directory.path(), &["--top", "1000"]);
    assert_eq!(code, 0, "{out}\n{err}");
    for text in [
        "Compared ",
        "on storage it takes",
        "in memory it holds up to",
        "used now",
        "Settings",
        "Assumed",
        "what codecs save was found by coding a sample",
        "files are in memory",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    let all = stacks(&out);
    for part in ["codec=", "deflate=", "async/", "plane=on", "shard=", "align=4KiB"] {
        assert!(all.iter().any(|stack| stack.contains(part)), "{part}: {out}");
    }
}

#[test]
fn every_advised_stack_can_be_predicted_and_run() {
    let directory = directory(&steps());
    let (code, out, err) = advise(directory.path(), &["--top", "1000", "--formats", "hdf5,zarr,posix"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let all = stacks(&out);
    assert!(all.len() > 10, "{out}");
    let list = all.join(",");
    let words =
        ["bench", "--workload", "w.jsonl", "--verify", "--compute", "none", "--directory", "d", "--stack", &list];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
}

#[test]
fn a_format_is_advised_on_by_what_its_entry_says() {
    let directory = directory(&steps());
    let (code, out, err) = advise(directory.path(), &["--formats", "npy", "--stack", "npy", "--verify", "1"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(stacks(&out).iter().any(|stack| stack == "npy"), "{out}");
    let plan = ["predict", "w.jsonl", "--stack", "npy(buffer=1MiB)", "--profile", "profile.json", "--foreign"];
    let (code, out, err) = run(directory.path(), &plan);
    assert!(code == 0 && out.contains("npy(buffer=1MiB)"), "{out}{err}");
}

#[test]
fn codecs_follow_the_stated_ratio() {
    let directory = directory(&steps().replace("\"index\"", "\"random\""));
    let best = |ratio: &str| {
        let (code, out, err) = advise(directory.path(), &["--ratio", ratio, "--cold"]);
        assert_eq!(code, 0, "{out}\n{err}");
        assert!(out.contains(&format!("{ratio} times smaller, as --ratio says")), "{out}");
        stacks(&out).remove(0)
    };
    // Nothing that codecs do costs anything on this machine, but bytes do.
    let coded = |stack: &str| stack.contains("deflate") || stack.contains("codec");
    assert!(coded(&best("50")), "{}", best("50"));
    assert!(!coded(&best("0.5")), "{}", best("0.5"));
}

#[test]
fn arrays_of_different_rank_have_chunks_of_their_own() {
    let arrays = r#"{"dtype":"<f4","shape":[262144]},{"dtype":"<f4","shape":[512,512]},{"dtype":"<f4","shape":[]}"#;
    let text = lines(
        &header(1, arrays, true),
        &[
            CREATE,
            r#"{"do":"create","slot":0,"file":0,"array":0,"name":"line"}"#,
            r#"{"do":"create","slot":1,"file":0,"array":1,"name":"plane"}"#,
            r#"{"do":"create","slot":2,"file":0,"array":2,"name":"scalar"}"#,
            r#"{"do":"write","slot":0,"selection":{"start":[0],"count":[262144]}}"#,
            r#"{"do":"write","slot":1,"selection":{"start":[0,0],"count":[512,512]}}"#,
            r#"{"do":"close_array","slot":0}"#,
            r#"{"do":"close_array","slot":1}"#,
            r#"{"do":"close_array","slot":2}"#,
            CLOSE,
        ],
    );
    let directory = directory(&text);
    let (code, out, err) = advise(directory.path(), &["--top", "1000"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let several: Vec<String> = stacks(&out).into_iter().filter(|stack| stack.contains(';')).collect();
    for format in ["hdf5(chunk=", "zarr(chunk="] {
        assert!(several.iter().any(|stack| stack.starts_with(format)), "{out}");
    }
    let words = ["bench", "--workload", "w.jsonl", "--verify", "--directory", "d", "--stack", &several.join(",")];
    let (code, out, err) = run(directory.path(), &words);
    assert_eq!(code, 0, "{out}\n{err}");
}

#[test]
fn nothing_and_one_element_are_no_trouble() {
    let nothing = lines(&header(1, r#"{"dtype":"<f4","shape":[8]}"#, true), &[CREATE, CLOSE]);
    let empty = lines(
        &header(1, r#"{"dtype":"<f4","shape":[0]}"#, true),
        &[
            CREATE,
            r#"{"do":"create","slot":0,"file":0,"array":0,"name":"a"}"#,
            r#"{"do":"write","slot":0,"selection":{"start":[0],"count":[0]}}"#,
            r#"{"do":"close_array","slot":0}"#,
            CLOSE,
        ],
    );
    let one = empty.replace("\"shape\":[0]", "\"shape\":[1]").replace("\"count\":[0]", "\"count\":[1]");
    for text in [nothing, empty, one] {
        let directory = directory(&text);
        let (code, out, err) = advise(directory.path(), &["--verify", "1"]);
        assert_eq!(code, 0, "{out}\n{err}");
    }
}

#[test]
fn verification_runs_layers_too_and_reports_the_regret() {
    let directory = directory(&steps());
    for stack in ["log/hdf5", "async/hdf5(chunk=64x256)", "twophase/hdf5"] {
        let (code, out, err) = advise(directory.path(), &["--stack", stack, "--verify", "2"]);
        assert_eq!(code, 0, "{out}\n{err}");
        assert!(out.contains("regret") && out.contains("what is used now"), "{out}");
        let table = out.split("predicted").nth(2).unwrap_or(&out);
        assert!(table.contains(stack), "{table}");
    }
}

/// Two ranks write every other column each; the second rank perhaps in two steps.
fn interleaved(apart: bool) -> String {
    let columns = |rank: usize, rows: std::ops::Range<usize>| {
        let selection = format!(r#"{{"start":[{},{rank}],"stride":[1,2],"count":[{},128]}}"#, rows.start, rows.len());
        format!(r#"{{"rank":{rank},"do":"write","slot":0,"selection":{selection}}}"#)
    };
    let mut all = vec![CREATE.to_owned(), r#"{"do":"create","slot":0,"file":0,"array":0,"name":"a"}"#.into()];
    all.push(columns(0, 0..256));
    match apart {
        true => all.extend([columns(1, 0..100), columns(1, 100..256)]),
        false => all.push(columns(1, 0..256)),
    }
    all.extend([r#"{"do":"close_array","slot":0}"#.into(), CLOSE.into()]);
    lines(&header(2, MATRIX, true), &all.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn ranks_that_could_write_together_are_told_to() {
    let directory = directory(&interleaved(false));
    let posix = ["--formats", "posix", "--stack", "posix", "--launcher", "threads"];
    let (code, out, err) = advise(directory.path(), &[&posix[..], &["--verify", "2"]].concat());
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(stacks(&out).iter().any(|stack| stack.starts_with("twophase(aggregators=")), "{out}");
    assert!(out.contains("regret"), "{out}");
    let results = fs::read_to_string(directory.path().join("hyperslab-predict/measured/results.json")).unwrap();
    assert!(results.contains("all transfers collective"), "{results}");
    // As it says, or as the user does, they are not.
    let (_, out, _) = advise(directory.path(), &[&posix[..], &["--transfers", "independent"]].concat());
    assert!(!out.contains("twophase(") && out.contains("were not compared"), "{out}");
}

#[test]
fn ranks_that_write_apart_are_not_told_to_write_together() {
    let directory = directory(&interleaved(true));
    let (code, out, err) = advise(directory.path(), &["--launcher", "threads"]);
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(!out.contains("twophase(") && out.contains("ranks make different ones"), "{out}");
    let bench = ["bench", "--workload", "w.jsonl", "--launcher", "threads", "--stack", "twophase/posix", "--transfers"];
    let (code, _, err) = run(directory.path(), &[&bench[..], &["collective"]].concat());
    assert!(code == 2 && err.contains("--transfers collective") && err.contains("collective steps"), "{err}");
    let (code, _, err) = run(directory.path(), &[&bench[..], &["independent", "--verify"]].concat());
    assert_eq!(code, 0, "{err}");
}

#[test]
fn the_mode_of_a_workflow_is_what_is_used_now() {
    let directory = directory("");
    let keys = r#""MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": 1, "DIM_1": "4 K", "COLLECTIVE_DATA": "YES""#;
    let workflow = |modes: [&str; 2]| {
        let entries = modes.map(|mode| {
            format!(r#"{{"benchmark": "write", "file": "{mode}.h5", "configuration": {{{keys}, "MODE": "{mode}"}}}}"#)
        });
        format!(
            r#"{{"mpi": {{"command": "mpirun", "ranks": "4"}}, "vol": {{}}, "file-system": {{}}, "directory": "d", "benchmarks": [{}]}}"#,
            entries.join(",")
        )
    };
    let of = |modes: [&str; 2], more: &[&str]| {
        fs::write(directory.path().join("w.json"), workflow(modes)).unwrap();
        let words = ["advise", "w.json", "--profile", "profile.json", "--foreign", "--top", "100"];
        let (code, out, err) = run(directory.path(), &[&words[..], more].concat());
        assert_eq!(code, 0, "{out}\n{err}");
        out
    };
    let same = of(["ASYNC", "ASYNC"], &["--verify", "1"]);
    let used = same.lines().find(|line| line.contains("used now")).unwrap();
    assert!(used.contains("async/hdf5 "), "{same}");
    assert!(stacks(&same).iter().any(|stack| stack == "hdf5"), "synchronous ones are compared too: {same}");
    assert!(same.contains("regret"), "{same}");
    let mixed = of(["SYNC", "ASYNC"], &[]);
    assert!(mixed.contains("ask for different MODEs"), "{mixed}");
}

#[test]
fn nonsense_is_refused() {
    let directory = directory(&steps());
    for (more, said) in [
        (&["--ratio", "0"][..], "a number above 0"),
        (&["--ratio", "many"], "a number above 0"),
        (&["--formats", "hdf5,netcdf"], "no model of \"netcdf\""),
        (&["--stack", "hdf5,zarr"], "one stack is used now"),
        (&["--stack", "hdf5(chunk=8;9)"], "one shape for each number of dimensions"),
        (&["--stack", "asink/hdf5"], "asink"),
        (&["--stack", "null"], "no model of null"),
        (&["--log-dir", "nowhere"], "no directory"),
        (&["--top", "0"], "--top"),
        (&["--verify", "0"], "--verify"),
    ] {
        let (code, out, err) = advise(directory.path(), more);
        assert_eq!((code, out.as_str()), (2, ""), "{more:?} {err}");
        assert!(err.contains(said), "{said}: {err}");
    }
}
