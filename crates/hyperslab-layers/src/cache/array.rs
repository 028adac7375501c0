//! Arrays of the layer.

use super::array_state::ArrayState;
use super::container::Shared;
use super::geometry::Geometry;
use super::read::Reading;
use hyperslab_core::{Array, Bytes, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, TransferMode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle of an array.
#[derive(Debug)]
pub(super) struct CachedArray {
    inner: Arc<dyn Array>,
    named: Arc<ArrayState>,
    shared: Arc<Shared>,
    closed: AtomicBool,
}

impl CachedArray {
    pub fn new(inner: Arc<dyn Array>, named: Arc<ArrayState>, shared: Arc<Shared>) -> Self {
        Self { inner, named, shared, closed: AtomicBool::new(false) }
    }

    /// The block geometry, if this transfer uses the cache.
    fn geometry(&self, transfer: TransferMode) -> Option<Arc<Geometry>> {
        let together = transfer == TransferMode::Collective && self.shared.comm.size() > 1;
        let closed = self.closed.load(Ordering::Acquire) || self.shared.is_closed();
        if together || closed { None } else { self.named.geometry() }
    }

    /// Invalidates overlapping blocks when dropped, whether the write succeeds or not.
    fn writing<'a>(&'a self, selections: &'a [&'a Selection], transfer: TransferMode) -> WriteGuard<'a> {
        WriteGuard { named: &self.named, shared: &self.shared, selections, transfer }
    }
}

/// A running write.
struct WriteGuard<'a> {
    named: &'a ArrayState,
    shared: &'a Shared,
    selections: &'a [&'a Selection],
    transfer: TransferMode,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        let Some(geometry) = self.named.geometry() else { return };
        if self.transfer == TransferMode::Collective && self.shared.comm.size() > 1 {
            // Other ranks wrote too, at unknown elements.
            self.shared.store.forget_array(&geometry);
            return;
        }
        self.selections.iter().for_each(|selection| self.shared.store.forget(&geometry, selection));
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for CachedArray {
    // Strings are never in the cache.
    hyperslab_core::forward!(
        self,
        self.inner,
        [spec, write_strings, read_strings, telemetry, allows_background_io, object, write_back]
    );

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let selections = [selection];
        let _written = self.writing(&selections, transfer);
        self.inner.write(selection, memory, transfer)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let fits = |geometry: &Arc<Geometry>| {
            let packed = memory.layout.is_packed()
                && selection.len().checked_mul(geometry.element()) == Some(memory.data.len() as u64);
            selection.check_inside(&geometry.spec.shape).is_ok()
                && (packed || memory.check(geometry.dtype(), selection.len()).is_ok())
        };
        // Invalid arguments are refused by the format below.
        let Some(geometry) = self.geometry(transfer).filter(|_| !selection.is_empty()).filter(fits) else {
            return self.inner.read(selection, memory, transfer);
        };
        let reading = Reading { store: &self.shared.store, geometry: &geometry, inner: &*self.inner, transfer };
        let kept = reading.read(selection, memory)?;
        self.shared.counts.note(selection.len() * geometry.element(), kept * geometry.element());
        Ok(())
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let selections: Vec<&Selection> = parts.iter().map(|(selection, _)| *selection).collect();
        let _written = self.writing(&selections, transfer);
        self.inner.write_many(parts, transfer)
    }

    /// Invalidates blocks at submission, when the format below makes the write visible, and again at completion, in case it
    /// did not.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        let selections = [selection];
        let mut request = {
            let _written = self.writing(&selections, transfer);
            self.inner.submit_write(selection, data, layout, transfer)?
        };
        if let Some(ended) = request.test() {
            return ended.map(|()| Request::done());
        }
        let (named, shared, selection) = (self.named.clone(), self.shared.clone(), selection.clone());
        Ok(Request::pending(async move {
            let _written = WriteGuard { named: &named, shared: &shared, selections: &[&selection], transfer };
            request.await
        }))
    }

    fn prefetch(&self, selection: &Selection) {
        if !self.shared.prefetch || selection.is_empty() {
            return;
        }
        let Some(geometry) = self.geometry(TransferMode::Independent) else { return self.inner.prefetch(selection) };
        if selection.check_inside(&geometry.spec.shape).is_ok() {
            let transfer = TransferMode::Independent;
            let reading = Reading { store: &self.shared.store, geometry: &geometry, inner: &*self.inner, transfer };
            // A hint only: ignored if it cannot be planned.
            let _ = reading.hint(selection);
        }
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let resized = self.inner.resize(shape);
        // Also after a failure, which may have written a part.
        let geometry = self.inner.spec().and_then(|spec| self.shared.geometry(self.shared.store.number(), spec));
        let (geometry, known) = match geometry {
            Ok(geometry) => (geometry, Ok(())),
            Err(error) => (None, Err(error)),
        };
        if let Some(before) = self.named.set(geometry) {
            self.shared.store.forget_array(&before);
        }
        resized.and(known)
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.inner.close()
    }
}
