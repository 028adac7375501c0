//! An open array with faults.

use super::plan::{Fault, Plan};
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection,
    Strings, TransferMode, agree,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[derive(Debug)]
pub(super) struct FaultyArray {
    inner: Arc<dyn Array>,
    plan: Arc<Plan>,
    comm: Arc<dyn Communicator>,
    closed: AtomicBool,
}

/// The elements of the first half along the slowest dimension that has more than one index: in packed memory they
/// come first.
pub(super) fn first_half(selection: &Selection) -> Result<Selection> {
    let nothing = Selection::empty(selection.rank());
    let Some((low, mut high)) = selection.bounds() else { return Ok(nothing) };
    let Some(split) = (0..low.len()).find(|&d| high[d] - low[d] > 1) else { return Ok(nothing) };
    high[split] = low[split] + (high[split] - low[split]) / 2;
    let counts: Vec<u64> = low.iter().zip(&high).map(|(low, high)| high - low).collect();
    selection.intersect(&Selection::dense(&low, &counts)?)
}

impl FaultyArray {
    pub fn new(inner: Arc<dyn Array>, plan: Arc<Plan>, comm: Arc<dyn Communicator>) -> Self {
        Self { inner, plan, comm, closed: AtomicBool::new(false) }
    }

    /// What is left of a write that fails. In a collective one this takes part in place of the whole.
    fn remainder(&self, fault: Fault, selection: &Selection, memory: MemoryView<'_>) -> Result<(Selection, Vec<u8>)> {
        let nothing = Ok((Selection::empty(selection.rank()), Vec::new()));
        let spec = self.inner.spec()?;
        if fault != Fault::ShortWrite || !memory.layout.plan(&spec.dtype)?.covers_element() {
            return nothing;
        }
        let half = first_half(selection)?;
        let mut packed = vec![0; (half.len() * spec.dtype.size()) as usize];
        Gather::new(memory, &spec.dtype, selection.len())?.next_into(&mut packed);
        Ok((half, packed))
    }

    /// Does what a failing write of these parts does, and returns its error.
    fn fail(
        &self,
        fault: Fault,
        parts: &[(&Selection, MemoryView<'_>)],
        transfer: TransferMode,
    ) -> hyperslab_core::Error {
        for (number, (selection, memory)) in parts.iter().enumerate() {
            // Of several parts, half of the first is written.
            let fault = if number == 0 { fault } else { Fault::NoSpace };
            let (half, packed) = self
                .remainder(fault, selection, *memory)
                .unwrap_or_else(|_| (Selection::empty(selection.rank()), Vec::new()));
            if transfer == TransferMode::Collective || !half.is_empty() {
                // Whatever this says, the fault is what the caller hears.
                let _ = self.inner.write(&half, MemoryView::packed(&packed), transfer);
            }
        }
        fault.error("write")
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for FaultyArray {
    hyperslab_core::forward!(self, self.inner, [telemetry, allows_background_io, object, write_back]);

    fn spec(&self) -> Result<ArraySpec> {
        self.plan.call("describe array")?;
        self.inner.spec()
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.plan.next() {
            None => self.inner.write(selection, memory, transfer),
            Some(fault) => Err(self.fail(fault, &[(selection, memory)], transfer)),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let Err(error) = self.plan.call("read") else { return self.inner.read(selection, memory, transfer) };
        if transfer == TransferMode::Collective {
            let nothing = Selection::empty(selection.rank());
            let _ = self.inner.read(&nothing, MemoryViewMut::packed(&mut []), transfer);
        }
        Err(error)
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        match self.plan.call("write") {
            Ok(()) => self.inner.write_strings(selection, strings, transfer),
            Err(error) => Err(error),
        }
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.plan.call("read")?;
        self.inner.read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        match self.plan.next() {
            None => self.inner.write_many(parts, transfer),
            Some(fault) => Err(self.fail(fault, parts, transfer)),
        }
    }

    /// A failing submission is refused at once.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        match self.plan.next() {
            None => self.inner.submit_write(selection, data, layout, transfer),
            Some(fault) => Err(self.fail(fault, &[(selection, MemoryView { data: &data, layout })], transfer)),
        }
    }

    /// Cannot fail, and does not count.
    fn prefetch(&self, selection: &Selection) {
        self.inner.prefetch(selection);
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        agree(&*self.comm, self.plan.call("resize"))?;
        self.inner.resize(shape)
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, SeqCst) {
            return Ok(());
        }
        let fault = self.plan.call("close array");
        fault.and(self.inner.close())
    }
}
