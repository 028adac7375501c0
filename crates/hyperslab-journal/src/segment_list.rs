//! The segments of a journal, the space they use, and which writes are completed.

use super::completed_set::CompletedSet;
use super::dir_sync::DirSync;
use super::file_names;
use super::head_slots::LiveSegments;
use super::preallocate::PreallocatedSegment;
use super::segment::Segment;
use super::storage::{JournalStorage, LogFile};
use super::sync::Syncing;
use hyperslab_core::{Error, Result, lock};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The state shared by a journal and its record handles, which may outlive it.
#[derive(Debug)]
pub(super) struct SegmentList {
    pub files: Arc<dyn JournalStorage>,
    pub stem: String,
    /// Whether each removal is made durable before the next.
    pub durable: bool,
    /// Open as long as the lock is needed.
    pub head: Arc<dyn LogFile>,
    /// Offset of the slot for live segments in the head, and its contents.
    pub live: Option<(u64, Mutex<LiveSegments>)>,
    /// The owning process. A forked child has a copy and must not touch the files.
    process: u32,
    pub state: Mutex<State>,
    /// Size of all files in bytes.
    pub used: AtomicU64,
    /// Whether `state.failure` is set; avoids taking the lock.
    pub failed: AtomicBool,
    /// Directory changes that are not durable.
    pub names: DirSync,
    /// `used` at the last `NoSpace`; `u64::MAX` otherwise.
    pub starved: AtomicU64,
    /// All writes with lower sequence numbers were acknowledged.
    pub appended: AtomicU64,
    /// All writes with lower sequence numbers are durable.
    pub durable_before: AtomicU64,
    pub syncing: Syncing,
    /// The data log of the next segment.
    pub ahead: PreallocatedSegment,
    /// Direct I/O was requested and is not supported.
    pub direct_refused: AtomicBool,
    pub changed: Condvar,
    /// Completed segments, in order. Locked while their files are removed, which keeps removals in order.
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
    /// Sealed: gets no more records.
    pub full: bool,
}

impl SegmentList {
    pub fn new(files: Arc<dyn JournalStorage>, stem: String, durable: bool, head: Arc<dyn LogFile>) -> Self {
        let (state, used, failed, names, syncing, changed, leaving): (_, _, _, DirSync, _, _, _) = Default::default();
        let (process, starved) = (std::process::id(), AtomicU64::new(u64::MAX));
        let (appended, durable_before) = (AtomicU64::new(1), AtomicU64::new(1));
        // The head itself is a new directory entry.
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

    /// Records a new segment, or that the last one has grown, before any append there is acknowledged. Where each write is
    /// durable by then, that waits for [`SegmentList::is_durable`].
    pub fn reaches(&self, number: u64, len: u64) -> std::io::Result<()> {
        let reach = |live: &mut LiveSegments| {
            if !live.each_write {
                live.reach(number, len)
            }
        };
        self.set_live(reach).map(drop)
    }

    /// Records durably that so many bytes of the last segment are durable, where each write is.
    pub fn is_durable(&self, number: u64, len: u64) -> std::io::Result<()> {
        match self.set_live(|live| {
            if live.each_write {
                live.reach(number, len)
            }
        })? {
            true => self.head.sync(),
            false => Ok(()),
        }
    }

    /// Records that the last segment is about to be cut to this length; durably, where its length is.
    pub fn shrinks(&self, len: u64) -> std::io::Result<()> {
        let mut is_durable = false;
        let shrink = |live: &mut LiveSegments| {
            live.least = live.least.min(len);
            is_durable = live.each_write;
        };
        match self.set_live(shrink)? && is_durable {
            true => self.head.sync(),
            false => Ok(()),
        }
    }

    /// Records that the files of a segment are about to be removed.
    pub fn leaves(&self, number: u64) -> std::io::Result<()> {
        match self.set_live(|live| live.first = live.first.max(number.saturating_add(1)))? && self.durable {
            // Otherwise, after power loss, recovery could expect the segment.
            true => self.head.sync(),
            false => Ok(()),
        }
    }

    /// Records that no segment is live; the name of the head says so already.
    pub fn all_leave(&self) {
        let _ = self.set_live(|live| live.first = u64::MAX);
    }

    /// Updates the slot; returns whether it changed.
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

    /// The path of a segment, for messages.
    pub fn name_of(&self, number: u64) -> String {
        format!("{}/{}", self.files.place(), file_names::meta(&self.stem, number))
    }

    /// Fails once a file could not be removed or made durable.
    pub fn check(&self) -> Result<()> {
        match self.failed.load(Ordering::Acquire) {
            false => Ok(()),
            true => lock(&self.state).failure.as_ref().map_or(Ok(()), |error| Err(error.copied())),
        }
    }

    /// Fails in a forked child: the files belong to the parent.
    pub fn check_process(&self) -> Result<()> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(Error::unsupported("use journal", "it was opened before a fork")
                .backend("journal")
                .hint("open the container in the process that uses it")),
        }
    }

    /// Whether this is the owning process.
    pub fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Size of all files in bytes.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Sets the failure that every later use returns.
    pub fn fail(&self, error: Error) {
        lock(&self.state).failure.get_or_insert(error);
        self.failed.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Appends a new segment; earlier ones are sealed.
    pub fn push(&self, segment: Arc<Segment>, first: u64, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::AcqRel);
        lock(&self.state).segments.push_back(RetainedSegment {
            segment,
            done: CompletedSet::new(first),
            bytes,
            full: false,
        });
    }

    /// Counts records of the last segment: descriptive ones, then possibly a write.
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

    /// Releases counted bytes of the last segment.
    pub fn give_back(&self, bytes: u64) {
        if let Some(last) = lock(&self.state).segments.back_mut() {
            let bytes = bytes.min(last.bytes);
            last.bytes -= bytes;
            self.used.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Seals the last segment.
    pub fn fill(&self) {
        if let Some(last) = lock(&self.state).segments.back_mut() {
            last.full = true;
        }
        self.remove_done();
    }

    /// Whether a write of the last segment is not completed.
    pub fn last_is_pending(&self) -> bool {
        lock(&self.state).segments.back().is_some_and(|last| last.done.pending() > 0)
    }

    /// Number of writes that are not completed.
    pub fn pending(&self) -> u64 {
        lock(&self.state).segments.iter().map(|kept| kept.done.pending()).sum()
    }

    /// Sequence number of the first write that is not completed, or `next`.
    pub fn first_pending(&self, next: u64) -> u64 {
        let mut state = lock(&self.state);
        let found = state.segments.iter_mut().find(|kept| kept.done.pending() > 0);
        found.map_or(next, |kept| kept.done.first_pending())
    }

    /// The newest segment.
    pub fn last(&self) -> Option<Arc<Segment>> {
        lock(&self.state).segments.back().map(|kept| kept.segment.clone())
    }

    /// All segments, oldest first.
    pub fn segments(&self) -> Vec<Arc<Segment>> {
        lock(&self.state).segments.iter().map(|kept| kept.segment.clone()).collect()
    }

    /// Marks a write as completed.
    pub fn finish(&self, segment: &Arc<Segment>, sequence: u64) {
        let mut state = lock(&self.state);
        // Segment numbers are consecutive.
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

    /// Waits until `ready` returns true, re-evaluated whenever space may have been freed; returns `false` on timeout.
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
