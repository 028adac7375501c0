//! Elements read before they are asked for.

use super::job::{Place, caught};
use super::pool::Buffer;
use hyperslab_core::{MemoryViewMut, Selection, TransferMode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads of other elements that a slot outlives while there is no room for new ones, for each slot that there may be.
const PATIENCE: usize = 8;

/// Elements that are being read ahead, or were.
#[derive(Debug)]
pub(crate) struct Slot {
    pub place: Arc<Place>,
    pub selection: Selection,
    pub bytes: u64,
    state: Mutex<State>,
    /// Reads of other elements since.
    passed: AtomicUsize,
    /// Gives the room back.
    _room: Room,
}

#[derive(Debug)]
enum State {
    /// Nobody wants it any more, or it could not be read: whoever needs the elements reads them then.
    Given(Option<Buffer>),
    Waiting(Buffer),
}

/// Room in a queue that is given back when this is dropped.
pub(crate) struct Room(pub Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Room")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Slot {
    pub fn new(place: Arc<Place>, selection: Selection, buffer: Buffer, room: Room) -> Arc<Self> {
        let bytes = buffer.as_ref().len() as u64;
        let state = Mutex::new(State::Waiting(buffer));
        Arc::new(Self { place, selection, bytes, state, passed: AtomicUsize::new(0), _room: room })
    }

    /// Reads. What goes wrong is left to the caller's own read.
    pub fn fetch(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Waiting(buffer) = &mut *state else { return };
        let read = caught(|| {
            self.place.array.read(&self.selection, MemoryViewMut::packed(buffer.as_mut()), TransferMode::Independent)
        });
        let State::Waiting(buffer) = std::mem::replace(&mut *state, State::Given(None)) else { return };
        if matches!(read, Ok(Ok(()))) {
            *state = State::Given(Some(buffer));
        }
    }

    /// The elements, once, if they were read.
    pub fn take(&self) -> Option<Buffer> {
        match &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Given(buffer) => buffer.take(),
            State::Waiting(_) => None,
        }
    }
}

/// What was read ahead and not asked for yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Prefetched(Mutex<Vec<Arc<Slot>>>);

impl Prefetched {
    pub fn insert(&self, slot: Arc<Slot>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }

    /// Whether there are fewer than `most`. Those that many reads have passed over are dropped for it: nobody seems to
    /// want them any more.
    pub fn has_room(&self, most: usize) -> bool {
        let len = || self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        if len() >= most {
            self.drop_where(|slot| slot.passed.load(Ordering::Relaxed) >= most.saturating_mul(PATIENCE));
        }
        len() < most
    }

    /// Whether these elements are there or on their way.
    pub fn has(&self, place: &Place, selection: &Selection) -> bool {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().any(|slot| slot.place.is_same(place) && slot.selection == *selection)
    }

    /// Takes out the slot of exactly these elements, which are being read.
    pub fn remove(&self, place: &Place, selection: &Selection) -> Option<Arc<Slot>> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = slots.iter().position(|slot| slot.place.is_same(place) && slot.selection == *selection);
        let slot = at.map(|at| slots.remove(at));
        slots.iter().for_each(|slot| {
            slot.passed.fetch_add(1, Ordering::Relaxed);
        });
        slot
    }

    /// Drops what a write makes stale.
    pub fn drop_overlapping(&self, place: &Place, selection: &Selection) {
        self.drop_where(|slot| slot.place.is_same(place) && slot.selection.overlaps(selection));
    }

    /// Drops the oldest; returns whether there was one.
    pub fn drop_oldest(&self) -> bool {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (!slots.is_empty()).then(|| slots.remove(0));
        drop(slots);
        oldest.is_some()
    }

    pub fn clear(&self) {
        self.drop_where(|_| true);
    }

    fn drop_where(&self, stale: impl Fn(&Slot) -> bool) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped: Vec<_> = slots.extract_if(.., |slot| stale(slot)).collect();
        drop(slots);
        drop(dropped);
    }
}
