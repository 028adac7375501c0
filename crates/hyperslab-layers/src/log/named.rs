//! What all handles of an array share, on one rank.

use super::batch::{Batch, Waiting};
use super::drain::drain;
use super::reorder::Counts;
use crate::background::{Appended, Place, Pool, Staging};
use hyperslab_core::{ArraySpec, Result, Selection};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An array, and its writes that are in the log.
#[derive(Debug)]
pub(super) struct Named {
    pub name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// As the format below says. Asking it may take as long as a transfer that is under way.
    spec: Arc<ArraySpec>,
    /// Open arrays of the format below, in the order of opening: the same on every rank.
    handles: Vec<Arc<Place>>,
    /// On their way to the format below.
    moving: Option<Arc<Batch>>,
    /// Later ones.
    fresh: Option<Batch>,
}

/// A batch that left.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Left {
    pub bytes: u64,
    pub memory: u64,
    pub writes: u64,
    /// Whether the background might have moved it.
    pub allows_background_io: bool,
    pub counts: Counts,
}

/// Who moves writes to the format below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mover {
    /// A thread of the program, in a call of it.
    Program,
    Background,
}

impl Named {
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

    /// After a change of its shape, when nothing of it is in the log, or an opening.
    pub fn set_spec(&self, spec: ArraySpec) {
        let mut state = self.lock();
        if *state.spec != spec {
            state.spec = Arc::new(spec);
        }
    }

    /// Whether an array of this shape is the same but for more rows, so that all bytes lie where they did among those of the array.
    pub fn only_grows(&self, shape: &[u64]) -> bool {
        let old = self.spec();
        match (old.shape.split_first(), shape.split_first()) {
            (Some((before, old)), Some((now, new))) => old == new && before <= now,
            _ => false,
        }
    }

    /// After a growth along the first dimension, with writes in the log that nobody is moving. Returns how many bytes the
    /// background may no longer move: the array may need the program's thread from now on.
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

    pub fn add_handle(&self, place: Arc<Place>) {
        self.lock().handles.push(place);
    }

    /// Returns whether it was the last.
    pub fn remove_handle(&self, place: &Arc<Place>) -> bool {
        let mut state = self.lock();
        state.handles.retain(|handle| !Arc::ptr_eq(handle, place));
        state.handles.is_empty()
    }

    /// Through which to write to it.
    pub fn handle(&self) -> Option<Arc<Place>> {
        self.lock().handles.last().cloned()
    }

    /// Bytes of memory that the list of what is in the log takes.
    pub fn listed(&self) -> u64 {
        self.lock().fresh.as_ref().map_or(0, |batch| batch.memory)
    }

    pub fn is_logged(&self) -> bool {
        let state = self.lock();
        state.fresh.is_some() || state.moving.is_some()
    }

    /// Appends a write to the log. The order of the log and of the list is the same. `count` is told before whether the background
    /// may move it, which is the same for all that wait.
    pub fn append(
        &self,
        staging: &Arc<Staging>,
        allows_background_io: bool,
        selection: &Selection,
        packed: &[u8],
        count: &mut dyn FnMut(bool),
    ) -> Result<Appended> {
        let mut state = self.lock();
        let spec = state.spec.clone();
        let batch = state.fresh.get_or_insert_with(|| Batch::new(spec.clone(), allows_background_io));
        count(batch.allows_background_io);
        if batch.is_full() {
            return Ok(Appended::Full { needed: 0 });
        }
        let appended = staging.append(&self.name, &spec.dtype, selection, packed);
        if let Appended::Staged(record) = &appended {
            batch.push(selection, record.clone())?;
        }
        if batch.writes.is_empty() {
            state.fresh = None;
        }
        Ok(appended)
    }

    /// The writes in the log that may have any of these elements, oldest first. `None`: more than `most`.
    pub fn touching(&self, selection: &Selection, most: usize) -> Option<Vec<Waiting>> {
        let state = self.lock();
        let mut found = Vec::new();
        for batch in state.moving.as_deref().into_iter().chain(&state.fresh) {
            found.extend(batch.touching(selection, most)?);
        }
        (found.len() <= most).then_some(found)
    }

    /// Moves what is in the log, and `mover` may move, to the format below with `each`. Only one at a time may do so. If it
    /// fails, the writes stay in the log.
    /// With `only_safe`, those stay that are in memory alone.
    pub fn drain(
        &self,
        mover: Mover,
        only_safe: bool,
        memory: u64,
        pool: &Arc<Pool>,
        each: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
    ) -> Result<Left> {
        self.drain_by(mover, only_safe, |batch| drain(batch, memory, pool, each))
    }

    /// The same, with all writes at once.
    pub fn drain_by(&self, mover: Mover, only_safe: bool, work: impl FnOnce(&Batch) -> Result<Counts>) -> Result<Left> {
        let Some(batch) = self.begin(mover, only_safe) else { return Ok(Left::default()) };
        let counts = work(&batch).map_err(|error| error.target(&self.name))?;
        self.end(&batch);
        let (bytes, memory, writes) = (batch.bytes, batch.memory, batch.writes.len() as u64);
        Ok(Left { bytes, memory, writes, allows_background_io: batch.allows_background_io, counts })
    }

    /// What `drain` moves, if there is anything. It stays in the log until [`Named::end`].
    pub fn begin(&self, mover: Mover, only_safe: bool) -> Option<Arc<Batch>> {
        let mut state = self.lock();
        let movable = |batch: &mut Batch| batch.allows_background_io || mover == Mover::Program;
        let mut batch = state.fresh.take_if(movable)?;
        state.fresh = if only_safe { batch.split_off_unsafe() } else { None };
        if batch.writes.is_empty() {
            return None;
        }
        let batch = Arc::new(batch);
        state.moving = Some(batch.clone());
        Some(batch)
    }

    /// The format below has all of it.
    pub fn end(&self, batch: &Batch) {
        batch.writes.iter().for_each(|write| write.record.moved());
        // From now on reads find the elements below.
        self.lock().moving = None;
    }
}
