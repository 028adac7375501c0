//! Prefetched elements.

use super::job::{ArrayHandle, catch_panic};
use super::pool::Buffer;
use hyperslab_core::{MemoryViewMut, Selection, TransferMode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads of other elements, per permitted slot, after which an unused slot may be dropped.
const PATIENCE: usize = 8;

/// A running or completed prefetch.
#[derive(Debug)]
pub(crate) struct PrefetchSlot {
    pub place: Arc<ArrayHandle>,
    pub selection: Selection,
    pub bytes: u64,
    state: Mutex<State>,
    /// Number of reads of other elements since.
    passed: AtomicUsize,
    /// Releases its memory on drop.
    _room: MemoryReservation,
}

#[derive(Debug)]
enum State {
    /// Completed, or taken or failed (`None`): then the elements are read when needed.
    Given(Option<Buffer>),
    Waiting(Buffer),
}

/// Reserved memory of a queue, released when dropped.
pub(crate) struct MemoryReservation(pub Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for MemoryReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryReservation")
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl PrefetchSlot {
    pub fn new(place: Arc<ArrayHandle>, selection: Selection, buffer: Buffer, room: MemoryReservation) -> Arc<Self> {
        let bytes = buffer.as_ref().len() as u64;
        let state = Mutex::new(State::Waiting(buffer));
        Arc::new(Self { place, selection, bytes, state, passed: AtomicUsize::new(0), _room: room })
    }

    /// Runs the prefetch. Errors are left to the caller's own read.
    pub fn fetch(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Waiting(buffer) = &mut *state else { return };
        let read = catch_panic(|| {
            self.place.array.read(&self.selection, MemoryViewMut::packed(buffer.as_mut()), TransferMode::Independent)
        });
        let State::Waiting(buffer) = std::mem::replace(&mut *state, State::Given(None)) else { return };
        if matches!(read, Ok(Ok(()))) {
            *state = State::Given(Some(buffer));
        }
    }

    /// Takes the elements, if they were read.
    pub fn take(&self) -> Option<Buffer> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Given(buffer) => buffer.take(),
            State::Waiting(_) => None,
        }
    }
}

/// Unused prefetches, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PrefetchSlots(Mutex<Vec<Arc<PrefetchSlot>>>);

impl PrefetchSlots {
    pub fn insert(&self, slot: Arc<PrefetchSlot>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }

    /// Whether there are fewer than `most`, after dropping slots that many reads have passed over.
    pub fn has_room(&self, most: usize) -> bool {
        let len = || self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        if len() >= most {
            self.drop_where(|slot| slot.passed.load(Ordering::Relaxed) >= most.saturating_mul(PATIENCE));
        }
        len() < most
    }

    /// Whether these elements are prefetched or being prefetched.
    pub fn has(&self, place: &ArrayHandle, selection: &Selection) -> bool {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().any(|slot| slot.place.is_same(place) && slot.selection == *selection)
    }

    /// Removes and returns the slot of exactly these elements.
    pub fn remove(&self, place: &ArrayHandle, selection: &Selection) -> Option<Arc<PrefetchSlot>> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = slots.iter().position(|slot| slot.place.is_same(place) && slot.selection == *selection);
        let slot = at.map(|at| slots.remove(at));
        slots.iter().for_each(|slot| {
            slot.passed.fetch_add(1, Ordering::Relaxed);
        });
        slot
    }

    /// Drops slots that a write makes stale.
    pub fn drop_overlapping(&self, place: &ArrayHandle, selection: &Selection) {
        self.drop_where(|slot| slot.place.is_same(place) && slot.selection.overlaps(selection));
    }

    /// Drops the oldest slot; returns whether there was one.
    pub fn drop_oldest(&self) -> bool {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (!slots.is_empty()).then(|| slots.remove(0));
        drop(slots);
        oldest.is_some()
    }

    pub fn clear(&self) {
        self.drop_where(|_| true);
    }

    fn drop_where(&self, stale: impl Fn(&PrefetchSlot) -> bool) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped: Vec<_> = slots.extract_if(.., |slot| stale(slot)).collect();
        drop(slots);
        drop(dropped);
    }
}
