//! What h5bench's users parse: CSV files, the printed block, run directories.

use crate::program;
use crate::python::and;
use crate::workflow::{Workflow, pattern, run_directories};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All benchmarks that work on one file, each with a CSV file of its own name.
fn all_kinds(more: Value) -> Workflow {
    let keys = |csv: &str| and(pattern(&[64], 2), and(json!({"CSV_FILE": csv}), more.clone()));
    let mut workflow = Workflow::default();
    workflow.add("write-unlimited", "u.h5", keys("unlimited.csv"));
    workflow.add("append", "u.h5", keys("append.csv"));
    workflow.add("write_var_normal_dist", "n.h5", keys("normal.csv"));
    workflow.add("write", "w.h5", keys("write.csv"));
    workflow.add("read", "w.h5", keys("read.csv"));
    workflow.add("overwrite", "w.h5", keys("overwrite.csv"));
    workflow
}

/// The CSV files of all run directories, by name, and what was printed beside each.
fn reports(data: &Path) -> BTreeMap<String, (String, String)> {
    let mut out = BTreeMap::new();
    for directory in run_directories(data) {
        let printed = fs::read_to_string(directory.join("stdout")).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".csv") {
                let csv = fs::read_to_string(directory.join(&name)).unwrap();
                assert!(out.insert(name, (csv, printed.clone())).is_none());
            }
        }
    }
    out
}

/// Rows without values: metric and unit, the letter of the unit's magnitude left out.
fn shape_of(csv: &str) -> Vec<(String, String)> {
    let unit = |unit: &str| unit.trim_start_matches(['K', 'M', 'G', 'T']).to_owned();
    csv.lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(", ").collect();
            assert_eq!(cells.len(), 3, "{line:?}");
            (cells[0].to_owned(), unit(cells[2]))
        })
        .collect()
}

const NORMAL: [&str; 3] = ["Total number of particles", "Final mean particles", "Final standard deviation"];
const ASKED: [&str; 3] = ["collective data", "collective meta", "subfiling"];
const FIGURES: [(&str, &str); 7] = [
    ("total compute time", "seconds"),
    ("total size", "B"),
    ("raw time", "seconds"),
    ("raw rate", "B/s"),
    ("metadata time", "seconds"),
    ("observed rate", "B/s"),
    ("observed time", "seconds"),
];

pub fn csv() {
    for (data, meta) in [("YES", "NO"), ("NO", "YES")] {
        let asked = json!({"COLLECTIVE_DATA": data, "COLLECTIVE_METADATA": meta});
        let ran = all_kinds(asked).run(2, &[]);
        let reports = reports(&ran.data());
        assert_eq!(reports.len(), 6);
        for (name, operation, extra) in [
            ("unlimited.csv", "write unlimited", &ASKED[..2]),
            ("append.csv", "append", &[]),
            ("normal.csv", "write_var_normal_dist", &[NORMAL, ASKED].concat()),
            ("write.csv", "write", &ASKED),
            ("read.csv", "read", &ASKED),
            ("overwrite.csv", "overwrite", &[]),
        ] {
            let csv = &reports[name].0;
            let mut expected = vec![("metric", "unit"), ("operation", ""), ("ranks", "")];
            expected.extend(extra.iter().map(|metric| (*metric, "")));
            expected.extend(FIGURES);
            let found = shape_of(csv);
            let found: Vec<(&str, &str)> =
                found.iter().map(|(metric, unit)| (metric.as_str(), unit.as_str())).collect();
            assert_eq!(found, expected, "{csv}");
            let value = |metric: &str| {
                let row = csv.lines().find(|line| line.starts_with(&format!("{metric}, ")))?;
                Some(row.split(", ").nth(1).unwrap().to_owned())
            };
            assert_eq!(value("operation").as_deref(), Some(operation));
            assert_eq!(value("ranks").as_deref(), Some("2"));
            if extra.contains(&"collective data") {
                assert_eq!(value("collective data").as_deref(), Some(data), "{csv}");
                assert_eq!(value("collective meta").as_deref(), Some(meta), "{csv}");
            }
            if extra.contains(&"subfiling") {
                assert_eq!(value("subfiling").as_deref(), Some("NO"), "{csv}");
            }
            if name != "normal.csv" {
                assert_eq!(value("total size").as_deref(), Some("8.000"), "{csv}");
                assert!(csv.contains("total size, 8.000, KB\n"), "{csv}");
            }
        }
    }
}

