//! One workload on one stack, repeated.

use crate::execute::{RankRun, RunContext, container_paths};
use crate::latency::{CallTimes, Latency};
use crate::launch::{Ranks, ThreadRanks};
use crate::noise;
use crate::notes::Notes;
use crate::page_cache;
use crate::progress::Progress;
use crate::results::{Repetition, Verified};
use crate::snapshot::Snapshots;
use hyperslab_core::workload::{FileDeclaration, Workload};
use hyperslab_core::{CacheState, Error, ErrorKind, Format, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to run and how.
#[derive(Debug)]
pub struct Case<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// On what.
    pub format: Arc<dyn Format>,
    /// What its ranks are.
    pub ranks: &'a dyn Ranks,
    /// Where the files lie.
    pub directory: &'a Path,
    /// How often, measured.
    pub repeat: usize,
    /// How often before that, neither measured nor verified.
    pub warm_up: usize,
    /// Cold or warm.
    pub cache: CacheState,
    /// Compare all data.
    pub verify: bool,
    /// Files that are there already and would be created may be replaced.
    pub overwrite: bool,
    /// Write every call's time to `<prefix>-repetition-<n>-rank-<r>.csv`.
    pub samples: Option<PathBuf>,
    /// Counters, and the wish to stop.
    pub progress: &'a Progress,
}

impl<'a> Case<'a> {
    /// One warm run on thread ranks, nothing verified or replaced.
    pub fn new(workload: &'a Workload, format: Arc<dyn Format>, directory: &'a Path, progress: &'a Progress) -> Self {
        Self {
            workload,
            format,
            ranks: &ThreadRanks,
            directory,
            repeat: 1,
            warm_up: 0,
            cache: CacheState::Warm,
            verify: false,
            overwrite: false,
            samples: None,
            progress,
        }
    }
}

/// What came of a case. Repetitions before a failure are kept.
#[derive(Debug)]
pub struct Outcome {
    /// Completed repetitions.
    pub repetitions: Vec<Repetition>,
    /// The calls of all ranks in all completed repetitions, by kind.
    pub operations: BTreeMap<String, Latency>,
    /// Whether the data were checked.
    pub verified: Verified,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What ended it early.
    pub failure: Option<Error>,
}

/// Runs the case. A failed or interrupted run leaves no partial file behind, and a file that it was
/// changing is put back as it was, provided there was to be more than one run.
pub fn run_case(case: &Case<'_>) -> Outcome {
    let caps = case.format.caps();
    let mut outcome = Outcome {
        repetitions: Vec::new(),
        operations: BTreeMap::new(),
        verified: match (case.verify, caps.data.readable) {
            (false, _) => Verified::NotAsked,
            (true, true) => Verified::Yes,
            (true, false) => Verified::Impossible,
        },
        warnings: Vec::new(),
        failure: None,
    };
    let takes_turns = caps.execution.serialises_ranks && case.ranks.one_process();
    if takes_turns && case.workload.header.ranks > 1 {
        let words = "the library of the format makes one call at a time: thread ranks take turns";
        outcome.warnings.push(words.into());
    }
    let mut calls = CallTimes::default();
    let ended = set_aside(case).and_then(|mut aside| {
        let ended = run_all(case, &mut aside, &mut calls, &mut outcome);
        if ended.is_err() {
            clean_up(case, &mut aside, &mut outcome.warnings);
        }
        if let Err(left) = aside.remove() {
            outcome.warnings.push(format!("a copy of a file could not be removed: {left}"));
        }
        ended
    });
    outcome.operations = calls.summaries();
    outcome.warnings.extend(noise::warnings(&outcome.repetitions, takes_turns));
    if let Err(error) = ended {
        if outcome.verified == Verified::Yes {
            outcome.verified = Verified::No;
        }
        outcome.failure = Some(error);
    }
    outcome.warnings.sort();
    outcome.warnings.dedup();
    outcome
}

/// Copies what the workload changes, when it will run more than once.
fn set_aside(case: &Case<'_>) -> Result<Snapshots> {
    let updated = paths(case, |file| file.update.is_some());
    let caps = case.format.caps();
    if updated.is_empty()
        || case.repeat.saturating_add(case.warm_up) < 2
        || !(caps.data.persistent || caps.data.readable)
    {
        return Ok(Snapshots::default());
    }
    if !caps.data.persistent {
        return Err(Error::unsupported("repeat", "this format keeps no files that could be put back between runs")
            .backend(case.format.name())
            .hint("run it once"));
    }
    inputs(case)?;
    Snapshots::copy(&updated, &|| case.progress.stop_requested())
}

/// The warm-up and the repetitions, up to the first error.
fn run_all(case: &Case<'_>, aside: &mut Snapshots, calls: &mut CallTimes, outcome: &mut Outcome) -> Result<()> {
    let mut notes = Notes::default();
    let done = run_each(case, aside, calls, outcome, &mut notes);
    outcome.warnings.extend(notes.into_words());
    done
}

