//! `cargo xtask bench`: the ratio benchmarks. Each prints its own table of times measured side by side.

use anyhow::{Result, bail};

use crate::arguments::{Arguments, did_you_mean};
use crate::setup::{self, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// Benchmarks that hold foreign programs against the project.
const NEED_CLIENTS: [&str; 2] = ["connector", "ordinary"];

/// The command `bench`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--check", "--no-apt"], true)?;
    let mut chosen = benchmarks(workspace)?;
    for name in &arguments.names {
        if !chosen.contains(name) {
            let known: Vec<&str> = chosen.iter().map(String::as_str).collect();
            bail!("there is no benchmark {name:?}; {}", did_you_mean(name, &known));
        }
    }
    chosen.retain(|name| arguments.names.is_empty() || arguments.names.contains(name));
    if chosen.is_empty() {
        bail!("no crate has benchmarks\n  try: add a file to its folder benches, with harness = false in its manifest");
    }
    let clients = chosen.iter().any(|name| NEED_CLIENTS.contains(&name.as_str()));
    let options = SetupOptions { tests: false, clients, long: false, mpi: false, apt: !arguments.has("--no-apt") };
    let environment = setup::prepare(workspace, options)?;
    println!("\nbenchmarks: {}", chosen.join(", "));
    // One command for all: with one for each crate, cargo would build shared crates again with other features.
    let mut command = workspace.cargo(&["bench", "--workspace", "--no-fail-fast"]);
    for name in &chosen {
        command.args(["--bench", name]);
    }
    command.arg("--");
    if arguments.has("--check") {
        command.arg("--check");
    }
    command.args(&arguments.passed_on);
    shell::run_visibly(
        environment.apply(&mut command),
        "a quiet machine, then the one that failed: cargo xtask bench NAME",
    )
}

/// The names of all benchmarks of the workspace.
fn benchmarks(workspace: &Workspace) -> Result<Vec<String>> {
    let metadata = workspace.metadata()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let benchmarks = targets.filter(|target| target["kind"][0] == "bench");
    Ok(benchmarks.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect())
}
