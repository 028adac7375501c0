//! `hyperslab recover`: what a crashed job left in logs is brought into its files.

mod rollback;
mod words;

use crate::arguments::{EXIT_FAILED, EXIT_SKIPPED};
use anyhow::{Result, bail};
use clap::Args;
use hyperslab_core::{Format, Stack};
use hyperslab_layers::recover::{self, Files, Job, Left, Recovery, Replayed, State};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab recover /local/logs --list           what is there
  hyperslab recover /local/logs --dry-run        whether it can be brought into the files
  hyperslab recover /local/logs                  do it, and remove the logs
  hyperslab recover /local/logs --to copy.h5     into another file; the logs stay
  hyperslab recover data/run.h5                  a file whose writer was killed: back to its last flush

Layers that hold writes back keep them in logs until they are in the file. When a job ends before
that, its logs stay. Recovering applies them in the order of the writes, makes the file
durable, and then removes them; doing it twice, or again after a crash, changes nothing more.
Logs of jobs that run are left alone. Of a damaged log, everything before the damage is recovered;
its files are kept with another name.

Exit codes: 0 everything is recovered, or there was nothing to do; 1 something is lost or could
not be recovered; 2 bad input, nothing was done; 3 all but logs that may be in use.";

/// Options of `recover`.
#[derive(Debug, Args)]
pub struct RecoverOptions {
    /// The directory with the logs or with files whose writers were killed, or one such file
    directory: PathBuf,
    /// Only say what is there
    #[arg(long, conflicts_with_all = ["dry_run", "to"])]
    list: bool,
    /// Check everything and say what would be done, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write to this file instead, which is created if it is not there, and keep the logs
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    to: Option<PathBuf>,
    /// Roll back files that were changed since, and use what is whole of damaged rollback journals
    #[arg(long)]
    force: bool,
    /// Also take logs that were written on other machines; only if their jobs have ended
    #[arg(long)]
    other_hosts: bool,
}

/// What became of the logs of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    LeftAlone,
    Failed,
}

/// Recovers what lies in a directory.
pub fn run(options: &RecoverOptions) -> Result<ExitCode> {
    let look = options.list || options.dry_run;
    let rolled = rollback::files(&options.directory)?;
    let mut ends = rollback::each(&rolled, look, options.force);
    if !options.directory.is_dir() {
        return Ok(exit_code(&ends));
    }
    let files = recover::directory(&options.directory)?;
    let left = recover::survey(&files, options.other_hosts)?;
    if left.is_empty() {
        if rolled.is_empty() {
            println!("There are no logs in {}.", options.directory.display());
        }
        return Ok(exit_code(&ends));
    }
    println!("{}", words::table(&left));
    if options.list {
        return Ok(ExitCode::SUCCESS);
    }
    let (jobs, others) = recover::jobs(left);
    if options.to.is_some() {
        check_one_container(&jobs)?;
    }
    // Files in other directories than their logs.
    let containers: BTreeSet<PathBuf> = jobs
        .iter()
        .filter(|job| !job.is_in_use())
        .filter_map(|job| Some(job.header().ok()?.container.clone()))
        .collect();
    let elsewhere: Vec<PathBuf> = containers.into_iter().filter(|file| !rolled.contains(file)).collect();
    ends.extend(rollback::each(&elsewhere, look, options.force));
    if ends.contains(&End::Failed) {
        eprintln!("hyperslab: no log is replayed before files are rolled back");
        return Ok(exit_code(&ends));
    }
    ends.extend(others.iter().map(judge));
    if options.to.is_none() && !options.dry_run {
        others.iter().try_for_each(|journal| journal.remove_unfinished(&files))?;
    }
    ends.extend(each_job(options, &files, jobs));
    Ok(exit_code(&ends))
}

fn exit_code(ends: &[End]) -> ExitCode {
    match () {
        () if ends.contains(&End::Failed) => ExitCode::from(EXIT_FAILED),
        () if ends.contains(&End::LeftAlone) => ExitCode::from(EXIT_SKIPPED),
        () => ExitCode::SUCCESS,
    }
}

/// A log without a head that could be read.
fn judge(journal: &Left) -> End {
    match &journal.state {
        State::InUse => End::LeftAlone,
        State::Refused(error) => {
            eprintln!("hyperslab: {error}");
            End::Failed
        }
        _ => End::Done,
    }
}

