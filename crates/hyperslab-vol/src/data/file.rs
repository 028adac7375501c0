//! A file that libhdf5 has open, whatever the number of its handles.

use super::dataset::Dataset;
use super::early::EarlyFlush;
use super::inside::Inside;
use super::objects::{Objects, Seen};
use super::stack::{Layers, Saving};
use crate::driver;
use crate::fork::{self, Generation};
use crate::host::Host;
use crate::host::api::{Herr, Hid};
use crate::object::{DATASET, Object};
use crate::settings::Settings;
use crate::stats::Unwritten;
use crate::trace::TracedFile;
use hyperslab_core::{Durability, Error, ErrorKind, Result};
use hyperslab_rollback::Rollback;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The library's name for an object within a file.
pub(crate) type Token = [u8; 16];

/// Datasets that the program has closed and whose writes wait.
const MOST_CLOSED: usize = 64;

/// What libhdf5 would keep in memory, had the connector not forbidden it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buffers {
    pub(crate) sieve: usize,
    /// Slots, bytes and preemption of chunk caches.
    pub(crate) chunks: (usize, usize, f64),
}

/// A file.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) host: &'static Host,
    /// The library's number for it.
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) settings: Arc<Settings>,
    pub(crate) writable: bool,
    pub(crate) buffers: Option<Buffers>,
    /// Opened for us alone; absent where libhdf5 moves everything.
    pub(crate) file: Option<Arc<File>>,
    /// Why libhdf5 moves everything.
    left: Mutex<Option<String>>,
    handles: AtomicUsize,
    pub(crate) datasets: Mutex<HashMap<Token, Arc<Dataset>>>,
    /// By what layers know its objects.
    pub(crate) objects: Objects,
    /// What the file was when something of it was kept, if it is only read.
    seen: Mutex<Option<Seen>>,
    layers: Mutex<Option<Arc<Layers>>>,
    /// Whether a dataset may not be in the file yet.
    pub(super) changed: AtomicBool,
    /// Whether a dataset was written that has no name.
    pub(super) nameless: AtomicBool,
    /// Whether writes wait in memory when their calls have returned, so that metadata are flushed early.
    writes_later: bool,
    early: EarlyFlush,
    /// Whether nothing waited at the last fork.
    settled_for_child: AtomicBool,
    /// What went wrong when the program could not be told.
    unheard: Mutex<Option<Error>>,
    pub(crate) trace: Option<Arc<TracedFile>>,
    /// The journal that the file driver keeps.
    pub(crate) rollback: Weak<Rollback>,
    /// The process that opened it, which has its threads.
    generation: Generation,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) left: Option<String>,
    pub(crate) trace: Option<Arc<TracedFile>>,
    pub(crate) rollback: Weak<Rollback>,
}

