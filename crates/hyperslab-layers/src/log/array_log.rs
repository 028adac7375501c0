//! The pending writes of one array, shared by all its handles on one rank.

use super::drain::drain;
use super::pending_writes::{PendingWrite, PendingWrites};
use super::reorder::Counts;
use crate::background::{AppendResult, ArrayHandle, Pool, Staging};
use hyperslab_core::{ArraySpec, Result, Selection};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An array and its pending writes.
#[derive(Debug)]
pub(super) struct ArrayLog {
    pub name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Cached specification: querying the format below may wait for a running transfer.
    spec: Arc<ArraySpec>,
    /// Open handles of the format below, in the order of opening, the same on every rank.
    handles: Vec<Arc<ArrayHandle>>,
    /// Writes being drained.
    moving: Option<Arc<PendingWrites>>,
    /// Later writes.
    fresh: Option<PendingWrites>,
}

/// Statistics of a drain.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct DrainStats {
    pub bytes: u64,
    pub memory: u64,
    pub writes: u64,
    /// Whether background I/O was allowed.
    pub allows_background_io: bool,
    pub counts: Counts,
}

/// The thread that drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainThread {
    /// A thread of the program, in one of its calls.
    Program,
    Background,
}

impl ArrayLog {
    pub fn new(name: &str, spec: ArraySpec) -> Self {
        let state = State { spec: Arc::new(spec), handles: Vec::new(), moving: None, fresh: None };
        Self { name: name.into(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn spec(&self) -> Arc<ArraySpec> {
        self.lock().spec.clone()
    }

    /// Sets the specification, after opening or a change of shape without pending writes.
    pub fn set_spec(&self, spec: ArraySpec) {
        let mut state = self.lock();
        if *state.spec != spec {
            state.spec = Arc::new(spec);
        }
    }

    /// Whether `shape` only grows the first dimension, so that byte offsets in the array stay the same.
    pub fn only_grows(&self, shape: &[u64]) -> bool {
        let old = self.spec();
        match (old.shape.split_first(), shape.split_first()) {
            (Some((before, old)), Some((now, new))) => old == new && before <= now,
            _ => false,
        }
    }

    /// Notes a growth of the first dimension with pending writes, none of them being drained. Returns the bytes that the
    /// background may no longer drain, since the array may need the program's thread now.
    pub fn grow(&self, spec: ArraySpec, allows_background_io: bool) -> u64 {
        let mut state = self.lock();
        state.spec = Arc::new(spec);
        let spec = state.spec.clone();
        let Some(batch) = &mut state.fresh else { return 0 };
        batch.grow(spec);
        let pinned = if batch.allows_background_io && !allows_background_io { batch.bytes } else { 0 };
        batch.allows_background_io &= allows_background_io;
        pinned
    }

    pub fn add_handle(&self, place: Arc<ArrayHandle>) {
        self.lock().handles.push(place);
    }

    /// Removes a handle; returns whether it was the last.
    pub fn remove_handle(&self, place: &Arc<ArrayHandle>) -> bool {
        let mut state = self.lock();
        state.handles.retain(|handle| !Arc::ptr_eq(handle, place));
        state.handles.is_empty()
    }

    /// A handle to write through.
    pub fn handle(&self) -> Option<Arc<ArrayHandle>> {
        self.lock().handles.last().cloned()
    }

    /// Memory used by the list of pending writes, in bytes.
    pub fn listed(&self) -> u64 {
        self.lock().fresh.as_ref().map_or(0, |batch| batch.memory)
    }

    pub fn is_logged(&self) -> bool {
        let state = self.lock();
        state.fresh.is_some() || state.moving.is_some()
    }

    /// Appends a write to the log and, in the same order, to the list. Before that, calls `count` with whether the
    /// background may drain it, which is the same for all pending writes.
    pub fn append(
        &self,
        staging: &Arc<Staging>,
        allows_background_io: bool,
        selection: &Selection,
        packed: &[u8],
        count: &mut dyn FnMut(bool),
    ) -> Result<AppendResult> {
        let mut state = self.lock();
        let spec = state.spec.clone();
        let batch = state.fresh.get_or_insert_with(|| PendingWrites::new(spec.clone(), allows_background_io));
        count(batch.allows_background_io);
        if batch.is_full() {
            return Ok(AppendResult::Full { needed: 0 });
        }
        let appended = staging.append(&self.name, &spec.dtype, selection, packed);
        if let AppendResult::Staged(record) = &appended {
            batch.push(selection, record.clone())?;
        }
        if batch.writes.is_empty() {
            state.fresh = None;
        }
        Ok(appended)
    }

    /// Pending writes that may overlap the selection, oldest first. `None` if there are more than `most`.
    pub fn overlapping(&self, selection: &Selection, most: usize) -> Option<Vec<PendingWrite>> {
        let state = self.lock();
        let mut found = Vec::new();
        for batch in state.moving.as_deref().into_iter().chain(&state.fresh) {
            found.extend(batch.overlapping(selection, most)?);
        }
        (found.len() <= most).then_some(found)
    }

    /// Drains pending writes that `mover` may drain, with `each`. One drain at a time. On error the writes stay in the log.
    /// With `only_safe`, writes that are not in the kernel stay.
    pub fn drain(
        &self,
        mover: DrainThread,
        only_safe: bool,
        memory: u64,
        pool: &Arc<Pool>,
        each: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
    ) -> Result<DrainStats> {
        self.drain_by(mover, only_safe, |batch| drain(batch, memory, pool, each))
    }

    /// Drains all writes by one call of `work`.
    pub fn drain_by(
        &self,
        mover: DrainThread,
        only_safe: bool,
        work: impl FnOnce(&PendingWrites) -> Result<Counts>,
    ) -> Result<DrainStats> {
        let Some(batch) = self.begin(mover, only_safe) else { return Ok(DrainStats::default()) };
        let counts = work(&batch).map_err(|error| error.target(&self.name))?;
        self.end(&batch);
        let (bytes, memory, writes) = (batch.bytes, batch.memory, batch.writes.len() as u64);
        Ok(DrainStats { bytes, memory, writes, allows_background_io: batch.allows_background_io, counts })
    }

    /// Begins a drain; returns its writes, if any, which stay in the log until [`ArrayLog::end`].
    pub fn begin(&self, mover: DrainThread, only_safe: bool) -> Option<Arc<PendingWrites>> {
        let mut state = self.lock();
        let movable = |batch: &mut PendingWrites| batch.allows_background_io || mover == DrainThread::Program;
        let mut batch = state.fresh.take_if(movable)?;
        state.fresh = if only_safe { batch.split_off_unlogged() } else { None };
        if batch.writes.is_empty() {
            return None;
        }
        let batch = Arc::new(batch);
        state.moving = Some(batch.clone());
        Some(batch)
    }

    /// Ends a drain: the format below has all its writes.
    pub fn end(&self, batch: &PendingWrites) {
        batch.writes.iter().for_each(|write| write.record.moved());
        // From here on, reads find the elements below.
        self.lock().moving = None;
    }
}