fn check_one_container(jobs: &[Job]) -> Result<()> {
    let usable = jobs.iter().filter(|job| job.size().0 > 0);
    let containers: BTreeSet<_> = usable.filter_map(|job| job.header().ok()).map(|header| &header.container).collect();
    match containers.len() > 1 {
        true => bail!("there are logs of {} files, and --to takes one\n  try: move the others aside", containers.len()),
        false => Ok(()),
    }
}

/// The format of a stack, for containers whose writers are dead.
fn abandoned(stack: &Stack) -> hyperslab_core::Result<Arc<dyn Format>> {
    let mut stack = stack.clone();
    let entry = hyperslab_formats::formats().iter().find(|entry| entry.name == stack.format.name);
    let options = entry.map_or(&[][..], |entry| entry.options);
    let mut set = |name: &str, value: &str| {
        if options.iter().any(|option| option.name == name) {
            stack.format.options.retain(|(set, _)| set != name);
            stack.format.options.push((name.into(), value.into()));
        }
    };
    set("abandoned", "yes");
    // It stores whole chunks without reading what was there, which may be damaged, also at the end of an array.
    set("plane", "on");
    hyperslab_run::resolve(&stack)
}

fn each_job(options: &RecoverOptions, files: &Arc<dyn Files>, jobs: Vec<Job>) -> Vec<End> {
    let recovery = Recovery { files, format: &abandoned, alone: hyperslab_run::alone() };
    // Files of which an older or present job has something to write: nothing may be written out of turn.
    let mut blocked: BTreeSet<PathBuf> = BTreeSet::new();
    for job in jobs.iter().filter(|job| job.is_in_use()) {
        blocked.extend(job.journals.iter().filter_map(|journal| Some(journal.header.as_ref()?.container.clone())));
    }
    let mut ends = Vec::new();
    for mut job in jobs {
        let container = match job.header() {
            Ok(header) => header.container.clone(),
            Err(error) => {
                eprintln!("hyperslab: {error}");
                ends.push(End::Failed);
                continue;
            }
        };
        let end = one_job(options, &recovery, &mut job, &blocked);
        if end != End::Done {
            blocked.insert(container);
        }
        ends.push(end);
    }
    ends
}

fn one_job(options: &RecoverOptions, recovery: &Recovery<'_>, job: &mut Job, blocked: &BTreeSet<PathBuf>) -> End {
    let Ok(header) = job.header() else { return End::Failed };
    let container = header.container.display().to_string();
    if job.is_in_use() {
        println!("{container}: a process still uses its logs; left alone");
        return End::LeftAlone;
    }
    if job.is_elsewhere() {
        let host = &header.process.host;
        println!("{container}: written on {host}, where the job may still run; left alone");
        println!("  try: run this on {host}, or add --other-hosts if the job has ended");
        return End::LeftAlone;
    }
    let mut refused = job.journals.iter().filter_map(|journal| match &journal.state {
        State::Refused(error) => Some(error),
        _ => None,
    });
    if let Some(error) = refused.next() {
        eprintln!("hyperslab: {error}");
        return End::Failed;
    }
    if blocked.contains(&header.container) && options.to.is_none() && job.size().0 > 0 {
        println!("{container}: other logs of this file come first; left alone");
        return End::LeftAlone;
    }
    let (writes, bytes) = job.size();
    let done = match (&options.to, options.dry_run) {
        (_, true) => recovery.check(job).map(|()| {
            println!("{container}: {} would be written", words::amount(writes, bytes));
            Replayed { damages: words::damages(job), ..Replayed::default() }
        }),
        (Some(_), _) if writes == 0 => return End::Done,
        (Some(path), _) => recovery.replay_to(job, path).inspect(|replayed| {
            let amount = words::amount(replayed.writes, replayed.bytes);
            println!("{container}: {amount} written to {}; the logs are kept", path.display());
        }),
        (None, _) => recovery.replay(job).inspect(|replayed| match replayed.writes {
            0 => println!("{container}: nothing was missing; the logs are removed"),
            _ => println!("{container}: {} recovered", words::amount(replayed.writes, replayed.bytes)),
        }),
    };
    match done {
        Ok(replayed) => match words::losses(&replayed, options) {
            true => End::Failed,
            false => End::Done,
        },
        Err(error) => {
            eprintln!("hyperslab: {error}");
            eprintln!("  the logs of {container} are kept as they are");
            End::Failed
        }
    }
}
