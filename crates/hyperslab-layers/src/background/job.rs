//! Jobs of background threads.

use super::payload::Payload;
use super::prefetch_slot::PrefetchSlot;
use super::queue::Task;
use crate::array_key::ArrayKey;
use hyperslab_core::{
    Array, Bytes, Communicator, Error, ErrorKind, MemoryLayout, MemoryView, Result, Selection, TransferMode,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An open array of the format below.
#[derive(Debug)]
pub(crate) struct ArrayHandle {
    pub array: Arc<dyn Array>,
    pub name: String,
    /// Identity of the array, equal for all its handles.
    pub known: ArrayKey,
}

impl ArrayHandle {
    pub fn new(array: Arc<dyn Array>, name: &str) -> Arc<Self> {
        let known = ArrayKey::of(&*array, name);
        Arc::new(Self { array, name: name.into(), known })
    }

    /// Whether both are handles of the same array.
    pub fn is_same(&self, other: &Self) -> bool {
        self.known == other.known
    }
}

/// A transfer to run in the background.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly all are writes
pub(crate) enum Job {
    Write { place: Arc<ArrayHandle>, selection: Selection, data: Payload, layout: MemoryLayout, transfer: TransferMode },
    Prefetch(Arc<PrefetchSlot>),
}

impl Job {
    /// An empty part in a collective write.
    pub fn join_collective(place: Arc<ArrayHandle>, rank: usize) -> Self {
        let (selection, layout) = (Selection::empty(rank), MemoryLayout::packed());
        Self::Write {
            place,
            selection,
            data: Payload::Memory(Bytes::new()),
            layout,
            transfer: TransferMode::Collective,
        }
    }

    pub fn place(&self) -> &Arc<ArrayHandle> {
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

    /// Whether it writes elements of `selection`.
    pub fn writes(&self, place: &ArrayHandle, selection: &Selection) -> bool {
        self.is_write() && self.place().is_same(place) && self.selection().overlaps(selection)
    }

    /// Bytes transferred.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Write { data, .. } => data.len(),
            Self::Prefetch(slot) => slot.bytes,
        }
    }

    /// Runs the transfer in `group`. After a failure of another job, only takes part in collective calls. Turns panics into
    /// errors; gives up the group if other ranks may wait for this one.
    pub fn run(&self, after_failure: bool, group: &dyn Communicator) -> Result<()> {
        match self {
            Self::Prefetch(slot) => {
                slot.fetch();
                Ok(())
            }
            Self::Write { place, selection, data, layout, transfer } => {
                let empty = Selection::empty(selection.rank());
                let done = catch_panic(|| match after_failure {
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

    /// If the data cannot be read any more, other ranks must not be left waiting.
    fn write(
        &self,
        place: &ArrayHandle,
        selection: &Selection,
        data: &Payload,
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
            // The cause is reported.
            let _ = place.array.write(&nothing, MemoryView::packed(&[]), transfer);
        }
        written.map(|()| data.written())
    }
}

/// Runs `work` and turns a panic into an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<Result<T>> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Error::new(ErrorKind::Io, "write", format!("the format below panicked: {words}"))
    })
}

impl Task for Job {
    /// Overlapping accesses stay in order if one of them writes; collective ones always.
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
