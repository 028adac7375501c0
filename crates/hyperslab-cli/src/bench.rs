//! `hyperslab bench`: a workflow on one or more stacks.

mod explain;

use crate::cli::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_SKIPPED};
use crate::mpi_job::InsideJob;
use crate::table::wrapped;
use crate::terminal;
use anyhow::{Context, Result};
use hyperslab_advisor::estimate;
use hyperslab_bench::{BenchOptions, Plan, Schedule, execute, stop_on_ctrl_c};
use hyperslab_run::{Progress, Results, Status};
use std::process::ExitCode;
use std::sync::Arc;

/// Plans, checks, runs and reports.
pub fn run(options: &BenchOptions) -> Result<ExitCode> {
    if options.list {
        println!("{}", hyperslab_bench::kernel_list());
        return Ok(ExitCode::SUCCESS);
    }
    let inside = InsideJob::join()?;
    if inside.as_ref().map_or(Ok(false), InsideJob::served)? {
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Plan::new(options, inside.as_ref())?;
    if options.dry_run {
        println!("{}", plan.describe()?);
        if plan.points() > 1 {
            println!("{}", Schedule::of(&plan, options, &estimate).describe(&plan)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    for note in &plan.notes {
        eprintln!("note: {note}");
    }
    let progress = Arc::new(Progress::default());
    stop_on_ctrl_c(&progress)?;
    let (results, out) = execute(&plan, options, &progress, &estimate)?;
    let results_file = out.join("results.json");
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results).context("print results")?);
        return Ok(exit_code(&results, &progress));
    }
    say(&plan, options, &results);
    println!("Data files: {}", plan.directory.display());
    println!("Results:    {}", results_file.display());
    if !(options.verbose || options.validate_mode) {
        println!("More:       --verbose for single calls and ranks, hyperslab report {} for pictures", out.display());
    }
    Ok(exit_code(&results, &progress))
}

/// The tables and words.
fn say(plan: &Plan, options: &BenchOptions, results: &Results) {
    println!("\n{}", explain::verdict_line(results));
    println!("{}", explain::table(results));
    let detail = options.verbose || options.validate_mode;
    if detail {
        for more in [explain::side_by_side(results), explain::calls(results)].into_iter().flatten() {
            println!("{more}");
        }
    }
    explain::words(results)
        .lines()
        .for_each(|line| print!("{}", wrapped(line, terminal::width().unwrap_or(usize::MAX), 2)));
    println!();
    if options.validate_mode {
        println!("{}", explain::modes(plan, results));
    }
}

fn exit_code(results: &Results, progress: &Progress) -> ExitCode {
    let any = |status: &[Status]| results.cases.iter().any(|case| status.contains(&case.status));
    if progress.stop_requested() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else if any(&[Status::Failed, Status::Interrupted]) {
        ExitCode::from(EXIT_FAILED)
    } else if any(&[Status::Skipped, Status::Planned]) {
        ExitCode::from(EXIT_SKIPPED)
    } else {
        ExitCode::SUCCESS
    }
}
