//! Arrays of the layer.

use super::choice::{Choice, Each};
use super::controller::{CallGuard, Controller};
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Error, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection,
    Strings, Telemetry, TransferMode, agree,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle of an array: one handle per strategy.
#[derive(Debug)]
pub(super) struct AutoArray {
    pub by: Each<Option<Arc<dyn Array>>>,
    /// Bytes of an element.
    pub element: u64,
    pub controller: Arc<Controller>,
    pub comm: Arc<dyn Communicator>,
    pub closed: AtomicBool,
}

impl AutoArray {
    fn way(&self, choice: Choice) -> Result<&dyn Array> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid("access array", "it is closed"));
        }
        let array = self.by[choice.index()].as_deref();
        array.ok_or_else(|| Error::invalid("access array", "there is no such way to it"))
    }

    fn enter(&self, elements: u64, writes: bool, transfer: TransferMode) -> CallGuard<'_> {
        self.controller.transfer(elements.saturating_mul(self.element), writes, transfer == TransferMode::Collective)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for AutoArray {
    fn spec(&self) -> Result<ArraySpec> {
        let trip = self.controller.call();
        self.way(trip.way())?.spec()
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let trip = self.enter(selection.len(), true, transfer);
        self.way(trip.way())?.write(selection, memory, transfer)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let trip = self.enter(selection.len(), false, transfer);
        self.way(trip.way())?.read(selection, memory, transfer)
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        let trip = self.enter(selection.len(), true, transfer);
        self.way(trip.way())?.write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        let trip = self.enter(selection.len(), false, transfer);
        self.way(trip.way())?.read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let elements = parts.iter().fold(0, |sum: u64, (selection, _)| sum.saturating_add(selection.len()));
        let trip = self.enter(elements, true, transfer);
        self.way(trip.way())?.write_many(parts, transfer)
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        let trip = self.enter(selection.len(), true, transfer);
        self.way(trip.way())?.submit_write(selection, data, layout, transfer)
    }

    fn prefetch(&self, selection: &Selection) {
        let trip = self.controller.call();
        if let Ok(array) = self.way(trip.way()) {
            array.prefetch(selection);
        }
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn allows_background_io(&self) -> bool {
        self.by[Choice::Sync.index()].as_ref().is_none_or(|array| array.allows_background_io())
    }

    fn object(&self) -> Option<u64> {
        self.by[Choice::Sync.index()].as_ref().and_then(|array| array.object())
    }

    fn write_back(&self) -> Result<()> {
        let trip = self.controller.call();
        self.way(trip.way())?.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let trip = self.controller.collective_call(false);
        agree(&*self.comm, self.way(trip.way()).and_then(|array| array.resize(shape)))?;
        // The other ranks see the error.
        let others = self.by.iter().enumerate().filter(|(way, _)| *way != trip.way().index());
        self.controller
            .strategies
            .one
            .repeat(|| others.filter_map(|(_, array)| array.as_ref()).try_for_each(|array| array.resize(shape)))
    }

    /// Does not wait for writes: see the module of the layer.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let _trip = self.controller.call();
        let closed: Vec<Result<()>> = self.by.iter().flatten().map(|array| array.close()).collect();
        closed.into_iter().collect()
    }
}

impl Telemetry for AutoArray {
    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.way(Choice::Sync)?.explain(selection, layout, writes)
    }
}
