//! What a container and its open arrays share on one rank.

use super::array::ArrayState;
use super::clock::Clock;
use super::options::Options;
use super::staging::Staging;
use hyperslab_core::{Communicator, Error, Result, agree};
use std::collections::{BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More files than this waiting for a durable flush, and the whole file system is synced instead.
const MANY: usize = 4096;

#[derive(Debug)]
pub(crate) struct Home {
    pub root: PathBuf,
    pub comm: Arc<dyn Communicator>,
    pub options: Options,
    pub writable: bool,
    pub staging: Arc<Staging>,
    pub clock: Arc<Clock>,
    closed: AtomicBool,
    /// Open arrays by name, each with its number of handles.
    arrays: Mutex<HashMap<String, (Arc<ArrayState>, usize)>>,
    unsynced: Mutex<Unsynced>,
}

/// Files and directories changed since the last durable flush that no open array stands for.
#[derive(Debug, Default)]
struct Unsynced {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Home {
    pub fn new(root: PathBuf, comm: &Arc<dyn Communicator>, options: Options, writable: bool) -> Self {
        // A page is a whole number of blocks, and what the page cache holds is whole pages: see direct transfers.
        let align = if options.direct { rustix::param::page_size().max(4096) } else { 64 };
        Self {
            root,
            comm: comm.clone(),
            options,
            writable,
            staging: Arc::new(Staging::new(options.buffer, align)),
            clock: Arc::default(),
            closed: AtomicBool::new(false),
            arrays: Mutex::default(),
            unsynced: Mutex::default(),
        }
    }

    pub fn check_open(&self, operation: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid(operation, "the container is closed"));
        }
        Ok(())
    }

    pub fn check_writable(&self, operation: &'static str) -> Result<()> {
        self.check_open(operation)?;
        if !self.writable {
            return Err(Error::invalid(operation, "the container is open for reading only"));
        }
        Ok(())
    }

    /// Does `work` on rank 0; all ranks succeed or fail together. Collective.
    pub fn on_root<T: Default>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        agree(&*self.comm, if self.comm.rank() == 0 { work() } else { Ok(T::default()) })
    }

    /// Gives out one more handle of an open array, opening it with `open` if nobody has.
    pub fn share(&self, name: &str, open: impl FnOnce() -> Result<ArrayState>) -> Result<Arc<ArrayState>> {
        let mut arrays = lock(&self.arrays);
        if let Some((state, handles)) = arrays.get_mut(name) {
            *handles += 1;
            return Ok(state.clone());
        }
        let state = Arc::new(open()?);
        arrays.insert(name.into(), (state.clone(), 1));
        Ok(state)
    }

    /// Takes one handle back and releases the array with the last.
    pub fn give_back(&self, name: &str) {
        let mut arrays = lock(&self.arrays);
        let Some((_, handles)) = arrays.get_mut(name) else { return };
        *handles -= 1;
        if *handles == 0
            && let Some((state, _)) = arrays.remove(name)
        {
            self.note_files(state.release());
        }
    }

    /// Remembers files for the next durable flush.
    pub fn note_files(&self, files: impl IntoIterator<Item = PathBuf>) {
        lock(&self.unsynced).files.extend(files);
    }

    /// Remembers a directory with new entries for the next durable flush.
    pub fn note_directory(&self, directory: PathBuf) {
        lock(&self.unsynced).directories.insert(directory);
    }

    /// Makes everything this rank wrote survive loss of power: data, then descriptions, then directories.
    pub fn sync(&self) -> Result<()> {
        let states: Vec<_> = lock(&self.arrays).values().map(|(state, _)| state.clone()).collect();
        for state in states {
            self.note_files(state.sync()?);
        }
        let waiting = std::mem::take(&mut *lock(&self.unsynced));
        let result = if waiting.files.len() + waiting.directories.len() > MANY {
            self.sync_file_system()
        } else {
            waiting.files.iter().chain(&waiting.directories).try_for_each(|path| sync_path(path))
        };
        if result.is_err() {
            let mut unsynced = lock(&self.unsynced);
            unsynced.files.extend(waiting.files);
            unsynced.directories.extend(waiting.directories);
        }
        result
    }

    fn sync_file_system(&self) -> Result<()> {
        let fail = |cause| Error::io("flush", cause).target(self.root.display());
        let root = std::fs::File::open(&self.root).map_err(fail)?;
        rustix::fs::syncfs(root).map_err(|cause| fail(cause.into()))
    }

    /// Releases everything. True the first time.
    pub fn close(&self) -> bool {
        if self.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        for (_, (state, _)) in lock(&self.arrays).drain() {
            state.release();
        }
        true
    }
}

fn sync_path(path: &Path) -> Result<()> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let synced = opened.and_then(|file| file.sync_all());
    match synced {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("flush", cause).target(path.display()))
        }
        _ => Ok(()),
    }
}
