//! A file that libhdf5 has open, whatever the number of its handles.

use super::callback_scope::CallbackScope;
use super::dataset::Dataset;
use super::early_flush::EarlyFlush;
use super::launched_job::LaunchedJob;
use super::layer_base::{FlushMetadata, Layers, Opening};
use super::object_numbers::{FileStamp, ObjectNumbers};
use super::operation::AnnouncedRead;
use super::parallel_file::ParallelFile;
use crate::driver;
use crate::fork::{self, Generation};
use crate::host::Host;
use crate::host::api::{Herr, Hid};
use crate::object::{DATASET, Object};
use crate::settings::Settings;
use crate::stats::Unwritten;
use crate::trace::TracedFile;
use hyperslab_core::{Durability, Error, ErrorKind, Result, lock};
use hyperslab_rollback::Rollback;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// libhdf5's token of an object within a file.
pub(crate) type ObjectToken = [u8; 16];

/// Limit of closed datasets with buffered writes.
const MOST_CLOSED: usize = 64;
/// Limit of closed datasets that are kept for the next time.
const MOST_RESTING: usize = 8;

/// The program's settings of libhdf5's caches, which the connector disables.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buffers {
    pub(crate) sieve: usize,
    /// Chunk cache: slots, bytes, preemption.
    pub(crate) chunks: (usize, usize, f64),
}

/// State of an open file, shared by its handles.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) host: &'static Host,
    /// libhdf5's file number.
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) settings: Arc<Settings>,
    pub(crate) writable: bool,
    pub(crate) buffers: Option<Buffers>,
    /// How ranks share it, if MPI-IO opened it.
    pub(crate) parallel: Option<ParallelFile>,
    /// A descriptor of its own; `None` if libhdf5 executes all transfers.
    pub(crate) file: Option<Arc<File>>,
    /// Why libhdf5 executes all transfers, if so.
    fallback_reason: Mutex<Option<String>>,
    handles: AtomicUsize,
    pub(crate) datasets: Mutex<HashMap<ObjectToken, Arc<Dataset>>>,
    /// Reads of event sets that were not made yet.
    pub(super) announced_reads: Mutex<Vec<Arc<AnnouncedRead>>>,
    /// The numbers by which layers know its objects.
    pub(crate) objects: ObjectNumbers,
    /// Stamp of a read-only file at the time when data were cached.
    last_stamp: Mutex<Option<FileStamp>>,
    layers: Mutex<Option<Arc<Layers>>>,
    /// Whether there may be unflushed metadata.
    pub(super) metadata_changed: AtomicBool,
    /// How often names may have changed.
    pub(super) renames: AtomicU64,
    /// Whether an unlinked dataset was written to.
    pub(super) has_unlinked_writes: AtomicBool,
    /// Whether writes may be buffered when their calls have returned, so that metadata are flushed early.
    has_background_writes: bool,
    early: EarlyFlush,
    /// Whether nothing was buffered at the last fork.
    clean_at_fork: AtomicBool,
    /// An error to be reported by the next flush or close.
    deferred_error: Mutex<Option<Error>>,
    pub(crate) trace: Option<Arc<TracedFile>>,
    /// The rollback journal of the file driver.
    pub(crate) rollback: Weak<Rollback>,
    /// The process that opened it, which owns its threads.
    generation: Generation,
}

/// What a new state is made of.
pub(crate) struct Parts {
    pub(crate) host: &'static Host,
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) settings: Arc<Settings>,
    pub(crate) writable: bool,
    pub(crate) buffers: Option<Buffers>,
    pub(crate) file: Option<Arc<File>>,
    pub(crate) fallback_reason: Option<String>,
    pub(crate) parallel: Option<ParallelFile>,
    pub(crate) trace: Option<Arc<TracedFile>>,
    pub(crate) rollback: Weak<Rollback>,
}

