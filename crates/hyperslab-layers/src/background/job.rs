//! A transfer for a background thread.

use super::data::Data;
use super::prefetched::Slot;
use super::queue::Task;
use crate::known::Known;
use hyperslab_core::{
    Array, Bytes, Communicator, Error, ErrorKind, MemoryLayout, MemoryView, Result, Selection, TransferMode,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An open array of the format below.
#[derive(Debug)]
pub(crate) struct Place {
    pub array: Arc<dyn Array>,
    pub name: String,
    /// Equal for all handles of an array, and for those only.
    pub known: Known,
}

impl Place {
    pub fn new(array: Arc<dyn Array>, name: &str) -> Arc<Self> {
        let known = Known::of(&*array, name);
        Arc::new(Self { array, name: name.into(), known })
    }

    /// Whether both are the same array.
    pub fn is_same(&self, other: &Self) -> bool {
        self.known == other.known
    }
}

/// What a background thread does next.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are writes
pub(crate) enum Job {
    Write { place: Arc<Place>, selection: Selection, data: Data, layout: MemoryLayout, transfer: TransferMode },
    Prefetch(Arc<Slot>),
}

impl Job {
    /// A part in a collective write of others.
    pub fn attend(place: Arc<Place>, rank: usize) -> Self {
        let (selection, layout) = (Selection::empty(rank), MemoryLayout::packed());
        Self::Write { place, selection, data: Data::Memory(Bytes::new()), layout, transfer: TransferMode::Collective }
    }

    pub fn place(&self) -> &Arc<Place> {
        match self {
            Self::Write { place, .. } => place,
            Self::Prefetch(slot) => &slot.place,
        }
    }

    pub fn selection(&self) -> &Selection {
        match self {
            Self::Write { selection, .. } => selection,
            Self::Prefetch(slot) => &slot.selection,
        }
    }

    pub fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    pub fn is_collective(&self) -> bool {
        matches!(self, Self::Write { transfer: TransferMode::Collective, .. })
    }

    /// Whether it writes any of these elements.
    pub fn writes(&self, place: &Place, selection: &Selection) -> bool {
        self.is_write() && self.place().is_same(place) && self.selection().overlaps(selection)
    }

    /// Bytes it moves.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Write { data, .. } => data.len(),
            Self::Prefetch(slot) => slot.bytes,
        }
    }

    /// Does it, in `group`. After a failure of another only what other ranks count on: presence. A panic below is an error
    /// here; if others may wait for this rank then, the group is given up.
    pub fn run(&self, after_failure: bool, group: &dyn Communicator) -> Result<()> {
        match self {
            Self::Prefetch(slot) => {
                slot.fetch();
                Ok(())
            }
            Self::Write { place, selection, data, layout, transfer } => {
                let empty = Selection::empty(selection.rank());
                let done = caught(|| match after_failure {
                    true => place.array.write(&empty, MemoryView::packed(&[]), *transfer),
                    false => self.write(place, selection, data, layout, *transfer),
                });
                let done = done.unwrap_or_else(|panic| {
                    if *transfer == TransferMode::Collective {
                        group.abort(&panic);
                    }
                    Err(panic)
                });
                done.map_err(|error| error.target(&place.name))
            }
        }
    }

    /// Data that cannot be had any more are no reason to leave other ranks waiting.
    fn write(
        &self,
        place: &Place,
        selection: &Selection,
        data: &Data,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<()> {
        let mut called = false;
        let written = data.with(|data| {
            called = true;
            place.array.write(selection, MemoryView { data, layout }, transfer)
        });
        if !called && transfer == TransferMode::Collective {
            let nothing = Selection::empty(selection.rank());
            // The cause is told.
            let _ = place.array.write(&nothing, MemoryView::packed(&[]), transfer);
        }
        written.map(|()| data.written())
    }
}

/// The result of `work`, or a panic as an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<Result<T>> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Error::new(ErrorKind::Io, "write", format!("the format below panicked: {words}"))
    })
}

impl Task for Job {
    /// Overlapping accesses keep their order if one writes, and collective ones theirs.
    fn follows(&self, earlier: &Self) -> bool {
        (self.is_collective() && earlier.is_collective())
            || ((self.is_write() || earlier.is_write())
                && self.place().is_same(earlier.place())
                && self.selection().overlaps(earlier.selection()))
    }

    fn must_run(&self) -> bool {
        self.is_collective()
    }

    fn words(&self) -> String {
        self.place().name.clone()
    }
}
