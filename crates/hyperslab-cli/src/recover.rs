//! `hyperslab recover`: what a crashed job left in logs is brought into its files.

#[macro_use]
mod telling;

mod discard;
mod escape;
mod inspect;
mod messages;
mod places;
mod rollback;

use crate::cli::{EXIT_FAILED, EXIT_SKIPPED};
use anyhow::{Result, bail};
use clap::Args;
use escape::{escaped, lines};
use hyperslab_core::{Error, ErrorKind, Stack};
use hyperslab_journal::recover::{
    self, Compared, Job, JournalStatus, JournalStorage, OrphanedJournal, Recovery, Replayed,
};
use hyperslab_run::orphan_format;
use places::RecoveryPlace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab recover /local/logs --list           what is there
  hyperslab recover /local/logs --dry-run
      whether it can be brought into the files
  hyperslab recover /local/logs                  do it, and remove the logs
  hyperslab recover result.h5
      this file: back to its last flush, and its logs
  hyperslab recover result.h5 --check
      and read every chunk of it afterwards
  hyperslab recover /local/logs --to copy.h5
      into another file; the logs stay
  hyperslab recover result.h5 --discard          throw its logs away

A file whose writer was killed in mode safe or log goes back to its last flush
first. Layers that hold writes back keep them in logs until they are in the
file. When a job ends before that, its logs stay. Recovering applies them in the
order of the writes, makes the file durable, and then removes them; doing it
twice, or again after a crash, changes nothing more. Logs of jobs that run are
left alone. Logs of another file than the one that is there now, or of one that
somebody else has changed since, are refused with the reason. Of a damaged log,
everything before the damage is recovered; its files are kept with another name.

Exit codes: 0 everything is recovered, or there was nothing to do; 1 something
is lost or could not be recovered; 2 bad input, nothing was done; 3 all but logs
that may be in use.";

/// Options of `recover`.
#[derive(Debug, Args)]
pub struct RecoverOptions {
    /// Directories with logs or with files whose writers were killed, or such files
    #[arg(required = true, value_name = "DIRECTORY|FILE")]
    paths: Vec<PathBuf>,
    /// Only say what is there
    #[arg(long, conflicts_with_all = ["dry_run", "to"])]
    list: bool,
    /// Check everything and say what would be done, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write to this file instead, which is created if it is not there, and keep the logs
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    to: Option<PathBuf>,
    /// Roll back and apply logs although the file is not the one they were written for, or was changed by others since
    #[arg(long, conflicts_with_all = ["list", "to"])]
    force: bool,
    /// Throw the logs away instead; what is only in them is lost
    #[arg(long, conflicts_with_all = ["list", "dry_run", "to", "force"])]
    discard: bool,
    /// Read every chunk of every array of the files afterwards
    #[arg(long, conflicts_with_all = ["list", "dry_run", "to", "discard"])]
    check: bool,
    /// Look whether a file of this stack can be read
    #[arg(long, hide = true, value_name = "STACK")]
    inspect: Option<String>,
    /// Also take logs that were written on other machines; only if their jobs have ended
    #[arg(long)]
    other_hosts: bool,
    /// Print one object of JSON at the end: the logs that were found, what was said, how it ended
    #[arg(long)]
    json: bool,
}

/// What became of the logs of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    LeftAlone,
    Failed,
}

/// Files of logs that were looked at.
#[derive(Debug, Default)]
struct Seen {
    /// Their logs stay.
    unrecovered: BTreeSet<PathBuf>,
    /// They were opened, and it was said what was found.
    read: BTreeSet<PathBuf>,
}

