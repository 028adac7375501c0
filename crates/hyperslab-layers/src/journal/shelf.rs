//! The segments that a journal has, the room they take, and their removal from the front.

use super::done_set::DoneSet;
use super::files::{Files, LogFile};
use super::new_names::NewNames;
use super::segment::Segment;
use super::sync::Syncing;
use super::{failed, names};
use hyperslab_core::{Error, Result};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Everything about a journal that outlives its writer as long as a write of it is in use.
#[derive(Debug)]
pub(super) struct Shelf {
    pub files: Arc<dyn Files>,
    pub stem: String,
    /// Whether every removal is made durable before the next.
    durable: bool,
    /// Held open for its lock.
    pub head: Arc<dyn LogFile>,
    /// Whose it is. A child that was forked has a copy, and must not touch the files.
    process: u32,
    state: Mutex<State>,
    /// Bytes of all files.
    used: AtomicU64,
    /// Whether the state has a failure.
    failed: AtomicBool,
    /// Whether files were created or removed since names were made durable.
    pub names: NewNames,
    /// Bytes of all files when there was no space for more; the highest number while there is.
    pub starved: AtomicU64,
    /// Every write before this sequence number was acknowledged.
    pub appended: AtomicU64,
    /// Every write before this sequence number is durable.
    pub durable_before: AtomicU64,
    pub syncing: Syncing,
    changed: Condvar,
    /// Segments that are done, in order. The lock is held while their files are removed, so that the order is kept.
    leaving: Mutex<VecDeque<(Arc<Segment>, u64)>>,
}

#[derive(Debug, Default)]
struct State {
    segments: VecDeque<Kept>,
    failure: Option<Error>,
}