impl FileState {
    pub(crate) fn new(parts: Parts) -> Result<Arc<Self>> {
        let Parts { host, number, path, settings, writable, buffers, .. } = parts;
        let Parts { file, fallback_reason, parallel, trace, rollback, .. } = parts;
        let modes = settings.modes;
        let has_background_writes =
            writable && fallback_reason.is_none() && !modes.log && (modes.copies() || modes.cache);
        if has_background_writes {
            crate::terminate::watch();
        }
        let state = Arc::new(Self {
            has_background_writes,
            early: EarlyFlush::default(),
            host,
            number,
            path,
            settings,
            writable,
            buffers,
            parallel,
            file,
            fallback_reason: Mutex::new(fallback_reason),
            handles: AtomicUsize::new(1),
            datasets: Mutex::default(),
            announced_reads: Mutex::default(),
            objects: ObjectNumbers::default(),
            last_stamp: Mutex::default(),
            layers: Mutex::default(),
            metadata_changed: AtomicBool::new(true),
            renames: AtomicU64::new(0),
            has_unlinked_writes: AtomicBool::new(false),
            deferred_error: Mutex::default(),
            clean_at_fork: AtomicBool::new(true),
            trace,
            rollback,
            generation: fork::generation(),
        });
        if state.settings.modes.log
            && lock(&host.files).values().filter_map(Weak::upgrade).any(|f| f.path == state.path)
        {
            // A log is known by the name of its file.
            host.say_once(&format!(
                "{}: another file of this name is still open; nothing is logged",
                state.path.display()
            ));
        } else if let (Some(file), None) = (&state.file, state.fallback_reason()) {
            let flush_metadata: Weak<dyn FlushMetadata> = Arc::downgrade(&(state.clone() as Arc<dyn FlushMetadata>));
            let rolls_back = state.rolls_back();
            let member = if parallel.is_some() { LaunchedJob::find().map(|job| job.member(&state.path)) } else { None };
            let open = Opening { writable, is_parallel: parallel.is_some(), member, rolls_back };
            match Layers::open(&state.settings, &state.path, open, file.clone(), flush_metadata) {
                Ok(layers) => *lock(&state.layers) = layers.map(Arc::new),
                // The other ranks have opened it. Without layers, this one writes at once.
                Err(error) if parallel.is_some() => {
                    host.say_once(&format!("{}: writes of this rank do not wait: {error}", state.path.display()));
                }
                Err(error) => return Err(error),
            }
        }
        host.stats.files.fetch_add(1, Ordering::Relaxed);
        host.open_files.fetch_add(1, Ordering::Relaxed);
        Ok(state)
    }

    /// Whether a rollback journal restores the last commit after a kill.
    pub(crate) fn rolls_back(&self) -> bool {
        self.rollback.strong_count() > 0
    }