/// Recovers what lies in directories, or what waits for files.
pub fn run(options: &RecoverOptions) -> Result<ExitCode> {
    if let Some(stack) = &options.inspect {
        let path = options.paths.first().map_or(Path::new(""), PathBuf::as_path);
        return match inspect::inspect(stack, path, options.check) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => {
                eprintln!("hyperslab: {error:#}");
                Ok(ExitCode::from(EXIT_FAILED))
            }
        };
    }
    let places = places::places(&options.paths)?;
    if options.json {
        telling::keep();
    }
    let mut ends = Vec::new();
    let mut seen = Seen::default();
    for place in &places {
        ends.extend(one_directory(options, place, &mut seen)?);
    }
    // Files that have no logs, or whose logs held nothing.
    if options.to.is_none() && !options.discard {
        let files = rollback::files(&options.paths)?.into_iter().filter(|file| !seen.unrecovered.contains(file));
        let look = options.list || options.dry_run;
        let one = |file: PathBuf| match look {
            true => rollback::say_pending(&file),
            false => rollback::one(&file, options, seen.read.contains(&file)),
        };
        ends.extend(files.map(one));
    }
    for path in options.paths.iter().filter(|_| options.discard) {
        for folder in hyperslab_journal::marker::unmark(path) {
            let (path, folder) = (escaped(path.display()), escaped(folder.display()));
            tell!("{path}: forgotten that logs may wait in {folder}, which cannot be looked at from here");
        }
    }
    if options.to.is_none() && !options.discard && ends.iter().all(|end| *end == End::Done) {
        let look = options.list || options.dry_run;
        let waits = options.paths.iter().filter(|path| places::say_what_waits(path)).count();
        ends.extend((0..waits).filter(|_| !look).map(|_| End::Failed));
    }
    let (outcome, code) = match () {
        () if ends.contains(&End::Failed) => ("failed", ExitCode::from(EXIT_FAILED)),
        () if ends.contains(&End::LeftAlone) => ("left alone", ExitCode::from(EXIT_SKIPPED)),
        () => ("done", ExitCode::SUCCESS),
    };
    telling::finish(outcome);
    Ok(code)
}

/// Recovers what the logs of a directory hold. Their files are added to `seen`.
fn one_directory(options: &RecoverOptions, place: &RecoveryPlace, seen: &mut Seen) -> Result<Vec<End>> {
    let files = recover::directory(&place.directory)?;
    let left: Vec<OrphanedJournal> =
        recover::survey(&files, options.other_hosts)?.into_iter().filter(|left| place.takes(left)).collect();
    if left.is_empty() {
        if place.has_rollbacks() || place.has_marks() {
            return Ok(Vec::new());
        }
        tell!("There are no logs in {}{}.", escaped(place.directory.display()), place.of_files());
        return Ok(Vec::new());
    }
    if !telling::logs(|| messages::documents(&left)) {
        tell!("{}", messages::table(&left));
    }
    if options.list {
        return Ok(Vec::new());
    }
    let (jobs, others) = recover::jobs(left);
    if options.discard {
        return Ok(discard::discard(&files, jobs, &others));
    }
    if options.to.is_some() {
        check_one_container(&jobs)?;
    }
    let mut ends: Vec<End> = others.iter().map(judge).collect();
    if options.to.is_none() && !options.dry_run {
        others.iter().try_for_each(|journal| journal.remove_unfinished(&files))?;
    }
    ends.extend(each_job(options, &files, jobs, seen));
    Ok(ends)
}

/// A log without a head that could be read.
fn judge(journal: &OrphanedJournal) -> End {
    match &journal.state {
        JournalStatus::InUse => End::LeftAlone,
        JournalStatus::Refused(error) => {
            complain!("hyperslab: {}", lines(error));
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

fn each_job(options: &RecoverOptions, files: &Arc<dyn JournalStorage>, jobs: Vec<Job>, seen: &mut Seen) -> Vec<End> {
    let mend = |path: &Path| rollback::mend_for_logs(path, options.force);
    let recovery = Recovery { files, format: &orphan_format, alone: hyperslab_run::single_rank(), mend: &mend };
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
                complain!("hyperslab: {}", lines(error));
                ends.push(End::Failed);
                continue;
            }
        };
        let end = one_job(options, &recovery, &mut job, &blocked);
        match end {
            End::Done => seen.read.insert(container),
            _ => blocked.insert(container),
        };
        ends.push(end);
    }
    seen.unrecovered.extend(blocked);
    ends
}

/// Whether the logs may be applied to the file that is at their path now. Says why not.
fn identified(options: &RecoverOptions, job: &Job) -> bool {
    let files = |path: &std::path::Path| {
        let format =
            job.header().and_then(|header| header.stack.parse()).and_then(|stack: Stack| orphan_format(&stack))?;
        format.files(path)
    };
    match job.check_identity(&files) {
        Ok(()) => true,
        Err(error) if options.force && error.kind() == ErrorKind::Mismatch => {
            complain!("hyperslab: {}", lines(error));
            complain!("  applied all the same (--force)");
            true
        }
        Err(error) => {
            complain!("hyperslab: {}", lines(error));
            false
        }
    }
}

