//! What is printed in the end: each step, where the time went, what failed, and what was not checked.

use std::time::Duration;

use super::{Outcome, Report};
use crate::setup::Environment;

/// Prints it.
pub fn print(report: &Report, environment: &Environment) {
    println!("\nsummary");
    for step in &report.steps {
        let (result, detail) = match &step.outcome {
            Outcome::Passed(detail) => ("passed", detail.as_str()),
            Outcome::Failed(detail) => ("FAILED", detail.as_str()),
            Outcome::Skipped(why) => ("skipped", why.as_str()),
        };
        let line = format!("  {:<8} {result:<8} {:>7.1} s  {detail}", step.name, step.time.as_secs_f64());
        println!("{}", line.trim_end());
    }
    let total: Duration = report.steps.iter().map(|step| step.time).sum();
    println!("  {:<8} {:<8} {:>7.1} s", "all", "", total.as_secs_f64());
    list("what took longest", &report.durations.longest());
    list("what failed", report.tally.failures());
    let missing = environment.missing.iter().cloned();
    list("not checked here", &missing.chain(report.tally.skipped()).collect::<Vec<_>>());
}

fn list(title: &str, lines: &[String]) {
    if !lines.is_empty() {
        println!("{title}");
        lines.iter().for_each(|line| println!("  {line}"));
    }
}
