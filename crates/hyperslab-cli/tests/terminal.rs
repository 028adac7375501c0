//! What a terminal shows: tables that fit, help that is not broken, manuals and completions; and `reproduce`, small.
#![allow(clippy::unwrap_used)]

use assert_cmd::cargo::CommandCargoExt;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(directory: &Path, columns: &str, arguments: &[&str]) -> (i32, String, String) {
    #[allow(deprecated)]
    let mut command = Command::cargo_bin("hyperslab").unwrap();
    let output = command.current_dir(directory).env("COLUMNS", columns).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (code, out, err) = (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (code, out, err)
}

/// Everything that looks like a figure as `#`, so that what is left does not change from run to run.
fn without_figures(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<String> = Vec::new();
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let figure =
                word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with('±') || word.starts_with('█');
            let unit = words.last().is_some_and(|last| last == "#")
                && ["us", "ms", "s", "ns", "B", "B/s", "KiB", "MiB", "GiB", "KiB/s", "MiB/s", "GiB/s"].contains(&word);
            match (figure || unit, words.last().map(String::as_str)) {
                (true, Some("#")) => {}
                (true, _) => words.push("#".into()),
                (false, _) => words.push(word.into()),
            }
        }
        words.join(" ").replace('─', "")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn tables_fit_80_120_and_200_columns() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = |out: &'static str| {
        [
            "bench",
            "vpic",
            "particles=512",
            "steps=1",
            "--format",
            "posix,hdf5",
            "--launcher",
            "threads",
            "--ranks",
            "2",
            "--directory",
            "d",
            "--overwrite",
            "--verify",
            "--repeat",
            "3",
            "--out",
            out,
        ]
    };
    for (columns, out) in [("80", "a"), ("120", "b"), ("200", "c")] {
        let (code, out, err) = run(folder.path(), columns, &arguments(out));
        assert_eq!(code, 0, "{err}");
        let limit: usize = columns.parse().unwrap();
        let lines: Vec<&str> = out.lines().collect();
        let paths =
            |line: &str| line.starts_with("Results:") || line.starts_with("More:") || line.starts_with("Data files:");
        let table: String = lines.iter().filter(|line| !paths(line)).map(|line| format!("{line}\n")).collect();
        assert!(widest(&table) <= limit, "{columns}: {} in\n{out}", widest(&table));
        assert!(lines[1].starts_with("2 cases ran; every byte verified"), "the answer first: {out}");
        let head = without_figures(&table).lines().find(|line| line.starts_with("case")).unwrap().to_owned();
        let golden = match columns {
            "80" => "case benchmark stack data time rate verified",
            "120" => "case benchmark stack cache data time rate raw rate open+metadata verified",
            _ => "case benchmark stack cache data time rate raw rate open+metadata flush+close verified",
        };
        assert_eq!(head, golden, "{out}");
        assert_eq!(out.contains("left out for want of room"), columns != "200", "{out}");
        assert!(!out.contains("±1") || !out.contains("±100"), "no percentage that says nothing: {out}");
    }
    let (_, out, _) = run(folder.path(), "60", &arguments("d2"));
    assert!(out.contains("left out for want of room") || out.contains("benchmark  vpic write"), "{out}");
    let (_, out, _) = run(folder.path(), "80", &[&arguments("e")[..], &["--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["hyperslab_results"], 2);
    let (_, out, _) = run(folder.path(), "200", &[&arguments("f")[..], &["--verbose"]].concat());
    assert!(out.contains("Side by side") && out.contains("Transfer calls"), "{out}");
}

#[test]
fn one_format_or_layer_has_a_page_of_its_own() {
    let here = tempfile::tempdir().unwrap();
    for name in ["hdf5", "zarr", "log", "posix"] {
        let (code, out, _) = run(here.path(), "80", &["formats", name]);
        assert_eq!(code, 0);
        assert!(out.starts_with(name) && widest(&out) <= 80 && out.contains("Write it as --stack"), "{out}");
    }
    assert!(widest(&run(here.path(), "80", &["formats"]).1) <= 80);
    let (code, _, err) = run(here.path(), "80", &["formats", "hdf6"]);
    assert_eq!((code, err.contains("hdf5")), (2, true), "{err}");
    let (_, out, _) = run(here.path(), "80", &["formats", "log", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()[0]["kind"], "layer");
}

#[test]
fn manuals_and_completions_know_every_command() {
    let here = tempfile::tempdir().unwrap();
    let (code, out, err) = run(here.path(), "80", &["manual", "man"]);
    assert_eq!(code, 0, "{err}");
    for page in ["hyperslab.1", "hyperslab-bench.1", "hyperslab-report.1", "hyperslab-reproduce.1"] {
        assert!(out.contains(page), "{out}");
        assert!(fs::read_to_string(here.path().join("man").join(page)).unwrap().contains(".TH"), "{page}");
    }
    assert!(!out.contains("mpi-rank"), "{out}");
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(here.path(), "80", &["completions", shell]);
        assert!(code == 0 && out.contains("reproduce") && out.contains("overwrite"), "{shell}");
    }
}

#[test]
fn the_version_tells_what_the_program_was_built_from() {
    let here = tempfile::tempdir().unwrap();
    let (code, out, _) = run(here.path(), "80", &["--version"]);
    assert_eq!((code, out.lines().count()), (0, 1), "{out}");
    for words in [&["--version", "-v"][..], &["-V", "--verbose"], &["-vV"]] {
        let (code, page, err) = run(here.path(), "80", words);
        assert_eq!(code, 0, "{err}");
        assert!(page.starts_with(out.trim()), "{page}");
        for word in ["commit", "build", "features", "libraries", "formats", "connector", "posix"] {
            assert!(page.contains(word), "{word} in {page}");
        }
    }
    let (_, out, _) = run(here.path(), "80", &["--version", "--json"]);
    let facts: Value = serde_json::from_str(&out).unwrap();
    assert!(
        facts["formats"].as_array().unwrap().contains(&"posix".into()) && facts["libraries"].is_object(),
        "{facts:#}"
    );
    // The sources are a checkout, or say nothing of a commit.
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git").exists();
    assert_eq!(facts["commit"].is_string(), checkout, "{facts:#}");
    assert_ne!(run(here.path(), "80", &["--version", "-v", "nonsense"]).1.lines().count(), 7);
}

/// The object or list that a command prints.
fn json_of(here: &Path, arguments: &[&str]) -> Value {
    let (_, out, err) = run(here, "80", arguments);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{out}\n{err}"))
}

#[test]
fn every_command_answers_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let bench =
        ["bench", "vpic", "particles=256", "steps=1", "--format", "hdf5", "--launcher", "threads", "--ranks", "2"];
    let results = json_of(here, &[&bench[..], &["--directory", "d", "--out", "r", "--json"]].concat());
    let file = Path::new("d").join(results["cases"][0]["file"].as_str().unwrap());
    let file = if here.join(&file).exists() { file } else { results["cases"][0]["file"].as_str().unwrap().into() };
    let file = file.to_str().unwrap();
    let shown = json_of(here, &["show", file, "--json"]);
    let array = shown["arrays"][0]["name"].as_str().unwrap();
    assert!(shown["arrays"][0]["shape"].is_array() && shown["stack"] == "hdf5", "{shown:#}");
    assert_eq!(json_of(here, &["show", file, array, "--json"])["name"], array);
    let explained = json_of(here, &["show", file, array, "--explain", "--json"]);
    assert!(explained["explanation"].is_string() && explained["elements"].is_number(), "{explained:#}");
    let converted = json_of(here, &["convert", file, "copy.npys", "--json"]);
    assert_eq!(converted["arrays"].as_u64(), shown["arrays"].as_array().map(|all| all.len() as u64), "{converted:#}");
    assert_eq!(json_of(here, &["report", "r", "--json"])["hyperslab_report"], 1);
    assert_eq!(json_of(here, &["compare", "r", "r", "--json"])["hyperslab_comparison"], 1);
    assert!(json_of(here, &["doctor", "--json"])["sections"].as_array().unwrap().len() >= 4);
    let recovered = json_of(here, &["recover", ".", "--json"]);
    assert_eq!(
        (&recovered["outcome"], &recovered["logs"]),
        (&"done".into(), &Value::Array(Vec::new())),
        "{recovered:#}"
    );
    assert!(json_of(here, &["reproduce", "--list", "--json"])[0]["published"].is_array());
    let demo = ["demo", "async", "--steps", "2", "--compute", "5ms", "--size", "1MiB", "--json"];
    assert!(json_of(here, &demo)["sides"][1]["seconds"].is_number());
    assert!(json_of(here, &["formats", "--json"]).is_array());
}

#[test]
fn published_figures_run_small_and_end_in_a_page() {
    let here = tempfile::tempdir().unwrap();
    let (code, out, _) = run(here.path(), "200", &["reproduce", "--list"]);
    assert_eq!(code, 0);
    for study in ["async-write", "partial-read", "locality", "array-chunks", "burst-buffer", "unlimited-dimension"] {
        assert!(out.contains(study), "{out}");
    }
    let names = ["partial-read", "metadata-time", "locality", "array-chunks", "prefill", "async-write"];
    let (code, out, err) = run(here.path(), "80", &[&["reproduce", "--tiny", "--repeat", "3"][..], &names].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.starts_with("Of 8 published claims") && widest(&out) <= 80, "{out}");
    for name in names {
        assert!(out.contains(&format!("{name}: ")), "{name} in {out}");
    }
    assert!(!out.contains("not measured"), "{out}");
    let page = fs::read_to_string(here.path().join("hyperslab-reproduce/report.html")).unwrap();
    assert!(page.contains("Published claims") && page.contains("Fig 22"), "a page");
    assert!(!here.path().join("hyperslab-reproduce/data").exists(), "data are removed");
    let (code, _, err) = run(here.path(), "80", &["reproduce", "localty"]);
    assert_eq!((code, err.contains("locality")), (2, true), "{err}");
}

#[test]
#[ignore = "takes a minute; cargo test -p hyperslab-cli --test terminal -- --ignored"]
fn every_published_figure_runs() {
    let here = tempfile::tempdir().unwrap();
    let (code, out, err) = run(here.path(), "80", &["reproduce", "--tiny", "--repeat", "3"]);
    assert_eq!(code, 0, "{out}{err}");
    // Without MPI there is one that cannot run.
    assert!(out.matches("not measured").count() <= 1, "{out}");
}