    /// Whether a parent of this process opened the file: its threads, its log and its descriptor are the parent's.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Whether other ranks of an MPI program may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        self.parallel.is_some() && self.writable
    }

    /// Whether each rank writes its elements by itself in collective writes too.
    pub(crate) fn moves_alone(&self) -> bool {
        let modes = self.settings.modes;
        self.is_shared() && (modes.copies() || modes.log) && (self.file.is_none() || !self.is_library_only())
    }

    /// Why libhdf5 executes all transfers of the file, if so.
    pub(crate) fn fallback_reason(&self) -> Option<String> {
        lock(&self.fallback_reason).clone()
    }

    pub(crate) fn is_library_only(&self) -> bool {
        lock(&self.fallback_reason).is_some()
    }

    /// Has libhdf5 execute all transfers from now on. Requires that nothing is buffered.
    pub(crate) fn leave_to_library(&self, why: &str) {
        lock(&self.fallback_reason).get_or_insert_with(|| why.into());
    }

    /// The layers, if any; none in a forked child, whose parent owns their threads.
    pub(crate) fn layers(&self) -> Result<Option<Arc<Layers>>> {
        let layers = lock(&self.layers).clone();
        match layers {
            Some(_) if !self.is_inherited() => Ok(layers),
            Some(_) if !self.clean_at_fork.load(Ordering::Relaxed) => Err(Error::unsupported(
                "access",
                "the file was opened before a fork, and writes to it wait in the parent",
            )
            .hint("flush before forking, or open it in the process that uses it")),
            Some(_) => Ok(None),
            None => Ok(None),
        }
    }

    /// Whether the first small transfers of datasets may be left to libhdf5 without further ado: nothing of the file is traced or
    /// shared by ranks, and no layer or log must have them.
    pub(crate) fn leaves_small_transfers(&self) -> bool {
        let modes = self.settings.modes;
        self.parallel.is_none() && self.trace.is_none() && !modes.log && lock(&self.layers).is_none()
    }

    /// Whether single fields may be buffered until elements are complete. Not with a log, whose guarantee that would
    /// break, nor with layers, which buffer writes themselves.
    pub(crate) fn may_buffer_fields(&self) -> bool {
        !self.settings.modes.log && !self.is_shared() && lock(&self.layers).is_none() && !self.is_inherited()
    }

    /// Restores the program's settings in an access list.
    pub(crate) fn restore(&self, list: Hid) {
        // SAFETY: inside a call of the library; the list is open.
        unsafe { driver::take_out(self.host, list) };
        let Some(Buffers { sieve, chunks: (slots, bytes, w0) }) = self.buffers else { return };
        // SAFETY: inside a call of the library; the list is open.
        unsafe {
            self.host.H5Pset_sieve_buf_size(list, sieve);
            self.host.H5Pset_cache(list, 0, slots, bytes, w0);
        }
    }

    /// Flushes metadata early if that is due; called after calls that may have changed them.
    pub(crate) fn flush_early(&self, dataset: Option<&Dataset>) {
        if !self.has_background_writes || self.parallel.is_some() || self.is_inherited() {
            return;
        }
        if dataset.is_some_and(|dataset| !dataset.io.direct.has_full_index()) {
            self.early.note();
        }
        if self.early.take_if_due(self.settings.lag) {
            self.flush_metadata();
        }
    }

    /// Has libhdf5 write its metadata. An error it meets again when the program flushes or closes. Of a file with a rollback
    /// journal it is told then in any case: a close after a write that failed commits nothing.
    fn flush_metadata(&self) {
        let flushed = self.early.measure(|| self.host.preserving_error_stack(|| self.save_now()));
        if let Err(error) = flushed {
            self.early.note();
            if self.rolls_back() {
                self.defer_error(error);
            }
        }
    }

    /// Writes buffered data by background threads, without libhdf5.
    pub(crate) fn write_pending(&self) {
        if self.has_background_writes && !self.is_inherited() {
            // Lost writes are recorded.
            let _ = lock(&self.layers).clone().map_or(Ok(()), |layers| layers.container.write_back());
        }
    }

    /// Adds a handle.
    pub(crate) fn opened(&self) {
        if self.handles.fetch_add(1, Ordering::Relaxed) == 0 && !self.is_inherited() {
            self.host.open_files.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes a handle that was only wrapped.
    pub(crate) fn unwrapped(&self) {
        if self.handles.fetch_sub(1, Ordering::Relaxed) == 1 && !self.is_inherited() {
            self.host.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Removes a handle that is about to be closed. Before the last one, everything is written back and layers are
    /// closed.
    pub(crate) fn close_handle(&self) -> Result<()> {
        let one_less = |handles: usize| handles.checked_sub(1);
        if self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) != Ok(1) {
            // Another handle is open, or closing this one failed before.
            return Ok(());
        }
        let waits = self.has_background_writes
            && self.parallel.is_none()
            && !self.is_inherited()
            && lock(&self.datasets).values().any(|one| one.has_pending());
        if !waits {
            return self.close_last();
        }
        if self.early.take() {
            // So that a kill during the following writes leaves a file that can be opened.
            self.flush_metadata();
        }
        let what = format!("{}: closed when what waits in memory is written", self.path.display());
        crate::terminate::telling_if_slow(what, || self.close_last())
    }

    fn close_last(&self) -> Result<()> {
        let written_back = self.write_back();
        // Their types may be of the file, and would keep it open.
        lock(&self.datasets).retain(|_, dataset| dataset.is_open());
        let layers = if self.is_inherited() { None } else { lock(&self.layers).take() };
        let closed = match layers {
            Some(layers) => {
                let closed = layers.container.close().inspect_err(|error| self.note_unwritten(error));
                self.host.stats.add_background(&layers.container.background());
                self.tell(&layers);
                closed
            }
            None => Ok(()),
        };
        // Datasets that are still open keep the file open in libhdf5, which executes their transfers from now on.
        self.leave_to_library("the file is closed, and only a dataset of it is still open");
        if let Some(trace) = &self.trace {
            trace.close();
        }
        if !self.is_inherited() {
            self.host.open_files.fetch_sub(1, Ordering::Relaxed);
        }
        // The process may end without shutting HDF5 down.
        self.host.refresh_stats(false);
        written_back.and(closed)
    }

    /// Records that acknowledged writes are lost, if that is what an error of layers means.
    fn note_unwritten(&self, error: &Error) {
        if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) {
            return;
        }
        self.host.note_unwritten(Unwritten {
            file: self.path.display().to_string(),
            dataset: String::new(),
            why: error.to_string(),
            in_log: self.settings.modes.log,
        });
    }

    /// Saves an error for the next flush or close.
    pub(crate) fn defer_error(&self, error: Error) {
        lock(&self.deferred_error).get_or_insert(error);
        self.host.pending.store(true, Ordering::Relaxed);
    }

    /// Prints critical diagnostics of the layers, and adds all to the statistics.
    fn tell(&self, layers: &Layers) {
        for remark in layers.container.diagnostics() {
            let remark = format!("{}: {remark}", self.path.display());
            if remark.contains("no longer logged") {
                self.host.say_once(&remark);
            }
            self.host.stats.remark(remark);
        }
    }

    /// Writes all buffered data of the file back, and executes deferred closes. Afterwards libhdf5 sees everything.
    pub(crate) fn write_back(&self) -> Result<()> {
        self.complete_reads();
        let layers = lock(&self.layers).clone().filter(|_| self.writable && !self.is_inherited());
        let layered = layers.map_or(Ok(()), |layers| layers.container.flush(Durability::Visible));
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.mark_clean());
        let waiting = datasets.iter().filter(|dataset| dataset.is_open() || dataset.io.has_buffered_fields());
        let last = self.handles.load(Ordering::Relaxed) == 0;
        let planes = waiting.map(|dataset| {
            // Dirty chunks are retried by the next write-back, except after the last handle.
            dataset.io.flush().inspect_err(|error| {
                if last {
                    dataset.io.note_unwritten(error)
                }
            })
        });
        let planes = planes.fold(Ok(()), Result::and);
        // Chunks that libhdf5 has refused are noted by their dataset until they are stored.
        if let Err(error) = &layered
            && !datasets.iter().any(|dataset| dataset.io.keeps_refused_chunks())
        {
            self.note_unwritten(error);
        }
        let closed = datasets.iter().map(|dataset| dataset.run_deferred_close()).fold(Ok(()), Result::and);
        lock(&self.datasets).retain(|_, dataset| dataset.is_open() || dataset.rests());
        self.objects.bound();
        let before = self.take_deferred_error();
        before.and(layered).and(planes).and(closed)
    }

    /// Writes everything back before a call of libhdf5. In files of several ranks the others make that call too: it must not
    /// be left out, and the next flush or close tells of the error.
    pub(crate) fn write_back_before_call(&self) -> Result<()> {
        match self.write_back() {
            Err(error) if self.parallel.is_some() => {
                self.defer_error(error);
                Ok(())
            }
            done => done,
        }
    }

    /// The error that waits to be told, if any.
    pub(crate) fn take_deferred_error(&self) -> Result<()> {
        lock(&self.deferred_error).take().map_or(Ok(()), Err)
    }

    /// Whether datasets may be kept when they are closed: nothing of them waits anywhere but in the direct path.
    pub(super) fn keeps_closed_datasets(&self) -> bool {
        self.leaves_small_transfers() && !self.is_library_only() && !self.is_inherited()
    }

    /// Forgets closed datasets that are only kept for the next time, until there are few, or none at all.
    pub(super) fn bound_resting(datasets: &mut HashMap<ObjectToken, Arc<Dataset>>, all: bool) {
        let mut resting: Vec<(ObjectToken, u64)> = datasets
            .iter()
            .filter_map(|(token, dataset)| dataset.resting_since().map(|since| (*token, since)))
            .collect();
        resting.sort_unstable_by_key(|(_, since)| *since);
        let more = if all { resting.len() } else { resting.len().saturating_sub(MOST_RESTING) };
        resting.iter().take(more).for_each(|(token, _)| drop(datasets.remove(token)));
    }

    /// Writes everything back if too many closed datasets have buffered writes.
    pub(crate) fn limit_deferred_closes(&self) -> Result<()> {
        let closed = lock(&self.datasets).values().filter(|dataset| dataset.is_closed() && !dataset.rests()).count();
        if closed > MOST_CLOSED { self.write_back() } else { Ok(()) }
    }

    /// Invalidates names and object numbers. Requires that nothing is buffered.
    fn invalidate_names(&self) -> Result<()> {
        self.renames.fetch_add(1, Ordering::Relaxed);
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        let closed = datasets.iter().map(|dataset| dataset.run_deferred_close()).fold(Ok(()), Result::and);
        for dataset in &datasets {
            dataset.drop_layers();
            dataset.mark_renamed();
            dataset.mark_clean();
        }
        // The token of a closed dataset may belong to another object when it is opened again.
        lock(&self.datasets).retain(|_, dataset| dataset.is_open());
        self.objects.renew();
        closed
    }

    /// Drops cached data of a read-only file if it has changed since. Called whenever something of it is opened.
    pub(crate) fn revalidate(&self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.writable) else { return };
        if lock(&self.datasets).is_empty() && lock(&self.layers).is_none() {
            return;
        }
        let now = FileStamp::of(file);
        let before = std::mem::replace(&mut *lock(&self.last_stamp), now);
        let same = match (before, now) {
            (Some(before), Some(now)) => before.is_still(now),
            _ => false,
        };
        if !same {
            self.drop_cached();
        }
    }

    /// Drops cached elements and addresses. Requires that nothing is buffered.
    fn drop_cached(&self) {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.drop_layers());
        self.objects.renew();
        self.invalidate_addresses();
    }

    /// Adds a handle; drops cached data, since the file may have changed.
    pub(crate) fn reopened(&self) -> Result<()> {
        if self.writable {
            self.write_back()?;
            self.drop_cached();
        }
        self.revalidate();
        self.opened();
        Ok(())
    }

    /// Prepares a dataset for a write through layers: loads its index, so that background threads can execute it, and
    /// flushes metadata if a recovery needs them to find the dataset.
    pub(crate) fn prepare(&self, dataset: &Dataset) -> Result<()> {
        if !dataset.io.direct.has_full_index() && dataset.io.load_full_index()? {
            self.metadata_changed.store(true, Ordering::Relaxed);
            self.early.note();
        }
        let modes = self.settings.modes;
        // The log holds the write, so it may stay in the file after a rollback if metadata locate it.
        let guard = dataset.io.guard.as_ref().filter(|_| modes.log);
        let guard = guard.filter(|_| dataset.io.direct.has_full_index());
        let unsure = guard.is_some_and(|guard| !guard.is_for_good());
        if (modes.log && self.metadata_changed.load(Ordering::Relaxed)) || unsure {
            self.save_now()?;
        }
        if let Some(guard) = guard {
            guard.stay();
        }
        Ok(())
    }

    /// Stores the chunks of all datasets that were encoded in the background.
    pub(crate) fn store_encoded_chunks(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().try_for_each(|dataset| dataset.io.store_encoded_chunks())
    }

    /// Invalidates cached addresses and chunks of all datasets. Requires that nothing is buffered.
    fn invalidate_addresses(&self) {
        lock(&self.datasets).values().for_each(|dataset| dataset.io.direct.forget());
    }

    /// Has libhdf5 flush its metadata, through any open dataset.
    fn save_now(&self) -> Result<()> {
        let handle = lock(&self.datasets).values().find_map(|dataset| dataset.handle());
        handle.map_or(Ok(()), |handle| self.save_through(handle, DATASET))
    }

    /// Gives up the rollback journal, such as for SWMR: what readers have seen cannot be rolled back.
    pub(crate) fn end_rollback(&self, why: &str) {
        if let Some(rollback) = self.rollback.upgrade() {
            self.host.say_once(&format!("{}: the file is no longer safe from kills: {why}", self.path.display()));
            if let Err(error) = rollback.give_up() {
                self.defer_error(Error::io("commit", error));
            }
        }
    }

    /// Whether the handle about to be closed is the last one of a file with a rollback journal.
    pub(crate) fn is_last_with_journal(&self) -> bool {
        self.handles.load(Ordering::Relaxed) <= 1 && self.rollback.strong_count() > 0
    }

    /// Writes buffered data back before a fork. Complete only on the thread that uses HDF5.
    pub(crate) fn before_fork(&self) {
        if self.is_inherited() {
            return;
        }
        let inside = CallbackScope::reenter();
        // SAFETY: the thread that uses HDF5 is here, and in no call of it, or it could not fork.
        let written_back = inside.as_ref().and_then(|_| unsafe { self.host.as_if_called(|| self.write_back()) });
        drop(inside);
        let written_back = match written_back {
            Some(Ok(())) => true,
            // The parent's next flush or close reports it.
            Some(Err(error)) => {
                self.defer_error(error);
                false
            }
            // The log belongs to the parent only, and another thread uses HDF5.
            None => !self.settings.modes.log && self.write_back_without_library().is_ok(),
        };
        self.clean_at_fork.store(written_back, Ordering::Relaxed);
    }

    /// Writes back whatever needs nothing of libhdf5.
    fn write_back_without_library(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        for dataset in datasets.iter().filter(|dataset| dataset.io.has_buffered_fields()) {
            if let Err(error) = dataset.io.flush() {
                self.defer_error(error);
            }
        }
        lock(&self.layers).clone().map_or(Ok(()), |layers| layers.container.write_back())
    }
}

