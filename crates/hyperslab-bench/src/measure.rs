//! Running what was planned: every case with its repetitions, into `results.json`.

use crate::case_template::{CaseReport, Effect, KeepFile};
use crate::plan::{Plan, PlannedCase, Work};
use crate::schedule::{Estimate, Schedule};
use crate::{BenchOptions, prepare, progress_bar, provenance, run_directory};
use anyhow::{Context, Result, bail};
use hyperslab_core::ErrorKind;
use hyperslab_run::{Case, CaseResult, Machine, Progress, RESULTS_VERSION, Results, Status, Verified, run_case};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Plans and runs without a word of the results; for those who judge them.
pub fn measure(options: &BenchOptions, progress: &Arc<Progress>) -> Result<Results> {
    let plan = Plan::new(options, None)?;
    Ok(execute(&plan, options, progress, &|plan| vec![None; plan.cases.len()])?.0)
}

/// Runs all cases. Returns the results and the folder where they are kept. `estimate` is asked what the cases of a sweep take.
pub fn execute(
    plan: &Plan,
    options: &BenchOptions,
    progress: &Arc<Progress>,
    estimate: &Estimate,
) -> Result<(Results, PathBuf)> {
    fs::create_dir_all(&plan.directory).with_context(|| format!("create directory {}", plan.directory.display()))?;
    plan.check_room()?;
    let schedule = Schedule::of(plan, options, estimate);
    if plan.points() > 1 {
        eprintln!("{}", schedule.describe(plan)?);
    }
    if let Some(striping) = &plan.striping {
        eprintln!("note: {}", striping.apply(&plan.directory));
    }
    let out = results_directory(options, &plan.directory)?;
    let mut results = new_results(plan, options);
    let results_file = out.join("results.json");
    results.save(&results_file)?;

    let run = Run { plan, options, out: &out, progress };
    let mut files = Files::default();
    let order = schedule.order(plan);
    let mut clock = schedule.start();
    for index in order {
        let case = &plan.cases[index];
        if !clock.has_time_for(plan, index, &results) {
            continue;
        }
        let result = &mut results.cases[index];
        run.take(case, &mut files, result);
        if result.status == Status::Ok
            && let Err(error) = run.report(case, &results.cases[..=index])
        {
            let result = &mut results.cases[index];
            result.status = Status::Failed;
            result.error = Some(format!("it ran, but its reports could not be written: {error:#}"));
        }
        results.cases[index].load = provenance::load_now();
        let ended_badly = results.cases[index].status != Status::Ok;
        results.save(&results_file)?;
        if progress.stop_requested() || (ended_badly && options.abort_on_failure) {
            break;
        }
    }
    if !progress.stop_requested()
        && let Some(left_out) = clock.left_out(plan)
    {
        eprintln!("note: {left_out}");
        results.cases.retain(|case| case.status != Status::Planned);
    }
    results.provenance.end();
    results.complete = results.cases.iter().all(|case| case.status != Status::Planned) && !progress.stop_requested();
    results.save(&results_file)?;
    Ok((results, out))
}

/// What became of the files of a run.
#[derive(Default)]
struct Files {
    /// Those that it made.
    own: HashSet<String>,
    /// Those whose making or changing failed or was skipped.
    broken: HashSet<String>,
}

/// The names of all files that a case makes.
fn created(case: &PlannedCase) -> Vec<String> {
    let made = |work: &Work| {
        let files = work.workload.header.files.iter().filter(|file| file.created);
        files.map(|file| file.name.clone()).collect()
    };
    case.work.as_ref().map(made).unwrap_or_default()
}

/// What all cases of a run have in common.
struct Run<'a> {
    plan: &'a Plan,
    options: &'a BenchOptions,
    out: &'a Path,
    progress: &'a Arc<Progress>,
}