fn run_each(
    case: &Case<'_>,
    aside: &mut Snapshots,
    calls: &mut CallTimes,
    outcome: &mut Outcome,
    notes: &mut Notes,
) -> Result<()> {
    for run in 0..case.repeat.saturating_add(case.warm_up) {
        if run > 0 {
            aside.put_back()?;
        }
        let (resident_before, ranks) = run_once(case, run, &mut outcome.warnings)?;
        if run < case.warm_up {
            continue;
        }
        for rank in &ranks {
            calls.add(&rank.calls)?;
        }
        if ranks.iter().any(|rank| rank.had_same_data) {
            outcome.warnings.push(
                "the file held the same data before: a lost overwrite would not be noticed (give the write and the \
                 overwrite different seeds)"
                    .into(),
            );
        }
        if ranks.iter().any(|rank| rank.read_unchecked) {
            outcome.verified = Verified::Impossible;
            outcome.warnings.push(
                "parts of the file were overwritten, other parts written than are read, or its data made by others, so no \
                 rule tells its contents: what was read was not compared"
                    .into(),
            );
        }
        notes.add(ranks.iter().map(|rank| rank.remarks.as_slice()));
        let ranks = ranks.into_iter().map(|rank| rank.measured).collect();
        outcome.repetitions.push(Repetition { resident_before, ranks });
    }
    Ok(())
}

/// Run number `run`, from 0 and counting the warm-up. Returns what part of the files was in memory before.
fn run_once(case: &Case<'_>, run: usize, warnings: &mut Vec<String>) -> Result<(Option<f64>, Vec<RankRun>)> {
    let overwrite = case.overwrite || run > 0;
    for path in paths(case, |file| file.created) {
        if case.format.exists(&path)? {
            if !overwrite {
                return Err(Error::new(ErrorKind::AlreadyExists, "create", "it exists and would be overwritten")
                    .target(path.display())
                    .hint("remove it, choose another directory, or pass --overwrite"));
            }
            case.format.remove(&path)?;
        }
    }
    let resident_before = set_cache(case, warnings)?;
    case.progress.restart();
    let number = (run + 1).checked_sub(case.warm_up).filter(|number| *number > 0);
    let verify = case.verify && case.format.caps().data.readable && number.is_some();
    let context = RunContext {
        workload: case.workload,
        format: &*case.format,
        directory: case.directory,
        verify,
        durable: case.cache == CacheState::Cold,
        samples: case.samples.as_ref().zip(number).map(|(prefix, number)| {
            let mut name = prefix.as_os_str().to_owned();
            name.push(format!("-repetition-{number}"));
            PathBuf::from(name)
        }),
        progress: case.progress,
    };
    let ranks = case.ranks.run(&context).inspect_err(|error| remove_partial(case, error, warnings))?;
    Ok((resident_before, ranks))
}

/// The containers of all ranks whose declaration fits.
fn paths(case: &Case<'_>, wanted: impl Fn(&FileDeclaration) -> bool) -> Vec<PathBuf> {
    container_paths(case.workload, case.directory, wanted)
}

/// The containers that must be there before, and are.
fn inputs(case: &Case<'_>) -> Result<Vec<PathBuf>> {
    let paths = paths(case, |file| !file.created);
    for path in &paths {
        if !case.format.exists(path)? {
            return Err(Error::new(ErrorKind::NotFound, "open", "there is no such file to read or change")
                .target(path.display())
                .hint("put a write benchmark of the same file, format and ranks before this one"));
        }
    }
    Ok(paths)
}

fn set_cache(case: &Case<'_>, warnings: &mut Vec<String>) -> Result<Option<f64>> {
    if !case.format.caps().data.persistent {
        return Ok(None);
    }
    let mut files = Vec::new();
    for path in inputs(case)? {
        files.extend(case.format.files(&path)?);
    }
    if files.is_empty() {
        return Ok(None);
    }
    let resident = match case.cache {
        CacheState::Cold => page_cache::drop_pages(&files)?,
        CacheState::Warm => {
            page_cache::warm_pages(&files)?;
            page_cache::resident(&files)?
        }
    };
    if case.cache == CacheState::Cold && resident > 0.01 {
        warnings.push(format!(
            "not cold: {:.0} % of the files stayed in memory (a memory file system, or another program uses them)",
            resident * 100.0
        ));
    }
    if case.cache == CacheState::Warm && resident < 0.99 {
        warnings.push(format!("only partly warm: {:.0} % of the files are in memory", resident * 100.0));
    }
    Ok(Some(resident))
}

/// Puts files back that a failed run was changing, or says that they are no longer what they were.
fn clean_up(case: &Case<'_>, aside: &mut Snapshots, warnings: &mut Vec<String>) {
    if !aside.is_empty() {
        if let Err(error) = aside.put_back() {
            warnings.push(format!("a changed file could not be put back: {error}"));
        }
        return;
    }
    for path in paths(case, |file| file.update.is_some()) {
        if case.format.caps().data.persistent && case.format.exists(&path).unwrap_or(false) {
            warnings.push(format!("{} may be changed in part: write it anew before using it", path.display()));
        }
    }
}

/// Removes what a failed run has written, unless it found the file there.
fn remove_partial(case: &Case<'_>, error: &Error, warnings: &mut Vec<String>) {
    if error.kind() == ErrorKind::AlreadyExists || error.kind() == ErrorKind::Mismatch {
        return; // Not ours, or evidence.
    }
    for path in paths(case, |file| file.created) {
        match case.format.exists(&path) {
            Ok(false) => {}
            Ok(true) | Err(_) => {
                if let Err(left) = case.format.remove(&path) {
                    warnings.push(format!("a partial file could not be removed: {left}"));
                }
            }
        }
    }
}
