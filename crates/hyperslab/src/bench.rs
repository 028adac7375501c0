//! `hyperslab bench`: a workflow on one or more stacks.

mod explain;
mod plan;
mod screen;

use crate::arguments::{BenchOptions, EXIT_FAILED, EXIT_INTERRUPTED};
use anyhow::{Context, Result, bail};
use hyperslab_core::ErrorKind;
use hyperslab_run::{Case, CaseResult, Machine, Progress, RESULTS_VERSION, Results, Status, Verified, run_case};
use plan::{Plan, PlannedCase};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Plans, checks, runs and reports.
pub fn run(options: &BenchOptions) -> Result<ExitCode> {
    let plan = Plan::new(options)?;
    if options.dry_run {
        println!("{}", plan.describe()?);
        return Ok(ExitCode::SUCCESS);
    }
    for note in &plan.notes {
        eprintln!("note: {note}");
    }
    fs::create_dir_all(&plan.directory).with_context(|| format!("create directory {}", plan.directory.display()))?;
    plan.check_room()?;
    let out = results_directory(options, &plan.directory)?;
    let progress = Arc::new(Progress::default());
    stop_on_ctrl_c(&progress)?;
    let mut results = new_results(&plan);
    let results_file = out.join("results.json");
    results.save(&results_file)?;

    let mut own_files = HashSet::new();
    let mut broken_files: HashSet<String> = HashSet::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let result = &mut results.cases[index];
        if case.reads_only() && broken_files.contains(&case.file) {
            result.status = Status::Skipped;
            result.error = Some("the write of this file failed".into());
        } else {
            let overwrite = options.overwrite || own_files.contains(&case.file);
            run_one(case, &plan, options, overwrite, &out, &progress, result);
            if !case.reads_only() && result.status == Status::Ok {
                own_files.insert(case.file.clone());
            }
        }
        if result.status != Status::Ok && !case.reads_only() {
            broken_files.insert(case.file.clone());
        }
        results.save(&results_file)?;
        if progress.stop_requested() {
            break;
        }
    }
    results.complete = !progress.stop_requested();
    results.save(&results_file)?;

    println!("{}", explain::table(&results));
    println!("{}", explain::words(&results));
    println!("Data files: {}", plan.directory.display());
    println!("Results:    {}", results_file.display());
    Ok(if progress.stop_requested() {
        ExitCode::from(EXIT_INTERRUPTED)
    } else if results.cases.iter().any(|case| case.status != Status::Ok) {
        ExitCode::from(EXIT_FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

fn run_one(
    planned: &PlannedCase,
    plan: &Plan,
    options: &BenchOptions,
    overwrite: bool,
    out: &Path,
    progress: &Arc<Progress>,
    result: &mut CaseResult,
) {
    let screen = screen::Screen::start(planned, plan.cases.len(), options.repeat, progress);
    let outcome = run_case(&Case {
        workload: &planned.workload,
        format: planned.format.clone(),
        directory: &plan.directory,
        repeat: options.repeat as usize,
        warm_up: 0,
        cache: planned.cache,
        verify: options.verify,
        overwrite,
        samples: options.samples.then(|| out.join(format!("samples-case-{}", planned.number))),
        progress,
    });
    result.verified = outcome.verified;
    result.warnings.extend(outcome.warnings);
    result.warnings.sort();
    result.warnings.dedup();
    result.set_repetitions(outcome.repetitions);
    result.operations = outcome.operations;
    result.status = match &outcome.failure {
        None => Status::Ok,
        Some(error) if error.kind() == ErrorKind::Interrupted => Status::Interrupted,
        Some(_) => Status::Failed,
    };
    result.error = outcome.failure.map(|error| error.to_string());
    screen.finish(result);
}

/// Every case as planned, so that the file is whole from the beginning.
fn new_results(plan: &Plan) -> Results {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let planned = |case: &PlannedCase| CaseResult {
        number: case.number,
        benchmark: case.kind.name().into(),
        file: case.file.clone(),
        workload: case.workload.header.about.clone(),
        stack: case.stack.clone(),
        launcher: "threads".into(),
        ranks: case.workload.header.ranks,
        cache: case.cache,
        status: Status::Planned,
        error: None,
        verified: Verified::NotAsked,
        warnings: case.notes.clone(),
        bytes: case.bytes,
        observed: Default::default(),
        observed_rate: Default::default(),
        raw_rate: Default::default(),
        operations: Default::default(),
        fastest_rank: None,
        slowest_rank: None,
        repetitions: Vec::new(),
    };
    Results {
        version: RESULTS_VERSION,
        program: format!("hyperslab {}", env!("CARGO_PKG_VERSION")),
        command: std::env::args().collect(),
        started: now.as_secs_f64(),
        complete: false,
        machine: Machine::of(&plan.directory),
        cases: plan.cases.iter().map(planned).collect(),
    }
}

/// Where results go: the directory asked for, or the first free `results-N` beside the data.
fn results_directory(options: &BenchOptions, data: &Path) -> Result<PathBuf> {
    let Some(out) = &options.out else {
        for n in 1..100_000 {
            let path = data.join(format!("results-{n}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| format!("create directory {}", path.display())),
            }
        }
        bail!("{} holds too many results; pass --out", data.display());
    };
    if out.join("results.json").exists() && !options.overwrite {
        bail!("{} holds results already; choose another --out, or pass --overwrite", out.display());
    }
    fs::create_dir_all(out).with_context(|| format!("create directory {}", out.display()))?;
    Ok(out.clone())
}

/// The first Ctrl-C ends the run at the next step, the second at once.
fn stop_on_ctrl_c(progress: &Arc<Progress>) -> Result<()> {
    let progress = progress.clone();
    ctrlc::set_handler(move || {
        if progress.stop_requested() {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
        eprintln!("\nstopping; once more to stop at once");
        progress.request_stop();
    })
    .context("listen for Ctrl-C")
}