fn one_job(options: &RecoverOptions, recovery: &Recovery<'_>, job: &mut Job, blocked: &BTreeSet<PathBuf>) -> End {
    let Ok(header) = job.header() else { return End::Failed };
    let container = escaped(header.container.display());
    if job.is_in_use() {
        tell!("{container}: a process still uses its logs; left alone");
        return End::LeftAlone;
    }
    if job.is_elsewhere() {
        let host = escaped(&header.process.host);
        tell!("{container}: written on {host}, where the job may still run; left alone");
        tell!("  try: run this on {host}, or add --other-hosts if the job has ended");
        return End::LeftAlone;
    }
    let mut refused = job.journals.iter().filter_map(|journal| match &journal.state {
        JournalStatus::Refused(error) => Some(error),
        _ => None,
    });
    if let Some(error) = refused.next() {
        complain!("hyperslab: {}", lines(error));
        return End::Failed;
    }
    if blocked.contains(&header.container) && options.to.is_none() && job.size().0 > 0 {
        tell!("{container}: other logs of this file come first; left alone");
        return End::LeftAlone;
    }
    if options.to.is_none() && !identified(options, job) {
        return End::Failed;
    }
    let (writes, bytes) = job.size();
    let done = match (&options.to, options.dry_run) {
        (_, true) => recovery.check(job).map(|()| {
            tell!("{container}: {} would be written", messages::amount(writes, bytes));
            Some(Replayed { damages: messages::damages(job), ..Replayed::default() })
        }),
        (Some(_), _) if writes == 0 => return End::Done,
        (Some(path), _) => recovery
            .replay_to(job, path)
            .inspect(|replayed| {
                let amount = messages::amount(replayed.writes, replayed.bytes);
                tell!("{container}: {amount} written to {}; the logs are kept", escaped(path.display()));
            })
            .map(Some),
        (None, _) => replay(options, recovery, job, &container),
    };
    match done {
        Ok(None) => End::Failed,
        Ok(Some(replayed)) => match messages::losses(&replayed, options) {
            true => End::Failed,
            false => End::Done,
        },
        Err(error) => {
            complain!("hyperslab: {}", lines(error));
            complain!("  the logs of {container} are kept as they are");
            End::Failed
        }
    }
}

/// Brings the logs of a job into its file, looks whether the file has them and can be opened, and only then says so and removes
/// the logs. `None`: there was nothing to bring, and the file cannot be read.
fn replay(
    options: &RecoverOptions,
    recovery: &Recovery<'_>,
    job: &mut Job,
    container: &str,
) -> hyperslab_core::Result<Option<Replayed>> {
    let replayed = recovery.replay_and_keep(job)?;
    let header = job.header()?;
    let (path, stack) = (header.container.clone(), header.stack.clone());
    let compared = if replayed.writes > 0 { recovery.compare(job)? } else { Compared::default() };
    let seen = if path.exists() { inspect::ask(&stack, &path, options.check) } else { Err("it is gone".into()) };
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) if replayed.writes > 0 => {
            let message = format!("the writes were applied, but the file cannot be read: {why}");
            return Err(Error::new(ErrorKind::Corrupt, "verify", message).target(path.display()));
        }
        Err(why) => {
            recovery.finish(job)?;
            tell!("{container}: the logs held nothing, and are removed");
            complain!("hyperslab: {container}: the file cannot be read: {}", lines(why));
            return Ok(None);
        }
    };
    recovery.finish(job)?;
    let is_kept = job.journals.iter().any(|journal| matches!(journal.state, JournalStatus::SetAside));
    let is_damaged = replayed.damages.iter().any(|(_, damage)| !damage.unfinished);
    match replayed.writes {
        0 if is_damaged => tell!("{container}: nothing could be recovered; {seen}"),
        0 if is_kept => tell!("{container}: nothing new; what was damaged is kept to be looked at; {seen}"),
        0 => tell!("{container}: the logs held nothing that the file lacks, and are removed; {seen}"),
        _ => {
            let compared = match compared.skipped {
                0 => "read back the same".into(),
                skipped => format!("{} of them read back the same", compared.writes - skipped),
            };
            tell!("{container}: {} recovered, {compared}; {seen}", messages::amount(replayed.writes, replayed.bytes));
        }
    }
    Ok(Some(replayed))
}
