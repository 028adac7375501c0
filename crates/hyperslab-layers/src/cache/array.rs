//! An open array behind the layer.

use super::container::Shared;
use super::geometry::Geometry;
use super::named::Named;
use super::read::Reading;
use hyperslab_core::{
    Array, ArraySpec, Bytes, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, TransferMode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One rank's handle of an array.
#[derive(Debug)]
pub(super) struct CachedArray {
    inner: Arc<dyn Array>,
    named: Arc<Named>,
    shared: Arc<Shared>,
    closed: AtomicBool,
}

impl CachedArray {
    pub fn new(inner: Arc<dyn Array>, named: Arc<Named>, shared: Arc<Shared>) -> Self {
        Self { inner, named, shared, closed: AtomicBool::new(false) }
    }

    /// How the array is cut into blocks, if this transfer is one that blocks are used for.
    fn geometry(&self, transfer: TransferMode) -> Option<Arc<Geometry>> {
        let together = transfer == TransferMode::Collective && self.shared.comm.size() > 1;
        let closed = self.closed.load(Ordering::Acquire) || self.shared.is_closed();
        if together || closed { None } else { self.named.geometry() }
    }

    /// Makes sure, when dropped, that no block has what was there before a write; however the write ends.
    fn writing<'a>(&'a self, selections: &'a [&'a Selection], transfer: TransferMode) -> Written<'a> {
        Written { named: &self.named, shared: &self.shared, selections, transfer }
    }
}

/// A write under way.
struct Written<'a> {
    named: &'a Named,
    shared: &'a Shared,
    selections: &'a [&'a Selection],
    transfer: TransferMode,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        let Some(geometry) = self.named.geometry() else { return };
        if self.transfer == TransferMode::Collective && self.shared.comm.size() > 1 {
            // Others wrote too, nobody knows where.
            self.shared.store.forget_array(&geometry);
            return;
        }
        self.selections.iter().for_each(|selection| self.shared.store.forget(&geometry, selection));
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for CachedArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.inner.spec()
    }

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
        // What makes no sense is refused by the format below.
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

    /// Blocks are dropped when it is submitted, since the format below lets later reads see it, and once more when it is
    /// complete, should it not.
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
            let _written = Written { named: &named, shared: &shared, selections: &[&selection], transfer };
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
            // Only a hint: what cannot be planned is not read ahead.
            let _ = reading.hint(selection);
        }
    }

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.inner.explain(selection, layout, writes)
    }

    fn allows_background_io(&self) -> bool {
        self.inner.allows_background_io()
    }

    fn object(&self) -> Option<u64> {
        self.inner.object()
    }

    fn write_back(&self) -> Result<()> {
        self.inner.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let resized = self.inner.resize(shape);
        // Also when it failed: who knows how far it came.
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