#[derive(Debug)]
struct Kept {
    segment: Arc<Segment>,
    done: DoneSet,
    bytes: u64,
    /// Nothing will be added.
    full: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelf {
    pub fn new(files: Arc<dyn Files>, stem: String, durable: bool, head: Arc<dyn LogFile>) -> Self {
        let (state, used, failed, names, syncing, changed, leaving): (_, _, _, NewNames, _, _, _) = Default::default();
        let (process, starved) = (std::process::id(), AtomicU64::new(u64::MAX));
        let (appended, durable_before) = (AtomicU64::new(1), AtomicU64::new(1));
        // The head itself.
        names.changed();
        Self {
            files,
            stem,
            durable,
            head,
            process,
            state,
            used,
            failed,
            names,
            starved,
            appended,
            durable_before,
            syncing,
            changed,
            leaving,
        }
    }

    /// A segment's file, for messages.
    pub fn name_of(&self, number: u64) -> String {
        format!("{}/{}", self.files.place(), names::meta(&self.stem, number))
    }

    /// Fails for good once a file could not be removed or made durable.
    pub fn check(&self) -> Result<()> {
        match self.failed.load(Ordering::Acquire) {
            false => Ok(()),
            true => lock(&self.state).failure.as_ref().map_or(Ok(()), |error| Err(error.copied())),
        }
    }

    /// Fails in a process that was forked: it has a copy of everything, but the files are the parent's.
    pub fn check_process(&self) -> Result<()> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(Error::unsupported("use journal", "it was opened before a fork")
                .backend("journal")
                .hint("open the container in the process that uses it")),
        }
    }

    /// Whether this is the process that opened it.
    pub fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Bytes of all files.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Makes every later use fail.
    pub fn fail(&self, error: Error) {
        lock(&self.state).failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// A new segment behind all others, which are full now.
    pub fn push(&self, segment: Arc<Segment>, first: u64, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        lock(&self.state).segments.push_back(Kept { segment, done: DoneSet::new(first), bytes, full: false });
    }

    /// The last segment got bytes of records: some that describe, then perhaps a write.
    pub fn add(&self, bytes: u64, describing: u64, is_write: bool) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        if let Some(last) = lock(&self.state).segments.back_mut() {
            last.bytes += bytes;
            (0..describing).for_each(|_| last.done.push(false));
            if is_write {
                last.done.push(true);
            }
        }
    }

    /// The last segment needs fewer bytes than it was said to.
    pub fn give_back(&self, bytes: u64) {
        if let Some(last) = lock(&self.state).segments.back_mut() {
            let bytes = bytes.min(last.bytes);
            last.bytes -= bytes;
            self.used.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Nothing will be added to the last segment.
    pub fn fill(&self) {
        if let Some(last) = lock(&self.state).segments.back_mut() {
            last.full = true;
        }
        self.remove_done();
    }

    /// Whether any write of the last segment is not done.
    pub fn last_is_pending(&self) -> bool {
        lock(&self.state).segments.back().is_some_and(|last| last.done.pending() > 0)
    }

    /// Writes that are not done.
    pub fn pending(&self) -> u64 {
        lock(&self.state).segments.iter().map(|kept| kept.done.pending()).sum()
    }

    /// The first write that is not done; `next` if all are.
    pub fn first_pending(&self, next: u64) -> u64 {
        let mut state = lock(&self.state);
        let found = state.segments.iter_mut().find(|kept| kept.done.pending() > 0);
        found.map_or(next, |kept| kept.done.first_pending())
    }

    /// The last segment.
    pub fn last(&self) -> Option<Arc<Segment>> {
        lock(&self.state).segments.back().map(|kept| kept.segment.clone())
    }

    /// All segments, oldest first.
    pub fn segments(&self) -> Vec<Arc<Segment>> {
        lock(&self.state).segments.iter().map(|kept| kept.segment.clone()).collect()
    }

    /// A write is done.
    pub fn finish(&self, segment: &Arc<Segment>, sequence: u64) {
        let mut state = lock(&self.state);
        // Numbers follow each other.
        let first = state.segments.front().map_or(0, |first| first.segment.number);
        let at = segment.number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        let Some(kept) = at.and_then(|at| state.segments.get_mut(at)) else { return };
        kept.done.finish(sequence);
        let leaves = kept.done.pending() == 0;
        drop(state);
        if leaves && self.is_ours() {
            self.changed.notify_all();
            self.remove_done();
        }
    }

    /// Removes the files of full segments without pending writes, from the front.
    fn remove_done(&self) {
        let mut leaving = lock(&self.leaving);
        let mut state = lock(&self.state);
        while let Some(first) = state.segments.front()
            && first.full
            && first.done.pending() == 0
            && state.failure.is_none()
        {
            if let Some(first) = state.segments.pop_front() {
                leaving.push_back((first.segment, first.bytes));
            }
        }
        drop(state);
        while let Some((segment, bytes)) = leaving.front() {
            if let Err(error) = self.remove(segment) {
                return self.fail(error);
            }
            self.used.fetch_sub(*bytes, Ordering::AcqRel);
            leaving.pop_front();
            // Whoever looks at the room does so with the lock.
            drop(lock(&self.state));
            self.changed.notify_all();
        }
    }

    /// Removes everything; all writes are done. With its head renamed, a journal is not replayed whatever else is left of it.
    pub fn remove_all(&self) -> Result<()> {
        let mut leaving = lock(&self.leaving);
        let (head, finished) = (format!("{}{}", self.stem, names::HEAD), format!("{}{}", self.stem, names::FINISHED));
        let failed = |cause| failed("remove journal", format!("{}/{head}", self.files.place()), cause);
        match self.files.rename(&head, &finished) {
            Ok(()) if self.durable => self.files.sync_names().map_err(failed)?,
            // Gone, or renamed already.
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(failed(cause)),
            _ => {}
        }
        let mut state = lock(&self.state);
        let kept = std::mem::take(&mut state.segments).into_iter().map(|kept| kept.segment);
        let segments: Vec<_> = leaving.drain(..).map(|(segment, _)| segment).chain(kept).collect();
        self.used.store(0, Ordering::Release);
        let had_failed = state.failure.take().is_some();
        self.failed.store(false, Ordering::Release);
        drop(state);
        segments.iter().try_for_each(|segment| self.remove(segment))?;
        if had_failed {
            self.remove_strays();
        }
        match self.files.remove(&finished) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(failed(cause)),
            _ => Ok(()),
        }
    }

    /// Removes what a segment that could not be begun may have left.
    fn remove_strays(&self) {
        let names = self.files.list().unwrap_or_default();
        for name in names.iter().filter(|name| names::segment_of(name, &self.stem).is_some()) {
            // With its head gone, nobody takes it for a journal.
            let _ = self.files.remove(name);
        }
    }

    /// Removes the files of a segment whose end is only in memory, after those of all before it.
    pub fn remove_files(&self, segment: &Segment) -> Result<()> {
        let leaving = lock(&self.leaving);
        leaving.iter().try_for_each(|(before, _)| self.remove(before))?;
        self.remove(segment)
    }

    /// Removes the records before the data: data without records are nothing, records without data look like a loss.
    fn remove(&self, segment: &Segment) -> Result<()> {
        let remove = |name: String| match self.files.remove(&name) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(failed("remove journal segment", name, cause)),
            _ => Ok(()),
        };
        remove(names::meta(&self.stem, segment.number))?;
        self.names.changed();
        if self.durable {
            self.names
                .sync(&*self.files)
                .map_err(|cause| failed("remove journal segment", self.files.place(), cause))?;
        }
        match segment.data.get() {
            Some(_) => remove(names::data(&self.stem, segment.number)),
            None => Ok(()),
        }
    }

    /// Waits until `ready` says so, looking again whenever room may have become free, or until the time is over.
    pub fn wait(&self, limit: Duration, ready: impl Fn(u64) -> bool) -> bool {
        let waits = |state: &mut State| {
            let reclaimable = state.segments.iter().all(|kept| kept.done.pending() == 0);
            let (used, starved) = (self.used(), self.starved.load(Ordering::Acquire));
            state.failure.is_none() && !reclaimable && !(used < starved && ready(used))
        };
        let (mut state, _) =
            self.changed.wait_timeout_while(lock(&self.state), limit, waits).unwrap_or_else(PoisonError::into_inner);
        !waits(&mut state)
    }
}
