//! `cargo xtask check`: what is worth waiting for before each commit. Tidy, format, clippy of what changed, and the tests within
//! libraries and programs; neither Python nor MPI, and nothing is installed for them.

use anyhow::Result;

use crate::arguments::Arguments;
use crate::setup::{self, SetupOptions};
use crate::test::{self, Outcome, Report, programs};
use crate::workspace::Workspace;

/// The command `check`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--no-apt"], false)?;
    let options =
        SetupOptions { tests: false, clients: false, long: false, mpi: false, apt: !arguments.has("--no-apt") };
    let mut environment = setup::prepare(workspace, options)?;
    environment.without_python();
    let mut report = Report::default();
    report.step("tidy", || test::tidied(workspace));
    report.step("format", || test::formatted(workspace));
    report.step("clippy", || test::linted(workspace, &environment));
    let mut built = Vec::new();
    report.step("build", || {
        built = programs::build(workspace, &environment, programs::Targets::Units)?;
        Ok(Outcome::Passed(format!("{} test programs", built.len())))
    });
    if !built.is_empty() {
        report.unit_tests(workspace, &environment, &built);
    }
    report.finish(&environment)
}