impl FileState {
    pub(crate) fn new(parts: Parts) -> Result<Arc<Self>> {
        let Parts { host, number, path, settings, writable, buffers, file, left, trace, rollback } = parts;
        let modes = settings.modes;
        let writes_later = writable && left.is_none() && !modes.log && (modes.copies() || modes.cache);
        if writes_later {
            crate::terminate::watch();
        }
        let state = Arc::new(Self {
            writes_later,
            early: EarlyFlush::default(),
            host,
            number,
            path,
            settings,
            writable,
            buffers,
            file,
            left: Mutex::new(left),
            handles: AtomicUsize::new(1),
            datasets: Mutex::default(),
            objects: Objects::default(),
            seen: Mutex::default(),
            layers: Mutex::default(),
            changed: AtomicBool::new(true),
            nameless: AtomicBool::new(false),
            unheard: Mutex::default(),
            settled_for_child: AtomicBool::new(true),
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
        } else if let (Some(file), None) = (&state.file, state.left()) {
            let saving: Weak<dyn Saving> = Arc::downgrade(&(state.clone() as Arc<dyn Saving>));
            let rolls_back = state.rolls_back();
            let layers = Layers::open(&state.settings, &state.path, writable, file.clone(), saving, rolls_back)?;
            *lock(&state.layers) = layers.map(Arc::new);
        }
        host.stats.files.fetch_add(1, Ordering::Relaxed);
        host.open_files.fetch_add(1, Ordering::Relaxed);
        Ok(state)
    }

    /// Whether a kill leaves the file as it was at its last commit.
    pub(crate) fn rolls_back(&self) -> bool {
        self.rollback.strong_count() > 0
    }

    /// Whether a parent of this process opened the file: its threads, its log and its descriptor are the parent's.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Why libhdf5 moves all elements of the file, if it does.
    pub(crate) fn left(&self) -> Option<String> {
        lock(&self.left).clone()
    }

    pub(crate) fn is_left(&self) -> bool {
        lock(&self.left).is_some()
    }

    /// From now on libhdf5 moves everything. Nothing may be waiting.
    pub(crate) fn leave_to_library(&self, why: &str) {
        lock(&self.left).get_or_insert_with(|| why.into());
    }

    /// The layers, if there are any. A child of the process that opened the file goes without.
    pub(crate) fn layers(&self) -> Result<Option<Arc<Layers>>> {
        let layers = lock(&self.layers).clone();
        match layers {
            Some(_) if !self.is_inherited() => Ok(layers),
            Some(_) if !self.settled_for_child.load(Ordering::Relaxed) => Err(Error::unsupported(
                "access",
                "the file was opened before a fork, and writes to it wait in the parent",
            )
            .hint("flush before forking, or open it in the process that uses it")),
            Some(_) => Ok(None),
            None => Ok(None),
        }
    }

    /// Whether fields of elements may be held back until all are there. What a log promises they could not keep, and layers hold
    /// writes themselves.
    pub(crate) fn may_hold(&self) -> bool {
        !self.settings.modes.log && lock(&self.layers).is_none() && !self.is_inherited()
    }

    /// Puts back into an access list what the program had asked for.
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

    /// After a call that may have put something new into the file: has libhdf5 write its metadata, if that is worth while now.
    pub(crate) fn flush_early(&self, dataset: Option<&Dataset>) {
        if !self.writes_later || self.is_inherited() {
            return;
        }
        if dataset.is_some_and(|dataset| !dataset.elements.plane.is_independent()) {
            self.early.note();
        }
        if self.early.take_if_due(self.settings.lag) {
            self.flush_metadata();
        }
    }

    /// Has libhdf5 write its metadata. An error it meets again when the program flushes or closes. Of a file with a rollback
    /// journal it is told then in any case: a close after a write that failed commits nothing.
    fn flush_metadata(&self) {
        let flushed = self.early.measure(|| self.host.keeping_errors(|| self.save_now()));
        if let Err(error) = flushed {
            self.early.note();
            if self.rolls_back() {
                self.tell_later(error);
            }
        }
    }

    /// Has what waits written by threads of ours, without the library.
    pub(crate) fn write_what_waits(&self) {
        if self.writes_later && !self.is_inherited() {
            // What fails is on record.
            let _ = lock(&self.layers).clone().map_or(Ok(()), |layers| layers.container.write_back());
        }
    }

    /// Another handle of the file.
    pub(crate) fn opened(&self) {
        if self.handles.fetch_add(1, Ordering::Relaxed) == 0 && !self.is_inherited() {
            self.host.open_files.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A handle that was only wrapped is gone.
    pub(crate) fn unwrapped(&self) {
        if self.handles.fetch_sub(1, Ordering::Relaxed) == 1 && !self.is_inherited() {
            self.host.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A handle is about to be closed. With the last one nothing may wait any more.
    pub(crate) fn close_handle(&self) -> Result<()> {
        let one_less = |handles: usize| handles.checked_sub(1);
        if self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) != Ok(1) {
            // Another is open; or this one was closed before, which failed.
            return Ok(());
        }
        let waits = self.writes_later && !self.is_inherited() && lock(&self.datasets).values().any(|one| one.waits());
        if !waits {
            return self.close_last();
        }
        if self.early.take() {
            // So that a kill while the rest is written leaves a file that can be opened.
            self.flush_metadata();
        }
        let what = format!("{}: closed when what waits in memory is written", self.path.display());
        crate::terminate::telling_if_slow(what, || self.close_last())
    }

    fn close_last(&self) -> Result<()> {
        let settled = self.settle();
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
        // Datasets that are still open keep the file open in libhdf5, and their elements go by it from now on.
        self.leave_to_library("the file is closed, and only a dataset of it is still open");
        if let Some(trace) = &self.trace {
            trace.close();
        }
        if !self.is_inherited() {
            self.host.open_files.fetch_sub(1, Ordering::Relaxed);
        }
        // A process may end without another word.
        self.host.refresh_stats(false);
        settled.and(closed)
    }

    /// Notes that writes which have returned cannot be made, if that is what an error of layers means.
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

    /// An error for the next flush, or for the close.
    pub(crate) fn tell_later(&self, error: Error) {
        lock(&self.unheard).get_or_insert(error);
        self.host.pending.store(true, Ordering::Relaxed);
    }

    /// Tells the user what must be known of the layers, and the rest to those who ask for statistics.
    fn tell(&self, layers: &Layers) {
        for remark in layers.container.diagnostics() {
            let remark = format!("{}: {remark}", self.path.display());
            if remark.contains("no longer logged") {
                self.host.say_once(&remark);
            }
            self.host.stats.remark(remark);
        }
    }

    /// Brings everything that waits to where libhdf5 finds it.
    pub(crate) fn settle(&self) -> Result<()> {
        let layers = lock(&self.layers).clone().filter(|_| self.writable && !self.is_inherited());
        let layered = layers.map_or(Ok(()), |layers| layers.container.flush(Durability::Visible));
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.settled());
        let waiting = datasets.iter().filter(|dataset| dataset.is_open() || dataset.elements.holds());
        let last = self.handles.load(Ordering::Relaxed) == 0;
        let planes = waiting.map(|dataset| {
            // Chunks that wait in memory are tried again, but after the last handle.
            dataset.elements.flush().inspect_err(|error| {
                if last {
                    dataset.elements.note_unwritten(error)
                }
            })
        });
        let planes = planes.fold(Ok(()), Result::and);
        if let Err(error) = &layered {
            self.note_unwritten(error);
        }
        let closed = datasets.iter().map(|dataset| dataset.close_kept()).fold(Ok(()), Result::and);
        lock(&self.datasets).retain(|_, dataset| dataset.is_open());
        self.objects.bound();
        let before = lock(&self.unheard).take().map_or(Ok(()), Err);
        before.and(layered).and(planes).and(closed)
    }

    /// Writes of a dataset that the program has closed wait: not too many of them.
    pub(crate) fn bound_closed(&self) -> Result<()> {
        let closed = lock(&self.datasets).values().filter(|dataset| dataset.is_closed()).count();
        if closed > MOST_CLOSED { self.settle() } else { Ok(()) }
    }

    /// Names and objects may be others from now on. Nothing may be waiting.
    fn forget_names(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        let closed = datasets.iter().map(|dataset| dataset.close_kept()).fold(Ok(()), Result::and);
        for dataset in &datasets {
            dataset.forget_layers();
            dataset.forget_name();
            dataset.settled();
        }
        // What the program has closed may be another object when it is opened again.
        lock(&self.datasets).retain(|_, dataset| dataset.is_open());
        self.objects.renew();
        closed
    }

    /// Something of the file is opened: what is kept of one that is only read must be what it still has.
    pub(crate) fn look_again(&self) {
        let Some(file) = self.file.as_ref().filter(|_| !self.writable) else { return };
        let now = Seen::of(file);
        let before = std::mem::replace(&mut *lock(&self.seen), now);
        let same = match (before, now) {
            (Some(before), Some(now)) => before.is_still(now),
            _ => false,
        };
        if !same {
            self.forget_kept();
        }
    }

    /// Drops what layers and planes keep of elements. Nothing may be waiting.
    fn forget_kept(&self) {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.forget_layers());
        self.objects.renew();
        self.forget_places();
    }

    /// The file is opened once more, and may be another than what is kept of it.
    pub(crate) fn opened_again(&self) -> Result<()> {
        if self.writable {
            self.settle()?;
            self.forget_kept();
        }
        self.look_again();
        self.opened();
        Ok(())
    }

    /// Before elements of a dataset go through layers: threads of ours should be able to move them, and a recovery must find
    /// the dataset and its place in the file.
    pub(crate) fn prepare(&self, dataset: &Dataset) -> Result<()> {
        if !dataset.elements.plane.is_independent() && dataset.elements.make_independent()? {
            self.changed.store(true, Ordering::Relaxed);
            self.early.note();
        }
        let modes = self.settings.modes;
        // What is moved later is in the log now: it may stay in the file after a rollback, if it is found there.
        let guard = dataset.elements.guard.as_ref().filter(|_| modes.log);
        let guard = guard.filter(|_| dataset.elements.plane.is_independent());
        let unsure = guard.is_some_and(|guard| !guard.is_for_good());
        if (modes.log && self.changed.load(Ordering::Relaxed)) || unsure {
            self.save_now()?;
        }
        if let Some(guard) = guard {
            guard.stay();
        }
        Ok(())
    }

    /// Gives libhdf5 the chunks that threads of ours have coded.
    pub(crate) fn store_finished(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().try_for_each(|dataset| dataset.elements.store_finished())
    }

    /// Elements of any dataset may have been changed by libhdf5. Nothing may be waiting.
    fn forget_places(&self) {
        lock(&self.datasets).values().for_each(|dataset| dataset.elements.plane.forget());
    }

    /// Has libhdf5 write its metadata, through any dataset that is open.
    fn save_now(&self) -> Result<()> {
        let handle = lock(&self.datasets).values().find_map(|dataset| dataset.handle());
        handle.map_or(Ok(()), |handle| self.save_through(handle, DATASET))
    }

    /// The file is written for readers that follow: what they see cannot be taken back.
    pub(crate) fn end_rollback(&self, why: &str) {
        if let Some(rollback) = self.rollback.upgrade() {
            self.host.say_once(&format!("{}: the file is no longer safe from kills: {why}", self.path.display()));
            if let Err(error) = rollback.give_up() {
                self.tell_later(Error::io("commit", error));
            }
        }
    }

    /// Whether the handle that is about to be closed is the last one of a file with a journal.
    pub(crate) fn is_last_guarded(&self) -> bool {
        self.handles.load(Ordering::Relaxed) <= 1 && self.rollback.strong_count() > 0
    }

    /// Before the program forks: what waits goes to the file. Only the thread that uses HDF5 can do all of it.
    pub(crate) fn before_fork(&self) {
        if self.is_inherited() {
            return;
        }
        let inside = Inside::enter_again();
        // SAFETY: the thread that uses HDF5 is here, and in no call of it, or it could not fork.
        let settled = inside.as_ref().and_then(|_| unsafe { self.host.as_if_called(|| self.settle()) });
        drop(inside);
        let settled = match settled {
            Some(Ok(())) => true,
            // A flush or the close tells the parent.
            Some(Err(error)) => {
                self.tell_later(error);
                false
            }
            // What is logged is the parent's alone, and another thread uses HDF5.
            None => !self.settings.modes.log && self.settle_without_library().is_ok(),
        };
        self.settled_for_child.store(settled, Ordering::Relaxed);
    }

    /// Brings to the file what needs nothing of libhdf5 for that.
    fn settle_without_library(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        for dataset in datasets.iter().filter(|dataset| dataset.elements.holds()) {
            if let Err(error) = dataset.elements.flush() {
                self.tell_later(error);
            }
        }
        lock(&self.layers).clone().map_or(Ok(()), |layers| layers.container.write_back())
    }
}

impl Saving for FileState {
    fn save(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        let mut unsaved = false;
        for dataset in datasets.iter().filter(|dataset| dataset.is_open()) {
            dataset.elements.flush()?;
            unsaved |= dataset.elements.unsaved.load(Ordering::Relaxed);
        }
        if !unsaved {
            return Ok(());
        }
        self.save_now()?;
        datasets.iter().for_each(|dataset| dataset.elements.unsaved.store(false, Ordering::Relaxed));
        Ok(())
    }
}

impl Drop for FileState {
    fn drop(&mut self) {
        lock(&self.host.files).retain(|_, state| state.strong_count() > 0);
    }
}

/// Brings everything that waits, of all files of a host, to where libhdf5 finds it.
pub(crate) fn settle_all(host: &'static Host) -> Herr {
    if !host.pending.swap(false, Ordering::Relaxed) {
        return 0;
    }
    let begin = std::time::Instant::now();
    let files: Vec<Arc<FileState>> = lock(&host.files).values().filter_map(Weak::upgrade).collect();
    let mut status = 0;
    for file in files {
        if let Err(error) = file.settle() {
            host.report(&error);
            status = -1;
        }
    }
    host.stats.note_drain(begin.elapsed());
    status
}

/// libhdf5 has changed elements, nobody knows which. Nothing may be waiting.
pub(crate) fn forget_all(host: &'static Host) {
    let files: Vec<Arc<FileState>> = lock(&host.files).values().filter_map(Weak::upgrade).collect();
    files.iter().for_each(|file| file.forget_places());
}

/// Metadata of the object's file is about to change.
pub(crate) fn changed(object: &Object) {
    if let Some(file) = &object.file {
        file.changed.store(true, Ordering::Relaxed);
        file.early.note();
    }
}

/// Names are about to change, or objects to go.
pub(crate) fn renaming(object: &Object) -> Herr {
    changed(object);
    if settle_all(object.host) < 0 {
        return -1;
    }
    // Links may lead to other files.
    let files: Vec<Arc<FileState>> = lock(&object.host.files).values().filter_map(Weak::upgrade).collect();
    let forgotten = files.iter().map(|file| file.forget_names()).fold(Ok(()), Result::and);
    match forgotten {
        Ok(()) => 0,
        Err(error) => {
            object.host.report(&error);
            -1
        }
    }
}
