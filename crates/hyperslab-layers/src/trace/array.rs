//! Arrays whose calls are recorded.

use super::recorder::Recorder;
use hyperslab_core::workload::Step;
use hyperslab_core::{
    Array, Bytes, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, Strings, TransferMode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle of an array.
#[derive(Debug)]
pub(super) struct TraceArray {
    inner: Arc<dyn Array>,
    /// The slot; `None` if its opening was not recorded.
    slot: Option<u32>,
    recorder: Arc<Recorder>,
    /// Whether it is closed: its slot may be reused.
    closed: AtomicBool,
}

/// Direction of a transfer.
#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

impl TraceArray {
    pub fn new(inner: Arc<dyn Array>, slot: Option<u32>, recorder: Arc<Recorder>) -> Self {
        Self { inner, slot, recorder, closed: AtomicBool::new(false) }
    }

    /// Runs a transfer and records it. A failed part of a collective transfer is recorded as empty.
    fn transfer<T>(
        &self,
        way: Way,
        selection: &Selection,
        memory: &MemoryLayout,
        transfer: TransferMode,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(slot) = self.slot else { return call() };
        let step = |selection: Selection, memory: Arc<MemoryLayout>| match way {
            Way::In => Step::Write { slot, selection, memory, transfer },
            Way::Out => Step::Read { slot, selection, memory, transfer },
        };
        self.recorder.call_or(
            call,
            |_, _| Some(step(selection.clone(), Arc::new(memory.clone()))),
            |_| {
                (transfer == TransferMode::Collective).then(|| step(Selection::empty(selection.rank()), Arc::default()))
            },
        )
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for TraceArray {
    hyperslab_core::forward!(self, self.inner, [spec, prefetch, telemetry, allows_background_io, object, write_back]);

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let call = || self.inner.write(selection, memory, transfer);
        self.transfer(Way::In, selection, memory.layout, transfer, call)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let layout = memory.layout;
        self.transfer(Way::Out, selection, layout, transfer, || self.inner.read(selection, memory, transfer))
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        let call = || self.inner.write_strings(selection, strings, transfer);
        self.transfer(Way::In, selection, &MemoryLayout::packed(), transfer, call)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        let call = || self.inner.read_strings(selection, transfer);
        self.transfer(Way::Out, selection, &MemoryLayout::packed(), transfer, call)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let call = || self.inner.write_many(parts, transfer);
        if transfer == TransferMode::Collective {
            // Ranks may have different numbers of parts, even none, but record one collective step.
            let nothing = || Selection::empty(self.inner.spec().map_or(0, |spec| spec.shape.len()));
            let first = parts.first().map_or_else(nothing, |(selection, _)| (*selection).clone());
            let union = parts.iter().try_fold(first.clone(), |all, (selection, _)| all.union_with(selection));
            let all = union.unwrap_or(first);
            return self.transfer(Way::In, &all, &MemoryLayout::packed(), transfer, call);
        }
        let [before @ .., (last, memory)] = parts else { return call() };
        let Some(slot) = self.slot else { return call() };
        let done = self.transfer(Way::In, last, memory.layout, transfer, call);
        if done.is_ok() {
            self.recorder.also(before.iter().map(|(selection, memory)| Step::Write {
                slot,
                selection: (*selection).clone(),
                memory: Arc::new(memory.layout.clone()),
                transfer,
            }));
        }
        done
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        let call = || self.inner.submit_write(selection, data, layout, transfer);
        self.transfer(Way::In, selection, layout, transfer, call)
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.recorder.call(
            || self.inner.resize(shape),
            |state, ()| {
                let slot = self.slot?;
                state.resized(slot);
                Some(Step::Resize { slot, shape: shape.into() })
            },
        )
    }

    fn close(&self) -> Result<()> {
        self.recorder.call(
            || self.inner.close(),
            |state, ()| {
                let slot = self.slot.filter(|_| !self.closed.swap(true, Ordering::AcqRel))?;
                state.leave(slot);
                Some(Step::CloseArray { slot })
            },
        )
    }
}
