//! State shared by a container and its open arrays on one rank.

use super::array::ArrayState;
use super::buffer_pool::BufferPool;
use super::data_backend::DataBackend;
use super::io_uring::Ring;
use super::options::{Io, Options};
use super::write_order::WriteClock;
use hyperslab_core::{Communicator, Error, Reduce, Result, agree, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A durable flush of more files than this syncs the whole file system instead.
const MANY: usize = 4096;

#[derive(Debug)]
pub(crate) struct ContainerState {
    pub root: PathBuf,
    pub comm: Arc<dyn Communicator>,
    pub options: Options,
    pub writable: bool,
    pub staging: Arc<BufferPool>,
    /// Why io_uring is unavailable although it was requested.
    pub no_ring: Option<String>,
    pub clock: Arc<WriteClock>,
    /// The format's name, for errors.
    pub backend: &'static str,
    /// Transfers elements instead of this module, if set. Its files are opened and closed collectively.
    pub data_backend: Option<Arc<dyn DataBackend>>,
    closed: AtomicBool,
    /// Open arrays by name, with their number of handles. Sorted, so that all ranks iterate in the same order.
    arrays: Mutex<BTreeMap<String, (Arc<ArrayState>, usize)>>,
    unsynced: Mutex<Unsynced>,
}

/// Files and directories changed since the last durable flush, other than those of open arrays.
#[derive(Debug, Default)]
struct Unsynced {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl ContainerState {
    pub fn new(root: PathBuf, comm: &Arc<dyn Communicator>, options: Options, writable: bool) -> Self {
        // Page alignment is block alignment, and keeps direct transfers from sharing pages with cached ones.
        let align = if options.direct { rustix::param::page_size().max(4096) } else { 64 };
        let wanted = options.io == Io::Uring || (options.io == Io::Auto && options.direct);
        let (ring, no_ring) = match wanted.then(Ring::new) {
            None => (None, None),
            Some(Ok(ring)) => (Some(ring), None),
            Some(Err(cause)) => (None, (options.io == Io::Uring).then(|| cause.to_string())),
        };
        Self {
            root,
            comm: comm.clone(),
            options,
            writable,
            staging: Arc::new(BufferPool::new(options.buffer, align).with_ring(ring)),
            no_ring,
            clock: Arc::default(),
            backend: "posix",
            data_backend: None,
            closed: AtomicBool::new(false),
            arrays: Mutex::default(),
            unsynced: Mutex::default(),
        }
    }

    /// Sets the data backend.
    #[cfg(feature = "mpi")]
    pub fn with_backend(self, backend: &'static str, data_backend: Arc<dyn DataBackend>) -> Self {
        Self { backend, data_backend: Some(data_backend), ..self }
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

    /// Runs `work` on rank 0; all ranks succeed or fail alike. Collective.
    pub fn on_root<T: Default>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        agree(&*self.comm, if self.comm.rank() == 0 { work() } else { Ok(T::default()) })
    }

    /// Adds a handle of an array, calling `open` if it is not open yet.
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

    /// Drops a handle, and releases the array with the last one. If release is collective, it is deferred to
    /// [`ContainerState::close`].
    pub fn release_handle(&self, name: &str) {
        let mut arrays = lock(&self.arrays);
        let Some((_, handles)) = arrays.get_mut(name) else { return };
        *handles -= 1;
        let releases = self.data_backend.is_none() || self.comm.size() == 1;
        if *handles == 0
            && releases
            && let Some((state, _)) = arrays.remove(name)
        {
            // Errors are ignored, as when dropping any handle.
            let _ = state.release().map(|files| self.note_files(files));
        }
    }

    /// Drops a handle, and releases the array if no rank has another one. Collective.
    pub fn release_handle_collective(&self, name: &str) -> Result<()> {
        let handles = lock(&self.arrays).get_mut(name).map(|(_, handles)| {
            *handles -= 1;
            *handles as u64
        });
        let mut most = [match handles {
            Some(handles) => handles,
            None => return Ok(()), // released with the container, on every rank
        }];
        self.comm.all_reduce(&mut most, Reduce::Max)?;
        if most == [0] { self.discard(name) } else { Ok(()) }
    }

    /// Releases an array regardless of its handles. Collective if there is a data backend.
    pub fn discard(&self, name: &str) -> Result<()> {
        let removed = lock(&self.arrays).remove(name);
        removed.map_or(Ok(()), |(state, _)| state.release().map(|files| self.note_files(files)))
    }

    /// Adds files to the next durable flush.
    pub fn note_files(&self, files: impl IntoIterator<Item = PathBuf>) {
        lock(&self.unsynced).files.extend(files);
    }

    /// Adds a directory with new entries to the next durable flush.
    pub fn note_directory(&self, directory: PathBuf) {
        lock(&self.unsynced).directories.insert(directory);
    }

    /// Makes all writes of this rank durable: data, then metadata, then directories.
    pub fn sync(&self) -> Result<()> {
        let states: Vec<_> = lock(&self.arrays).values().map(|(state, _)| state.clone()).collect();
        // All arrays, even after an error: the calls may be collective.
        let mut synced = Ok(());
        for state in states {
            synced = synced.and(state.sync().map(|files| self.note_files(files)));
        }
        synced?;
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

    /// Releases all arrays; `None` if already closed. Collective if there is a data backend.
    pub fn close(&self) -> Option<Result<()>> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        let arrays = std::mem::take(&mut *lock(&self.arrays));
        let mut released = Ok(());
        for (state, _) in arrays.into_values() {
            // All arrays, even after an error.
            released = released.and(state.release().map(drop));
        }
        Some(released)
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
