//! A run as a folder that ranks in other processes read, and write their results to.
//!
//! `task.json` and `workload.jsonl` say what to do; the first rank leaves `result.json`, a rank that fails
//! `error-<rank>.json`; `progress` holds what the first rank has done so far. Both sides are the same program.

use super::play;
use crate::execute::{RankRun, RunContext};
use crate::page_cache;
use crate::progress::Progress;
use hyperslab_core::workload::{JsonLines, write_json_lines};
use hyperslab_core::{Communicator, Error, ErrorKind, Result, Stack};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The largest file that is read from the folder.
const MAX_FILE: u64 = 1 << 30;
/// Between two notes of the progress.
const NOTE_EVERY: Duration = Duration::from_millis(100);

/// What all ranks are told.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    stack: Stack,
    directory: PathBuf,
    verify: bool,
    durable: bool,
    samples: Option<PathBuf>,
}

/// Why a rank gave up.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    kind: ErrorKind,
    text: String,
}

/// The folder of one run; removed when dropped.
#[derive(Debug)]
pub(super) struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    /// Writes down the run in a new folder in `parent`, which all ranks see under the same path.
    pub(super) fn create(parent: &Path, context: &RunContext<'_>, stack: &Stack) -> Result<Self> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(|e| failed(path, e));
        let folder = Self { path: new_folder(&absolute(parent)?)? };
        let task = Task {
            stack: stack.clone(),
            directory: absolute(context.directory)?,
            verify: context.verify,
            durable: context.durable,
            samples: context.samples.as_deref().map(absolute).transpose()?,
        };
        put(&folder.path.join("task.json"), &task)?;
        let to = folder.path.join("workload.jsonl");
        let mut file = BufWriter::new(File::create(&to).map_err(|e| failed(&to, e))?);
        write_json_lines(context.workload, &mut file)?;
        file.flush().map_err(|e| failed(&to, e))?;
        Ok(folder)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the ranks brought home, if they came to the end.
    pub(super) fn result(&self) -> Option<Result<Vec<RankRun>>> {
        let path = self.path.join("result.json");
        path.exists().then(|| get(&path))
    }

    /// The failure that explains the others: of the first rank that did not only follow another.
    pub(super) fn failure(&self) -> Option<Error> {
        let mut all: Vec<(bool, usize, Failure)> = fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let rank = name.to_str()?.strip_prefix("error-")?.strip_suffix(".json")?.parse().ok()?;
                let failure: Failure = get(&entry.path()).ok()?;
                Some((failure.kind == ErrorKind::Peer, rank, failure))
            })
            .collect();
        all.sort_by_key(|(peer, rank, _)| (*peer, *rank));
        all.into_iter().next().map(|(_, rank, failure)| Error::relayed(failure.kind, failure.text).rank(rank))
    }

    /// Takes over how far the first rank has come, for all of `ranks`.
    pub(super) fn follow(&self, progress: &Progress, ranks: usize) {
        let told = fs::read_to_string(self.path.join("progress")).unwrap_or_default();
        if let Some((steps, bytes)) = told.trim().split_once(' ')
            && let (Ok(steps), Ok(bytes)) = (steps.parse::<u64>(), bytes.parse::<u64>())
        {
            progress.reached(steps.saturating_mul(ranks as u64), bytes.saturating_mul(ranks as u64));
        }
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // What cannot be removed is small, and its name says what it is.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A folder that nobody else has, not even an earlier process that was killed.
fn new_folder(parent: &Path) -> Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let path = parent.join(format!(".job-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed)));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(&path, e)),
        }
    }
}

/// One rank's part of the job in `folder`. The first rank leaves everyone's results there. Collective.
pub(super) fn play_job(folder: &Path, comm: &Arc<dyn Communicator>) -> Result<()> {
    let task: Task = get(&folder.join("task.json"))?;
    let lines = folder.join("workload.jsonl");
    let workload =
        JsonLines::workload(Box::new(move || Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(&lines)?)))))?;
    let format = crate::open_stack(&task.stack)?;
    let progress = Progress::default();
    let context = RunContext {
        workload: &workload,
        format: &*format,
        directory: &task.directory,
        verify: task.verify,
        durable: task.durable,
        samples: task.samples,
        progress: &progress,
    };
    // Each machine has a page cache of its own.
    if task.durable && format.caps().data.persistent && comm.split_by_node()?.rank() == 0 {
        page_cache::drop_pages(&context.input_files()?)?;
    }
    let mine = if comm.rank() == 0 {
        while_noting(&progress, &folder.join("progress"), || play(&context, comm))?
    } else {
        play(&context, comm)?
    };
    let told = serde_json::to_vec(&mine).map_err(|e| Error::new(ErrorKind::Io, "gather results", e.to_string()))?;
    let all = comm.all_gather(&told)?;
    if comm.rank() > 0 {
        return Ok(());
    }
    let read = |told: &Vec<u8>| serde_json::from_slice(told);
    let all: Vec<RankRun> = all
        .iter()
        .map(read)
        .collect::<serde_json::Result<_>>()
        .map_err(|e| Error::new(ErrorKind::Corrupt, "gather results", e.to_string()))?;
    put(&folder.join("result.json"), &all)
}

/// Leaves word of why this rank gives up.
pub(super) fn leave_word(folder: &Path, rank: usize, error: &Error) {
    let failure = Failure { kind: error.kind(), text: error.copied().rank(rank).to_string() };
    // If even this fails there is still the message on standard error.
    let _ = put(&folder.join(format!("error-{rank}.json")), &failure);
}

/// Does `work` while a thread notes how far it has come.
fn while_noting<T>(progress: &Progress, path: &Path, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let noting = scope.spawn(|| {
            while !over.load(Relaxed) {
                // Only for display.
                let _ = fs::write(path, format!("{} {}", progress.steps(), progress.bytes()));
                std::thread::park_timeout(NOTE_EVERY);
            }
        });
        let done = work();
        over.store(true, Relaxed);
        noting.thread().unpark();
        done
    })
}

fn failed(path: &Path, cause: std::io::Error) -> Error {
    Error::io("hand over run", cause).target(path.display())
}

/// Writes a value so that it is there whole or not at all.
fn put(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(value).map_err(|e| Error::new(ErrorKind::Io, "hand over run", e.to_string()))?;
    let new = path.with_extension("new");
    fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(|e| failed(path, e))
}

fn get<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut text)).map_err(|e| failed(path, e))?;
    serde_json::from_slice(&text)
        .map_err(|e| Error::new(ErrorKind::Corrupt, "hand over run", e.to_string()).target(path.display()))
}
