//! Arrays of the layer.

use super::array_state::ArrayState;
use super::container::Shared;
use super::read::Reading;
use super::{replay, write};
use hyperslab_core::{
    Array, Bytes, Durability, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, TransferMode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle of an array.
#[derive(Debug)]
pub(super) struct LogLayoutArray {
    pub inner: Arc<dyn Array>,
    pub named: Arc<ArrayState>,
    pub shared: Arc<Shared>,
    closed: AtomicBool,
}

impl LogLayoutArray {
    pub fn new(inner: Arc<dyn Array>, named: Arc<ArrayState>, shared: Arc<Shared>) -> Self {
        Self { inner, named, shared, closed: AtomicBool::new(false) }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.shared.is_closed()
    }

    /// Whether reads go to the format below: no element is in the log, or the format below will refuse the read.
    fn reads_pass(&self) -> bool {
        self.is_closed() || !self.named.lock().has_log()
    }

    fn writes_pass(&self) -> bool {
        self.shared.read_only || self.reads_pass()
    }

    /// Whether a transfer is collective.
    pub fn is_collective(&self, transfer: TransferMode) -> bool {
        transfer == TransferMode::Collective && self.shared.comm.size() > 1
    }

    /// Before shrinking: copies all logged elements into the array, and clears its index. Collective.
    fn bring_home(&self) -> Result<()> {
        self.shared.publish(Durability::Visible, None)?;
        // The index is the same on every rank now.
        if !self.named.lock().has_stored() {
            return Ok(());
        }
        replay::replay(self)?;
        self.shared.inner.flush(Durability::Visible)?;
        self.shared.publish(Durability::Visible, Some(&self.named.name))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for LogLayoutArray {
    // Strings are never in a log of the file.
    hyperslab_core::forward!(
        self,
        self.inner,
        [spec, write_strings, read_strings, telemetry, allows_background_io, object]
    );

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.writes_pass() {
            true => self.inner.write(selection, memory, transfer),
            false => write::write(self, selection, memory, transfer),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        match self.reads_pass() {
            true => self.inner.read(selection, memory, transfer),
            // Independent below: ranks have different elements in their logs.
            false => Reading::new(self)?.read(selection, memory),
        }
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        match self.writes_pass() {
            true => self.inner.write_many(parts, transfer),
            false => write::write_many(self, parts, transfer),
        }
    }

    /// Only writes that go directly to the array may be incomplete on return.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        if self.writes_pass() {
            return self.inner.submit_write(selection, data, layout, transfer);
        }
        write::write(self, selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done())
    }

    fn prefetch(&self, selection: &Selection) {
        let logged = || {
            let state = self.named.lock();
            let spec = state.spec.clone();
            spec.is_some_and(|spec| state.index.overlaps(selection, &spec.shape))
        };
        if !self.is_closed() && !logged() {
            self.inner.prefetch(selection);
        }
    }

    fn write_back(&self) -> Result<()> {
        let open: Vec<_> = self.named.lock().log.volumes.iter().filter_map(|volume| volume.open.clone()).collect();
        open.iter().try_for_each(|open| open.bytes.write_back())?;
        self.inner.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        if self.is_closed() || self.shared.read_only {
            return self.inner.resize(shape);
        }
        let before = self.inner.spec()?.shape;
        let cuts = before.len() == shape.len() && shape.iter().zip(&before).any(|(new, old)| new < old);
        if cuts && self.named.lock().has_log() {
            self.bring_home()?;
        }
        let resized = self.inner.resize(shape);
        // Also after a failure, which may have written a part.
        let spec = self.inner.spec()?;
        let known = self.named.lock().set_spec(spec.clone(), self.shared.rank(), self.shared.ranks());
        resized.and(known)?;
        self.shared.make_room(&self.named, &spec)
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) || self.shared.is_closed() {
            return self.inner.close();
        }
        let last = {
            let mut state = self.named.lock();
            state.handles = state.handles.saturating_sub(1);
            state.handles == 0
        };
        let volumes = if last { self.shared.close_volumes(&self.named) } else { Ok(()) };
        self.inner.close().and(volumes)
    }
}
