//! `cargo xtask sanitize` and `cargo xtask miri`: the tests of unsafe code, run by tools that see what tests do not.

use std::process::Command;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::fuzz::{self, sanitizer};
use crate::setup::{self, Environment, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// The crates with copy kernels, filters and the direct path.
const SANITIZED: [&str; 3] = ["hyperslab-core", "hyperslab-filters", "hyperslab-h5direct"];
/// What Miri runs: code without system calls and without C, by parts of the tests' names.
const INTERPRETED: [(&str, &[&str]); 2] = [
    ("hyperslab-core", &["copy", "selection", "chunks", "shared_bytes", "memory", "runs", "slab", "span", "dims"]),
    ("hyperslab-h5direct", &["convert", "chunk_locks", "coalesce"]),
];
/// Random cases for each property: Miri takes some hundred times longer.
const FEW_CASES: &str = "4";
const NO_MIRI: &str = "no toolchain here has Miri: rustup toolchain install nightly --component miri,rust-src";

/// The command `sanitize`.
pub fn sanitize(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--no-apt"], false)?;
    let options =
        SetupOptions { tests: false, clients: false, long: false, mpi: false, apt: !arguments.has("--no-apt") };
    run_sanitized(workspace, &setup::prepare(workspace, options)?, &arguments.passed_on)
}

/// Builds the tests of unsafe code with AddressSanitizer, in Rust and C, and runs them.
pub fn run_sanitized(workspace: &Workspace, environment: &Environment, passed_on: &[String]) -> Result<()> {
    let host = fuzz::host()?;
    let mut command = workspace.cargo(&["test", "--lib", "--tests", "--target", &host]);
    command.args(SANITIZED.map(|name| ["--package", name]).concat()).args(passed_on);
    command.arg("--target-dir").arg(workspace.root().join("target/sanitize"));
    sanitizer::apply(environment.apply(&mut command), &[])?;
    command.env("ASAN_OPTIONS", sanitizer::OPTIONS);
    shell::run_visibly(
        &mut command,
        "read the report above: it names where the memory was taken and where it was misused",
    )
}

/// The command `miri`.
pub fn miri(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &[], false)?;
    match toolchain() {
        Some(toolchain) => interpret(workspace, &toolchain, &arguments.passed_on),
        None => bail!("{NO_MIRI}"),
    }
}

/// Runs Miri where it is; otherwise says why not.
pub fn miri_if_there(workspace: &Workspace) -> Result<Option<&'static str>> {
    match toolchain() {
        Some(toolchain) => interpret(workspace, &toolchain, &[]).map(|()| None),
        None => Ok(Some(NO_MIRI)),
    }
}

fn interpret(workspace: &Workspace, toolchain: &str, passed_on: &[String]) -> Result<()> {
    for (package, tests) in INTERPRETED {
        // Cargo names its toolchain to what it starts, which would win over the one that is asked for.
        let mut command = Command::new("cargo");
        command
            .current_dir(workspace.root())
            .env_remove("CARGO")
            .env_remove("RUSTC")
            .env("RUSTUP_TOOLCHAIN", toolchain);
        command.args(["miri", "test", "--package", package, "--lib"]);
        command.arg("--target-dir").arg(workspace.root().join("target/miri"));
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", FEW_CASES);
        command.arg("--").args(tests).args(passed_on);
        shell::run_visibly(&mut command, "read the first error above: Miri says which rule was broken")?;
    }
    Ok(())
}

/// The first toolchain of rustup that has Miri.
fn toolchain() -> Option<String> {
    let listed = shell::output(Command::new("rustup").args(["toolchain", "list", "--quiet"]), "").ok()?;
    let has_miri = |name: &&str| {
        let mut command = Command::new("cargo");
        command.env_remove("RUSTC").env("RUSTUP_TOOLCHAIN", name).args(["miri", "--version"]);
        shell::output(&mut command, "").is_ok()
    };
    listed.lines().map(|line| line.split_whitespace().next().unwrap_or_default()).find(has_miri).map(str::to_owned)
}
