//! The segments that a journal has, the room they take, and their removal from the front.

use super::completed_set::CompletedSet;
use super::dir_sync::DirSync;
use super::file_names;
use super::head_slots::LiveSegments;
use super::preallocate::PreallocatedSegment;
use super::segment::Segment;
use super::storage::{JournalStorage, LogFile};
use super::sync::Syncing;
use hyperslab_core::{Error, Result};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Everything about a journal that outlives its writer as long as a write of it is in use.
#[derive(Debug)]
pub(super) struct SegmentList {
    pub files: Arc<dyn JournalStorage>,
    pub stem: String,
    /// Whether every removal is made durable before the next.
    pub durable: bool,
    /// Held open for its lock.
    pub head: Arc<dyn LogFile>,
    /// Where the head says which segments are live, and which those are.
    pub live: Option<(u64, Mutex<LiveSegments>)>,
    /// Whose it is. A child that was forked has a copy, and must not touch the files.
    process: u32,
    pub state: Mutex<State>,
    /// Bytes of all files.
    pub used: AtomicU64,
    /// Whether the state has a failure.
    pub failed: AtomicBool,
    /// Whether files were created or removed since names were made durable.
    pub names: DirSync,
    /// Bytes of all files when there was no space for more; the highest number while there is.
    pub starved: AtomicU64,
    /// Every write before this sequence number was acknowledged.
    pub appended: AtomicU64,
    /// Every write before this sequence number is durable.
    pub durable_before: AtomicU64,
    pub syncing: Syncing,
    /// For the next segment.
    pub ahead: PreallocatedSegment,
    /// A data log should have been written directly, and is not.
    pub direct_refused: AtomicBool,
    pub changed: Condvar,
    /// Segments that are done, in order. The lock is held while their files are removed, so that the order is kept.
    pub leaving: Mutex<VecDeque<(Arc<Segment>, u64)>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub segments: VecDeque<RetainedSegment>,
    pub failure: Option<Error>,
}

#[derive(Debug)]
pub(super) struct RetainedSegment {
    pub segment: Arc<Segment>,
    pub done: CompletedSet,
    pub bytes: u64,
    /// Nothing will be added.
    pub full: bool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SegmentList {
    pub fn new(files: Arc<dyn JournalStorage>, stem: String, durable: bool, head: Arc<dyn LogFile>) -> Self {
        let (state, used, failed, names, syncing, changed, leaving): (_, _, _, DirSync, _, _, _) = Default::default();
        let (process, starved) = (std::process::id(), AtomicU64::new(u64::MAX));
        let (appended, durable_before) = (AtomicU64::new(1), AtomicU64::new(1));
        // The head itself.
        names.changed();
        Self {
            files,
            stem,
            durable,
            head,
            live: None,
            process,
            state,
            used,
            failed,
            names,
            starved,
            appended,
            durable_before,
            syncing,
            ahead: PreallocatedSegment::default(),
            direct_refused: AtomicBool::new(false),
            changed,
            leaving,
        }
    }

    /// A segment is there, in which nothing is acknowledged yet.
    pub fn begins(&self, number: u64) -> std::io::Result<()> {
        self.set_live(|live| live.last = live.last.max(number)).map(drop)
    }

    /// The files of a segment are about to be removed.
    pub fn leaves(&self, number: u64) -> std::io::Result<()> {
        match self.set_live(|live| live.first = live.first.max(number.saturating_add(1)))? && self.durable {
            // Otherwise a loss of power could bring back that it should be there.
            true => self.head.sync(),
            false => Ok(()),
        }
    }

    /// Nothing is live any more, which the name of the head says already.
    pub fn all_leave(&self) {
        let _ = self.set_live(|live| live.first = u64::MAX);
    }

    /// Returns whether it was changed.
    fn set_live(&self, change: impl FnOnce(&mut LiveSegments)) -> std::io::Result<bool> {
        let Some((at, live)) = &self.live else { return Ok(false) };
        let mut live = lock(live);
        let mut new = *live;
        change(&mut new);
        if new != *live {
            self.head.write_at(&[IoSlice::new(&new.encode())], *at)?;
            *live = new;
            return Ok(true);
        }
        Ok(false)
    }

    /// A segment's file, for messages.
    pub fn name_of(&self, number: u64) -> String {
        format!("{}/{}", self.files.place(), file_names::meta(&self.stem, number))
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
        lock(&self.state).segments.push_back(RetainedSegment {
            segment,
            done: CompletedSet::new(first),
            bytes,
            full: false,
        });
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