impl FlushMetadata for FileState {
    fn flush_metadata(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        let mut metadata_dirty = false;
        for dataset in datasets.iter().filter(|dataset| dataset.is_open()) {
            dataset.io.flush()?;
            metadata_dirty |= dataset.io.metadata_dirty.load(Ordering::Relaxed);
        }
        if !metadata_dirty {
            return Ok(());
        }
        self.save_now()?;
        datasets.iter().for_each(|dataset| dataset.io.metadata_dirty.store(false, Ordering::Relaxed));
        Ok(())
    }
}

impl Drop for FileState {
    fn drop(&mut self) {
        lock(&self.host.files).retain(|_, state| state.strong_count() > 0);
    }
}

/// Writes all buffered data of all files of a host back. Does nothing if none is pending.
pub(crate) fn write_back_all(host: &'static Host) -> Herr {
    if !host.pending.swap(false, Ordering::Relaxed) {
        return 0;
    }
    let begin = std::time::Instant::now();
    let files: Vec<Arc<FileState>> = lock(&host.files).values().filter_map(Weak::upgrade).collect();
    let mut status = 0;
    for file in files {
        if let Err(error) = file.write_back_before_call() {
            host.report(&error);
            status = -1;
        }
    }
    host.stats.note_drain(begin.elapsed());
    status
}

/// Invalidates all files after libhdf5 changed unknown elements. Requires that nothing is buffered.
pub(crate) fn invalidate_all(host: &'static Host) {
    let files: Vec<Arc<FileState>> = lock(&host.files).values().filter_map(Weak::upgrade).collect();
    files.iter().for_each(|file| file.invalidate_addresses());
}

/// Records that metadata of the object's file are about to change.
pub(crate) fn note_metadata_change(object: &Object) {
    if let Some(file) = &object.file {
        file.metadata_changed.store(true, Ordering::Relaxed);
        file.early.note();
    }
}

/// Writes everything back and invalidates names, before links change or objects are deleted.
pub(crate) fn before_rename(object: &Object) -> Herr {
    note_metadata_change(object);
    if write_back_all(object.host) < 0 {
        return -1;
    }
    // Links may lead to other files.
    let files: Vec<Arc<FileState>> = lock(&object.host.files).values().filter_map(Weak::upgrade).collect();
    let forgotten = files.iter().map(|file| file.invalidate_names()).fold(Ok(()), Result::and);
    match forgotten {
        Ok(()) => 0,
        Err(error) => {
            object.host.report(&error);
            -1
        }
    }
}