pub fn printed_block() {
    let ran = all_kinds(json!({})).run(3, &[]);
    let reports = reports(&ran.data());
    let labels = |verb: &str, creates: bool, normal: bool| {
        let observed = if verb == "write" { "Observed".to_owned() } else { format!("Observed {verb}") };
        let mut out = vec!["Total number of ranks".to_owned()];
        out.extend(NORMAL.iter().filter(|_| normal).map(|label| (*label).to_owned()));
        out.extend([
            "Total emulated compute time".to_owned(),
            format!("Total {verb} size"),
            format!("Raw {verb} time"),
            "Metadata time".into(),
        ]);
        let files = ["H5Fcreate() time", "H5Fflush() time", "H5Fclose() time"];
        out.extend(files.iter().filter(|_| creates).map(|label| (*label).to_owned()));
        out.push(format!("{observed} completion time"));
        out.extend([format!("SYNC Raw {verb} rate"), format!("SYNC Observed {verb} rate")]);
        out
    };
    for (name, verb, creates) in [
        ("unlimited.csv", "write", true),
        ("append.csv", "modify", false),
        ("normal.csv", "write", true),
        ("write.csv", "write", true),
        ("read.csv", "read", false),
        ("overwrite.csv", "modify", false),
    ] {
        let printed = &reports[name].1;
        let (configuration, results) = printed.split_once(" Performance Results ").unwrap();
        assert!(configuration.contains("\nMode: SYNC\n"), "{printed}");
        let rows: Vec<(&str, &str)> = results.lines().filter_map(|line| line.split_once(": ")).collect();
        let found: Vec<&str> = rows.iter().map(|(label, _)| *label).collect();
        assert_eq!(found, labels(verb, creates, name == "normal.csv"), "{printed}");
        for (label, value) in rows {
            let words: Vec<&str> = value.split(' ').collect();
            let units: &[&str] = match label {
                "Total number of ranks" => &[],
                label if NORMAL.contains(&label) => &[],
                label if label.ends_with("time") => &["s"],
                label if label.ends_with("size") => &["B", "KB", "MB", "GB", "TB"],
                _ => &["B/s", "KB/s", "MB/s", "GB/s", "TB/s"],
            };
            if units.is_empty() {
                assert_eq!(words.len(), 1, "{label}: {value}");
                continue;
            }
            let places = words[0].split_once('.').map(|(_, places)| places.len());
            assert!(places == Some(3) && words[0].parse::<f64>().unwrap() >= 0.0, "{label}: {value}");
            assert!(words.len() == 2 && units.contains(&words[1]), "{label}: {value}");
        }
        let size = format!("Total {verb} size: 12.000 KB\n");
        assert!(name == "normal.csv" || printed.contains(&size), "{printed}");
    }
}

/// Names of environment variables, the batch system's job in the name of the run directory, the name of CSV files.
pub fn run_directory() {
    let jobs = [("SLURM_JOB_ID", "4711"), ("COBALT_JOBID", "12"), ("PBS_JOBID", "5[3].host"), ("LSB_JOBID", "a/b")];
    for (number, (variable, value)) in jobs.into_iter().enumerate() {
        let keys = json!({"CSV_FILE": "out.csv", "ENV_METADATA_FILE": "names.txt"});
        let mut workflow = Workflow::default();
        workflow.add("write", "a.posix", and(pattern(&[4], 1), keys));
        let directory = program::with(&workflow.text(1));
        fs::write(directory.path().join("names.txt"), "SOME_NAME\n# not this\n\n OTHER_NAME \nNOT_SET_AT_ALL\n")
            .unwrap();
        let mut command = program::hyperslab(directory.path());
        command.args(["bench", "w.json", "--format", "posix"]).env("SOME_NAME", "some value").env("OTHER_NAME", "7");
        // Of several the first counts.
        jobs[number..].iter().for_each(|(variable, value)| {
            command.env(variable, value);
        });
        let (code, out, err) = program::said(command.output().unwrap());
        assert_eq!(code, 0, "{out}\n{err}");
        let directories = run_directories(&directory.path().join("data"));
        assert_eq!(directories.len(), 1);
        let name = directories[0].file_name().unwrap().to_str().unwrap();
        let (id, job) = name.split_once('-').unwrap();
        assert!(id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        assert_eq!(job, value.replace('/', "_"), "{variable}");
        let csv = fs::read_to_string(directories[0].join("out.csv")).unwrap();
        let lines: Vec<&str> = csv.lines().take(5).collect();
        let expected = ["SOME_NAME, some value", "OTHER_NAME, 7", "NOT_SET_AT_ALL, ", "metric, value, unit"];
        assert_eq!(lines[..4], expected, "{csv}");
        assert!(lines[4].starts_with("operation, write"), "{csv}");
    }
    let ran = Workflow::default().add("write", "a.posix", pattern(&[4], 1)).run(1, &["--format", "posix"]);
    let directories = ran.run_directories();
    let name = directories[0].file_name().unwrap().to_str().unwrap();
    assert!(name.len() == 8 && !name.contains('-'), "without a job: {name}");
    let files: Vec<_> = fs::read_dir(&directories[0]).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["stdout"], "without CSV_FILE there is none");
}

/// SYNC, in any case and when absent, ASYNC and LOG run, each on its stack.
pub fn modes() {
    for (mode, stack) in [
        (json!("SYNC"), "posix"),
        (json!("sync"), "posix"),
        (json!(null), "posix"),
        (json!("ASYNC"), "async/posix"),
        (json!("LOG"), "loglayout/posix"),
    ] {
        let mut workflow = Workflow::default();
        workflow.add("write", "a.posix", and(pattern(&[4], 1), json!({"MODE": mode})));
        let directory = program::with(&workflow.text(2));
        let arguments = ["bench", "w.json", "--format", "posix", "--out", "r", "--validate-mode"];
        let (found, out, err) = program::run(directory.path(), &arguments);
        assert_eq!(found, 0, "{mode}: {out}\n{err}");
        let results = program::results(&directory.path().join("r/results.json"));
        assert_eq!((&results["cases"][0]["status"], &results["cases"][0]["stack"]), (&"ok".into(), &stack.into()));
        assert!(directory.path().join("data/a.posix").exists(), "{mode}");
        assert!(out.contains("1 of 1 cases ran in the mode"), "{out}");
    }
}
