//! Plans a benchmark again that was run elsewhere: from its command and inputs, or from h5bench's keys.

use crate::cli::{Arguments, Command};
use anyhow::{Context, Result, bail};
use clap::Parser;
use hyperslab_bench::{BenchOptions, Launcher, Plan};
use hyperslab_run::Results;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A workflow in a file of its own, which goes with it.
struct TemporaryWorkflow(PathBuf);

impl TemporaryWorkflow {
    fn of(workflow: &Value) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hyperslab-workflow-{}-{number}.json", std::process::id()));
        fs::write(&path, workflow.to_string()).with_context(|| format!("write {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryWorkflow {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The cases that made `results`, from the command and the inputs that are kept in them.
pub fn of_results(results: &Results) -> Result<Plan> {
    let words = &results.command;
    let again = || format!("plan again what made these results: {}", words.join(" "));
    let Command::Bench(mut options) = Arguments::try_parse_from(words).with_context(again)?.command else {
        bail!("these are results of hyperslab {}, not of bench", words.get(1).map_or("", String::as_str));
    };
    let mut kept = None;
    if let Some(config) = options.config.clone().filter(|config| !config.exists()) {
        let inputs = &results.provenance.inputs;
        let name = config.display().to_string();
        if let Some((_, workflow)) = inputs.iter().find(|(path, value)| **path == name && value.is_object()) {
            let file = TemporaryWorkflow::of(workflow)?;
            options.config = Some(file.0.clone());
            kept = Some(file);
        }
    }
    options.launcher = Launcher::Threads;
    options.mpi_command = None;
    let plan = Plan::new(&options, None).with_context(again)?;
    drop(kept);
    Ok(plan)
}

/// One benchmark of h5bench with these keys, a line for each.
pub fn of_keys(benchmark: &str, keys: &str, ranks: u32) -> Result<Plan> {
    let pairs = keys.lines().map(|line| line.split('#').next().unwrap_or("")).filter_map(|line| line.split_once('='));
    let pairs: serde_json::Map<String, Value> = pairs
        .map(|(key, value)| (key.trim().to_owned(), json!(value.trim())))
        .filter(|(key, _)| key != "CSV_FILE")
        .collect();
    let workflow = json!({
        "mpi": {"command": "mpirun", "ranks": ranks.to_string()},
        "vol": {},
        "file-system": {},
        "directory": "h5bench",
        "benchmarks": [{"benchmark": benchmark, "file": "h5bench.h5", "configuration": pairs}],
    });
    let file = TemporaryWorkflow::of(&workflow)?;
    let options = BenchOptions {
        config: Some(file.0.clone()),
        stack: Some("hdf5".into()),
        launcher: Launcher::Threads,
        rank_list: Some(ranks.to_string()),
        ..BenchOptions::default()
    };
    Plan::new(&options, None)
}
