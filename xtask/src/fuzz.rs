//! `cargo xtask fuzz`: builds the fuzz targets of the folder `fuzz` with the stable compiler and runs them for a while.
//!
//! What cargo-fuzz does with a nightly compiler, done with the stable one: coverage counters for libFuzzer, checks for overflow,
//! and AddressSanitizer in Rust and in the C libraries. With a nightly compiler, `cargo fuzz run TARGET` works there, too.

pub mod sanitizer;
mod seeds;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arguments::{Arguments, did_you_mean, take_value};
use crate::setup::{self, Environment, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// Coverage as libFuzzer wants it. The passes are LLVM's, which a stable rustc runs when told to.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];

/// How each target is run: no input may take much memory or time, or be long.
const LIMITS: [&str; 4] = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=32768", "-print_final_stats=1"];
/// The most that may be asked for at once. Asked for more, `malloc` fails, which libraries must bear; Rust gives up.
const LARGEST_ALLOCATION: &str = "max_allocation_size_mb=256:allocator_may_return_null=1";
const DEFAULT_SECONDS: u64 = 30;

/// The command `fuzz`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let (seconds, words) = seconds(words)?;
    let arguments = Arguments::parse(&words, &["--build", "--no-apt"], true)?;
    let known = targets(workspace)?;
    for name in &arguments.names {
        if !known.contains(name) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            bail!("there is no fuzz target {name:?}; {}", did_you_mean(name, &known));
        }
    }
    let mut chosen = known;
    chosen.retain(|name| arguments.names.is_empty() || arguments.names.contains(name));
    let options =
        SetupOptions { tests: false, clients: false, long: false, mpi: false, apt: !arguments.has("--no-apt") };
    build(workspace, &setup::prepare(workspace, options)?)?;
    if arguments.has("--build") {
        return Ok(());
    }
    run_each(workspace, &chosen, seconds, &arguments.passed_on)
}

/// Runs all targets, which are built; returns how many there are.
pub fn run_all(workspace: &Workspace, seconds: u64) -> Result<usize> {
    let all = targets(workspace)?;
    run_each(workspace, &all, seconds, &[])?;
    Ok(all.len())
}

fn run_each(workspace: &Workspace, names: &[String], seconds: u64, passed_on: &[String]) -> Result<()> {
    let mut failed = Vec::new();
    for name in names {
        println!("\nfuzz {name}: {seconds} s");
        if let Err(error) = run_target(workspace, name, seconds, passed_on) {
            eprintln!("error: {error:#}");
            failed.push(name.as_str());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("found something: {}; the inputs are in fuzz/artifacts", failed.join(", ")),
    }
}

/// Builds all targets. The target is named so that build scripts and macros are built without the flags.
pub fn build(workspace: &Workspace, environment: &Environment) -> Result<()> {
    let mut command = workspace.cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    command.args(["--target", &host()?]).arg("--target-dir").arg(workspace.root().join("target/fuzz"));
    sanitizer::apply(&mut command, &FLAGS)?;
    shell::run_visibly(environment.apply(&mut command), "mend what the compiler lists above")
}

fn run_target(workspace: &Workspace, name: &str, seconds: u64, passed_on: &[String]) -> Result<()> {
    let folder = |kind: &str| -> Result<PathBuf> {
        let path = workspace.root().join("fuzz").join(kind).join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    };
    let (corpus, artifacts) = (folder("corpus")?, folder("artifacts")?);
    seeds::put(workspace, name, &corpus)?;
    let program = workspace.root().join("target/fuzz").join(host()?).join("release").join(name);
    let mut command = Command::new(program);
    command.env("ASAN_OPTIONS", format!("{}:{LARGEST_ALLOCATION}", sanitizer::OPTIONS));
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).args(passed_on);
    if !passed_on.iter().any(|word| !word.starts_with('-')) {
        command.arg(corpus);
    }
    shell::run_visibly(&mut command, &format!("cargo xtask fuzz {name} -- INPUT, with the input named above"))
}

/// The number after `--seconds`, and the other words.
fn seconds(words: &[String]) -> Result<(u64, Vec<String>)> {
    let needs = "a number of seconds, such as --seconds 60";
    let (value, rest) = take_value(words, "--seconds", needs)?;
    let number = value.map(|text| text.parse().ok().filter(|number| *number > 0));
    let number = number.unwrap_or(Some(DEFAULT_SECONDS));
    Ok((number.with_context(|| format!("--seconds needs {needs}"))?, rest))
}

/// The files of `fuzz/fuzz_targets`, by name.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.path().file_stem().and_then(|stem| stem.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// What this compiler builds for unless told otherwise.
pub fn host() -> Result<String> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let said = shell::output(command.arg("-vV"), "look whether rustc is on the PATH")?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not say its host")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn seconds_are_taken_out() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(seconds(&words("stack --seconds 5 --build")).unwrap(), (5, words("stack --build")));
        assert_eq!(seconds(&words("stack -- --seconds")).unwrap(), (DEFAULT_SECONDS, words("stack -- --seconds")));
        assert!(seconds(&words("--seconds")).is_err());
        assert!(seconds(&words("--seconds 0")).is_err());
    }
}
