//! Arrays on the emulated device.

use super::container::Shared;
use super::device::sleep_until;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, Strings,
    TransferMode,
};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A handle of an array.
#[derive(Debug)]
pub(super) struct SlowArray {
    inner: Arc<dyn Array>,
    shared: Arc<Shared>,
    /// Constant, and slow to query.
    dtype: OnceLock<Datatype>,
}

impl SlowArray {
    pub fn new(inner: Arc<dyn Array>, shared: Arc<Shared>) -> Self {
        Self { inner, shared, dtype: OnceLock::new() }
    }

    /// Bytes of a transfer; 0 if the format below will refuse it.
    fn bytes(&self, selection: &Selection, layout: &MemoryLayout) -> u64 {
        if selection.is_empty() {
            return 0;
        }
        let dtype = match self.dtype.get() {
            Some(dtype) => dtype,
            None => match self.inner.spec() {
                Ok(spec) => self.dtype.get_or_init(|| spec.dtype),
                Err(_) => return 0,
            },
        };
        let element = layout.plan(dtype).map_or(0, |plan| plan.pieces.iter().map(|piece| piece.len).sum());
        selection.len().saturating_mul(element)
    }

    fn book(&self, selection: &Selection, layout: &MemoryLayout) -> Option<Instant> {
        self.shared.transfer(self.bytes(selection, layout))
    }
}

/// Delays a successful transfer until the device has completed it. Errors are returned at once.
fn at(complete: Option<Instant>, result: Result<()>) -> Result<()> {
    if result.is_ok() {
        complete.into_iter().for_each(sleep_until);
    }
    result
}

#[deny(clippy::missing_trait_methods)]
impl Array for SlowArray {
    hyperslab_core::forward!(self, self.inner, [prefetch, telemetry, allows_background_io, object, write_back]);

    /// Data already in memory takes no emulated time.
    fn spec(&self) -> Result<ArraySpec> {
        self.inner.spec()
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let complete = self.book(selection, memory.layout);
        at(complete, self.inner.write(selection, memory, transfer))
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let complete = self.book(selection, memory.layout);
        at(complete, self.inner.read(selection, memory, transfer))
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        let complete = self.shared.transfer(strings.bytes());
        at(complete, self.inner.write_strings(selection, strings, transfer))
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        let strings = self.inner.read_strings(selection, transfer)?;
        at(self.shared.transfer(strings.bytes()), Ok(()))?;
        Ok(strings)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let complete = parts.iter().filter_map(|(selection, memory)| self.book(selection, memory.layout)).max();
        at(complete, self.inner.write_many(parts, transfer))
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        let complete = self.book(selection, layout);
        let below = self.inner.submit_write(selection, data, layout, transfer)?;
        let Some(complete) = complete else { return Ok(below) };
        self.shared.note_submitted(complete);
        let device = self.shared.device.clone();
        Ok(Request::pending(async move {
            below.await?;
            device.reach(complete).await;
            Ok(())
        }))
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.shared.device.answer(|| self.inner.resize(shape))
    }

    fn close(&self) -> Result<()> {
        self.shared.device.answer(|| self.inner.close())
    }
}