impl Run<'_> {
    fn take(&self, case: &PlannedCase, files: &mut Files, result: &mut CaseResult) {
        let skip = match &case.work {
            Err(reason) => Some(reason.clone()),
            Ok(_) if case.effect != Effect::Creates && files.broken.contains(&case.file) => {
                Some("an earlier benchmark of this file failed or was skipped".into())
            }
            Ok(_) => None,
        };
        match (&case.work, skip) {
            (Ok(work), None) => self.measure(case, work, files, result),
            (_, reason) => {
                result.status = Status::Skipped;
                result.error = reason;
                let why = result.error.as_deref().unwrap_or_default();
                eprintln!(
                    "[{}/{}] {} on {}: SKIPPED, {why}",
                    case.number,
                    self.plan.cases.len(),
                    case.benchmark,
                    case.stack
                );
            }
        }
        match (result.status == Status::Ok, case.effect) {
            (true, Effect::Creates) => {
                files.own.insert(case.file.clone());
                files.own.extend(created(case));
                files.broken.remove(&case.file);
            }
            (true, _) | (false, Effect::Reads) => {}
            (false, _) => {
                files.broken.insert(case.file.clone());
            }
        }
    }

    fn measure(&self, case: &PlannedCase, work: &Work, files: &Files, result: &mut CaseResult) {
        let screen = progress_bar::Screen::start(case, self.plan.cases.len(), self.progress);
        let ranks = case.launch.ranks(&case.stack, self.out, case.number);
        let overwrite = self.options.overwrite || files.own.contains(&case.file);
        let usual = Case::new(&work.workload, work.format.clone(), &self.plan.directory, self.progress);
        let usual = Case { ranks: &*ranks, overwrite, ..usual };
        let prepared = match prepare::prepare(work, &usual, |name| files.own.contains(name)) {
            Ok(prepared) => prepared,
            Err(error) => {
                let interrupted = error.kind() == ErrorKind::Interrupted;
                result.status = if interrupted { Status::Interrupted } else { Status::Failed };
                result.error = Some(error.to_string());
                return screen.finish(result);
            }
        };
        let outcome = run_case(&Case {
            workload: &prepared.workload,
            repeat: case.repeat as usize,
            warm_up: case.warm_up as usize,
            cache: case.cache,
            verify: case.verify,
            samples: self.options.samples.then(|| self.out.join(format!("samples-case-{}", case.number))),
            ..usual
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
        if result.status == Status::Ok && case.effect != Effect::Reads && work.format.caps().data.persistent {
            result.stored = Some(self.size_of(case, work));
        }
        result.warnings.extend(prepared.remove(&*work.format));
        screen.finish(result);
    }

    /// Bytes of the files of all ranks; one that is gone counts nothing.
    fn size_of(&self, case: &PlannedCase, work: &Work) -> u64 {
        let header = &work.workload.header;
        let paths = header.files.iter().flat_map(|file| {
            let ranks = if file.per_rank { case.ranks } else { 1 };
            (0..ranks).map(|rank| self.plan.directory.join(file.path_of(rank)))
        });
        let files = paths.flat_map(|path| work.format.files(&path).unwrap_or_default());
        files.filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum()
    }

    /// Writes what h5bench would, for the last of `results`, and removes a file that is not to be kept.
    fn report(&self, case: &PlannedCase, results: &[CaseResult]) -> Result<()> {
        let Ok(work) = &case.work else { return Ok(()) };
        let path = self.plan.directory.join(&case.file);
        if self.options.config.is_some() && !matches!(case.report, CaseReport::None) {
            let directory = run_directory::create(&self.plan.directory)?;
            let size = self.size_of(case, work);
            let block = run_directory::write(&directory, &case.report, results, size)?;
            if self.options.debug {
                eprintln!("run directory {}\n{}", directory.display(), block.unwrap_or_default());
            }
        }
        if let CaseReport::Exerciser(_, KeepFile::No) = &case.report
            && work.format.exists(&path)?
        {
            work.format.remove(&path)?;
        }
        Ok(())
    }
}

/// Every case as planned, so that the file is whole from the beginning.
fn new_results(plan: &Plan, options: &BenchOptions) -> Results {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let planned = |case: &PlannedCase| CaseResult {
        number: case.number,
        benchmark: case.benchmark.clone(),
        file: case.file.clone(),
        workload: case.about.clone(),
        stack: case.stack.clone(),
        launcher: case.launch.name().into(),
        ranks: case.ranks,
        axes: case.axes.clone(),
        cache: case.cache,
        status: Status::Planned,
        error: None,
        verified: Verified::NotAsked,
        warnings: case.notes.clone(),
        bytes: case.bytes,
        observed: Default::default(),
        observed_rate: Default::default(),
        raw_rate: Default::default(),
        stored: None,
        operations: Default::default(),
        fastest_rank: None,
        slowest_rank: None,
        predicted: None,
        load: None,
        repetitions: Vec::new(),
    };
    Results {
        version: RESULTS_VERSION,
        program: format!("hyperslab {}", env!("CARGO_PKG_VERSION")),
        command: std::env::args().collect(),
        started: now.as_secs_f64(),
        complete: false,
        launch: plan.launch.command(),
        machine: Machine::of(&plan.directory),
        provenance: provenance::of(plan, options),
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
