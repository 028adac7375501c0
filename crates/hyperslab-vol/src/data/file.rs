//! A file that libhdf5 has open, whatever the number of its handles.

use super::dataset::Dataset;
use super::inside::Inside;
use super::stack::{Layers, Saving};
use crate::driver;
use crate::fork;
use crate::host::Host;
use crate::host::api::{Herr, Hid};
use crate::object::{DATASET, Object};
use crate::settings::Settings;
use crate::trace::TracedFile;
use hyperslab_core::{Durability, Error, Result};
use hyperslab_rollback::Rollback;
use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The library's name for an object within a file.
pub(crate) type Token = [u8; 16];

const FLUSH: c_int = 0;
const LOCAL: c_int = 0;
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
    layers: Mutex<Option<Arc<Layers>>>,
    /// Whether a dataset may not be in the file yet.
    changed: AtomicBool,
    /// Whether nothing waited at the last fork.
    settled_for_child: AtomicBool,
    /// What went wrong when the program could not be told.
    unheard: Mutex<Option<Error>>,
    pub(crate) trace: Option<Arc<TracedFile>>,
    /// The journal that the file driver keeps.
    pub(crate) rollback: Weak<Rollback>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        let state = Arc::new(Self {
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
            layers: Mutex::default(),
            changed: AtomicBool::new(true),
            unheard: Mutex::default(),
            settled_for_child: AtomicBool::new(true),
            trace,
            rollback,
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
            let layers = Layers::open(&state.settings, &state.path, writable, file.clone(), saving)?;
            *lock(&state.layers) = layers.map(Arc::new);
        }
        host.stats.files.fetch_add(1, Ordering::Relaxed);
        Ok(state)
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
            Some(_) if !fork::is_child() => Ok(layers),
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
        !self.settings.modes.log && lock(&self.layers).is_none() && !fork::is_child()
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

    /// Another handle of the file.
    pub(crate) fn opened(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle that was only wrapped is gone.
    pub(crate) fn unwrapped(&self) {
        self.handles.fetch_sub(1, Ordering::Relaxed);
    }

    /// A handle is about to be closed. With the last one nothing may wait any more.
    pub(crate) fn close_handle(&self) -> Result<()> {
        let one_less = |handles: usize| handles.checked_sub(1);
        if self.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) != Ok(1) {
            // Another is open; or this one was closed before, which failed.
            return Ok(());
        }
        let settled = self.settle();
        let layers = if fork::is_child() { None } else { lock(&self.layers).take() };
        let closed = match layers {
            Some(layers) => {
                let closed = layers.container.close();
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
        settled.and(closed)
    }

    /// An error for the next flush, or for the close.
    pub(crate) fn tell_later(&self, error: Error) {
        lock(&self.unheard).get_or_insert(error);
        self.host.pending.store(true, Ordering::Relaxed);
    }

    /// Tells the user what must be known of the layers, and the rest to those who ask for statistics.
    fn tell(&self, layers: &Layers) {
        for remark in layers.container.remarks() {
            let remark = format!("{}: {remark}", self.path.display());
            if remark.contains("no longer logged") {
                self.host.say_once(&remark);
            }
            self.host.stats.remark(remark);
        }
    }

    /// Brings everything that waits to where libhdf5 finds it.
    pub(crate) fn settle(&self) -> Result<()> {
        let layers = lock(&self.layers).clone().filter(|_| self.writable && !fork::is_child());
        let layered = layers.map_or(Ok(()), |layers| layers.container.flush(Durability::Visible));
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.settled());
        let waiting = datasets.iter().filter(|dataset| dataset.is_open() || dataset.elements.holds());
        let planes = waiting.map(|dataset| dataset.elements.flush());
        let planes = planes.fold(Ok(()), Result::and);
        let closed = datasets.iter().map(|dataset| dataset.close_kept()).fold(Ok(()), Result::and);
        lock(&self.datasets).retain(|_, dataset| dataset.is_open());
        let before = lock(&self.unheard).take().map_or(Ok(()), Err);
        before.and(layered).and(planes).and(closed)
    }

    /// Writes of a dataset that the program has closed wait: not too many of them.
    pub(crate) fn bound_closed(&self) -> Result<()> {
        let closed = lock(&self.datasets).values().filter(|dataset| dataset.is_closed()).count();
        if closed > MOST_CLOSED { self.settle() } else { Ok(()) }
    }

    /// Arrays may have other names from now on. Nothing may be waiting.
    fn forget_names(&self) {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        datasets.iter().for_each(|dataset| dataset.forget_layers());
    }

    /// Before elements of a dataset go through layers: threads of ours should be able to move them, and a recovery must find
    /// the dataset and its place in the file.
    pub(crate) fn prepare(&self, dataset: &Dataset) -> Result<()> {
        if !dataset.elements.plane.is_independent() && dataset.elements.make_independent()? {
            self.changed.store(true, Ordering::Relaxed);
        }
        let modes = self.settings.modes;
        // What is moved later is in the log now: it may stay in the file after a rollback, if it is found there.
        let guard = dataset.elements.guard.as_ref().filter(|_| modes.log);
        let unsure = guard.is_some_and(|guard| !guard.is_for_good());
        if (modes.log && self.changed.swap(false, Ordering::Relaxed)) || unsure {
            self.save_now()?;
        }
        if let Some(guard) = guard.filter(|_| dataset.elements.plane.is_independent()) {
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
        #[repr(C)]
        struct Flush {
            operation: c_int,
            /// The rest may hold pointers, and begins where these may.
            _until: c_int,
            kind: c_int,
            scope: c_int,
        }
        let handle = lock(&self.datasets).values().find_map(|dataset| dataset.handle());
        let Some(handle) = handle else { return Ok(()) };
        let mut arguments = Flush { operation: FLUSH, _until: 0, kind: DATASET, scope: LOCAL };
        let (host, list): (_, Hid) = (self.host, self.host.default_transfer());
        // SAFETY: the dataset is open, and the arguments are those of the operation.
        let mut flush = || unsafe {
            let arguments = (&raw mut arguments).cast();
            host.H5VLfile_specific(handle.under, handle.connector, arguments, list, std::ptr::null_mut())
        };
        // Other modes promise the state of the program's own flushes, and nothing newer.
        let status: Herr = if self.settings.modes.log { driver::flushing(host, flush)? } else { flush() };
        if status < 0 { Err(host.failed("flush")) } else { Ok(()) }
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
        if fork::is_child() {
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
        lock(&self.layers).clone().map_or(Ok(()), |layers| layers.container.settle())
    }
}

impl Saving for FileState {
    fn save(&self) -> Result<()> {
        let datasets: Vec<Arc<Dataset>> = lock(&self.datasets).values().cloned().collect();
        let mut unsaved = false;
        for dataset in datasets.iter().filter(|dataset| dataset.is_open()) {
            dataset.elements.flush()?;
            unsaved |=
                dataset.elements.unsaved.swap(false, Ordering::Relaxed) && !dataset.elements.plane.is_independent();
        }
        if unsaved { self.save_now() } else { Ok(()) }
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
    }
}

/// Names are about to change, or objects to go.
pub(crate) fn renaming(object: &Object) -> Herr {
    changed(object);
    if settle_all(object.host) < 0 {
        return -1;
    }
    if let Some(file) = &object.file {
        file.forget_names();
    }
    0
}
