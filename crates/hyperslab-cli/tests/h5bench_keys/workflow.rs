//! Workflows, and what they leave.

use crate::program;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A workflow put together.
#[derive(Default)]
pub struct Workflow {
    benchmarks: Vec<Value>,
}

/// A workflow that ran.
pub struct Ran {
    directory: tempfile::TempDir,
    pub results: Value,
    pub err: String,
}

impl Workflow {
    /// Adds a benchmark.
    pub fn add(&mut self, benchmark: &str, file: &str, configuration: Value) -> &mut Self {
        self.benchmarks.push(json!({"benchmark": benchmark, "file": file, "configuration": configuration}));
        self
    }

    pub fn text(&self, ranks: u64) -> String {
        let mpi = json!({"command": "mpirun", "ranks": ranks.to_string()});
        json!({"mpi": mpi, "vol": {}, "file-system": {}, "directory": "data", "benchmarks": self.benchmarks})
            .to_string()
    }

    /// Runs it with every byte checked; all must go well.
    pub fn run(&self, ranks: u64, more: &[&str]) -> Ran {
        let directory = program::with(&self.text(ranks));
        let arguments = [&["bench", "w.json", "--verify", "--out", "r"], more].concat();
        let (code, out, err) = program::run(directory.path(), &arguments);
        assert_eq!(code, 0, "{ranks} ranks\n{out}\n{err}");
        let results = program::results(&directory.path().join("r/results.json"));
        Ran { directory, results, err }
    }
}

impl Ran {
    /// A data file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }

    /// Where data files lie.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A case, counted from 0.
    pub fn case(&self, index: usize) -> &Value {
        &self.results["cases"][index]
    }

    /// The operations of rank 0 in a case, counted from 1, as `--samples` wrote them.
    pub fn sample_operations(&self, number: usize) -> Vec<String> {
        let name = format!("r/samples-case-{number}-repetition-1-rank-0.csv");
        let text = std::fs::read_to_string(self.directory.path().join(name)).unwrap();
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned()).collect()
    }

    /// The run directories in `data`: those with a file `stdout`.
    pub fn run_directories(&self) -> Vec<PathBuf> {
        run_directories(&self.data())
    }
}

pub fn run_directories(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("stdout").is_file()).collect()
}

/// A configuration of particles, contiguous in memory and in the file, with these extents.
pub fn pattern(extent: &[u64], steps: u64) -> Value {
    let mut map = Map::from_iter([
        ("MODE".to_owned(), "SYNC".into()),
        ("MEM_PATTERN".into(), "CONTIG".into()),
        ("FILE_PATTERN".into(), "CONTIG".into()),
        ("TIMESTEPS".into(), steps.to_string().into()),
        ("NUM_DIMS".into(), extent.len().to_string().into()),
    ]);
    map.extend(extent.iter().enumerate().map(|(d, n)| (format!("DIM_{}", d + 1), n.to_string().into())));
    map.into()
}

/// The file's extents when `ranks` ranks have `extent` each.
pub fn file_shape(extent: &[u64], ranks: u64) -> Vec<u64> {
    extent.iter().enumerate().map(|(d, n)| if d == 0 { n * ranks } else { *n }).collect()
}
