//! One workload on one stack, repeated.

use crate::execute::{RunContext, run_rank};
use crate::measure::RankMeasurement;
use crate::page_cache;
use crate::progress::Progress;
use crate::read_back::read_back;
use crate::results::{Repetition, Verified};
use hyperslab_comm::Threads;
use hyperslab_core::workload::Workload;
use hyperslab_core::{Communicator, Error, ErrorKind, Format, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What of the files is in memory before, and what must be on the device after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Files to read are brought into the page cache first; writes end in the page cache.
    Warm,
    /// Files to read are dropped from the page cache first; flushes wait for the device.
    Cold,
}

impl Cache {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

/// What to run and how.
#[derive(Debug)]
pub struct Case<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// On what.
    pub format: Arc<dyn Format>,
    /// Where the files lie.
    pub directory: &'a Path,
    /// How often.
    pub repeat: usize,
    /// Cold or warm.
    pub cache: Cache,
    /// Compare all data.
    pub verify: bool,
    /// Files that are there already and would be created may be replaced.
    pub overwrite: bool,
    /// Write every call's time to `<prefix>-repetition-<n>-rank-<r>.csv`.
    pub samples: Option<PathBuf>,
    /// Counters, and the wish to stop.
    pub progress: &'a Progress,
}

/// What came of a case. Repetitions before a failure are kept.
#[derive(Debug)]
pub struct Outcome {
    /// Completed repetitions.
    pub repetitions: Vec<Repetition>,
    /// Whether the data were checked.
    pub verified: Verified,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What ended it early.
    pub failure: Option<Error>,
}

/// Runs the case on thread ranks. A failed or interrupted write leaves no partial file behind.
pub fn run_case(case: &Case<'_>) -> Outcome {
    let mut outcome = Outcome {
        repetitions: Vec::new(),
        verified: match (case.verify, case.format.caps().stores) {
            (false, _) => Verified::NotAsked,
            (true, true) => Verified::Yes,
            (true, false) => Verified::Impossible,
        },
        warnings: Vec::new(),
        failure: None,
    };
    let caps = case.format.caps();
    if caps.serialises_ranks && case.workload.header.ranks > 1 {
        outcome.warnings.push(format!(
            "{} runs one call at a time: thread ranks take turns inside the library",
            case.format.name()
        ));
    }
    for number in 1..=case.repeat {
        match run_once(case, number, &mut outcome.warnings) {
            Ok(repetition) => outcome.repetitions.push(repetition),
            Err(error) => {
                if outcome.verified == Verified::Yes {
                    outcome.verified = Verified::No;
                }
                outcome.failure = Some(error);
                break;
            }
        }
    }
    outcome
}

fn run_once(case: &Case<'_>, number: usize, warnings: &mut Vec<String>) -> Result<Repetition> {
    let overwrite = case.overwrite || number > 1;
    for path in paths(case, true) {
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
    let stores = case.format.caps().stores;
    let context = RunContext {
        workload: case.workload,
        format: &*case.format,
        directory: case.directory,
        check_reads: case.verify && stores,
        durable: case.cache == Cache::Cold,
        samples: case.samples.as_ref().map(|prefix| {
            let mut name = prefix.as_os_str().to_owned();
            name.push(format!("-repetition-{number}"));
            PathBuf::from(name)
        }),
        progress: case.progress,
    };
    let body = |comm: Arc<dyn Communicator>| -> Result<RankMeasurement> {
        let measured = run_rank(&context, &comm)?;
        if case.verify && stores && measured_writes(&*comm, &measured)? {
            read_back(&context, &comm).map_err(|error| error.rank(comm.rank()))?;
        }
        Ok(measured)
    };
    match Threads::run(case.workload.header.ranks, body) {
        Ok(ranks) => Ok(Repetition { resident_before, ranks }),
        Err(error) => {
            remove_partial(case, &error, warnings);
            Err(error)
        }
    }
}

/// Whether any rank wrote; collective, so that all ranks read back or none.
fn measured_writes(comm: &dyn Communicator, measured: &RankMeasurement) -> Result<bool> {
    let mut written = [measured.bytes_written];
    comm.all_reduce(&mut written, hyperslab_core::Reduce::Max)?;
    Ok(written[0] > 0)
}

/// The containers of all ranks that the workload creates, or that must be there.
fn paths(case: &Case<'_>, created: bool) -> Vec<PathBuf> {
    let header = &case.workload.header;
    let ranks_of = |per_rank: bool| if per_rank { header.ranks } else { 1 };
    header
        .files
        .iter()
        .filter(|file| file.created == created)
        .flat_map(|file| (0..ranks_of(file.per_rank)).map(|rank| case.directory.join(file.path_of(rank))))
        .collect()
}

fn set_cache(case: &Case<'_>, warnings: &mut Vec<String>) -> Result<Option<f64>> {
    if !case.format.caps().persistent {
        return Ok(None);
    }
    let mut files = Vec::new();
    for path in paths(case, false) {
        if !case.format.exists(&path)? {
            return Err(Error::new(ErrorKind::NotFound, "open", "there is no such file to read")
                .target(path.display())
                .hint("put a write benchmark of the same file, format and ranks before the read"));
        }
        files.extend(case.format.files(&path)?);
    }
    if files.is_empty() {
        return Ok(None);
    }
    let resident = match case.cache {
        Cache::Cold => page_cache::drop_pages(&files)?,
        Cache::Warm => {
            page_cache::warm_pages(&files)?;
            page_cache::resident(&files)?
        }
    };
    if case.cache == Cache::Cold && resident > 0.01 {
        warnings.push(format!(
            "not cold: {:.0} % of the files stayed in memory (a memory file system, or another program uses them)",
            resident * 100.0
        ));
    }
    if case.cache == Cache::Warm && resident < 0.99 {
        warnings.push(format!("only partly warm: {:.0} % of the files are in memory", resident * 100.0));
    }
    Ok(Some(resident))
}

/// Removes what a failed run has written, unless it found the file there.
fn remove_partial(case: &Case<'_>, error: &Error, warnings: &mut Vec<String>) {
    if error.kind() == ErrorKind::AlreadyExists || error.kind() == ErrorKind::Mismatch {
        return; // Not ours, or evidence.
    }
    for path in paths(case, true) {
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
