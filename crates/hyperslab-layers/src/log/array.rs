//! Arrays of the layer.

use super::array_log::ArrayLog;
use super::merged_read::Overlay;
use super::session::Session;
use crate::background::ArrayHandle;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Scatter,
    Selection, Strings, TransferMode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A read that overlaps more pending writes drains the array first.
const MOST_TOUCHED: usize = 1 << 16;

/// A handle of an array.
#[derive(Debug)]
pub(super) struct LogArray {
    pub place: Arc<ArrayHandle>,
    pub array_log: Arc<ArrayLog>,
    pub session: Arc<Session>,
    pub closed: AtomicBool,
}

impl LogArray {
    fn inner(&self) -> &dyn Array {
        &*self.place.array
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::invalid("access array", "it is closed").target(&self.place.name)),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        self.check_open()?;
        self.session.store.check().map_err(|error| error.target(&self.place.name))
    }

    /// Returns `result`. On error, this rank first takes an empty part in a collective transfer.
    fn or_attend<T>(&self, transfer: TransferMode, result: Result<T>, attend: impl FnOnce(&Selection)) -> Result<T> {
        if result.is_err() && transfer == TransferMode::Collective {
            attend(&Selection::empty(self.array_log.spec().shape.len()));
        }
        result
    }

    fn write_logged(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let (store, spec) = (&self.session.store, self.array_log.spec());
        if !store.staging.takes(&spec) {
            // The caller gets the first error.
            let attend = |nothing: &Selection| drop(self.inner().write(nothing, MemoryView::packed(&[]), transfer));
            self.or_attend(transfer, self.check(), attend)?;
            let write = || self.inner().write(selection, memory, transfer);
            return match store.staging.images(&spec) {
                // Chunks written through must not reuse locations of drained chunks before the file's index is flushed.
                Some(_) => store.bypass(|| write().and_then(|()| store.staging.write_back_container())),
                None => write(),
            };
        }
        self.check()?;
        let checked = selection.check_inside(&spec.shape).and_then(|()| memory.check(&spec.dtype, selection.len()));
        checked.map_err(|error| error.target(&self.place.name))?;
        if selection.is_empty() {
            return Ok(());
        }
        let size = spec.dtype.size();
        let whole = memory.layout.is_packed() || memory.layout.plan(&spec.dtype)?.covers_element();
        let images = store.staging.images(&spec).is_some();
        if !whole && !images {
            return self.write_through(selection, memory);
        }
        let mut gather = match memory.layout.is_packed() {
            true => None,
            false => Some(Gather::new(memory, &spec.dtype, selection.len())?),
        };
        // An unlogged write could relocate chunks that recovery cannot restore.
        let most = if images { store.options.buffer.min(store.staging.limit() / 8) } else { store.options.buffer };
        let _alone = (!whole).then(|| store.changing_fields());
        let mut at = 0;
        selection.for_each_part(most / size, &mut |piece| {
            let len = (piece.len() * size) as usize;
            let append = |packed: &[u8]| match store.append(&self.place, &self.array_log, piece, packed)? {
                true => Ok(()),
                false => self.write_through(piece, MemoryView::packed(packed)),
            };
            match &mut gather {
                None => {
                    at += len;
                    append(&memory.data[at - len..at])
                }
                Some(gather) => {
                    let mut buffer = store.pool.take(len, store.options.buffer)?;
                    if !whole {
                        // The other fields.
                        self.read_merged(piece, MemoryViewMut::packed(buffer.as_mut()), TransferMode::Independent)?;
                    }
                    gather.next_into(buffer.as_mut());
                    append(buffer.as_ref())
                }
            }
        })
    }

    /// Writes through what cannot be logged, after draining, so that recovery cannot overwrite it. On return it is as
    /// durable as a logged write.
    fn write_through(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let store = &self.session.store;
        let write = || self.inner().write(selection, memory, TransferMode::Independent);
        store.bypass(|| write().and_then(|()| store.staging.write_back_container()))
    }

    /// The part of a selection that is in the log. `None` if there is none, or if the format below will refuse the
    /// selection.
    fn overlay(&self, spec: &ArraySpec, selection: &Selection, memory: &MemoryViewMut<'_>) -> Result<Option<Overlay>> {
        let fits = selection.check_inside(&spec.shape).is_ok() && memory.check(&spec.dtype, selection.len()).is_ok();
        if !fits || !self.array_log.is_logged() {
            return Ok(None);
        }
        match self.array_log.overlapping(selection, MOST_TOUCHED) {
            Some(writes) => Overlay::new(writes, spec, selection),
            None => self.session.store.drain(Some(&self.array_log)).map(|()| None),
        }
    }

    /// Reads from the format below and overlays pending writes. In a collective transfer the format below is always called.
    fn read_merged(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let (store, spec) = (&self.session.store, self.array_log.spec());
        let attend = |nothing: &Selection| drop(self.inner().read(nothing, MemoryViewMut::packed(&mut []), transfer));
        let overlay = self.check().and_then(|()| self.overlay(&spec, selection, &memory));
        let Some(overlay) = self.or_attend(transfer, overlay, attend)? else {
            return self.inner().read(selection, memory, transfer);
        };
        let read = |packed: &mut [u8]| {
            if !overlay.complete || transfer == TransferMode::Collective {
                self.inner().read(selection, MemoryViewMut::packed(&mut *packed), transfer)?;
            }
            overlay.paint(&spec, selection, &store.pool, packed)
        };
        if memory.layout.is_packed() {
            return read(memory.data);
        }
        let packed = store.pool.take((selection.len() * spec.dtype.size()) as usize, 0);
        let mut packed = self.or_attend(transfer, packed, attend)?;
        read(packed.as_mut())?;
        Scatter::new(memory, &spec.dtype, selection.len())?.next_from(packed.as_ref());
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for LogArray {
    hyperslab_core::forward!(self, self.inner(), [prefetch, telemetry, allows_background_io, object]);

    fn spec(&self) -> Result<ArraySpec> {
        self.check_open()?;
        if self.session.is_closed() {
            return self.inner().spec();
        }
        Ok((*self.array_log.spec()).clone())
    }

    /// Independent even in a collective transfer: other ranks see an error at the next flush.
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        if self.session.is_closed() {
            return self.inner().write(selection, memory, transfer);
        }
        self.write_logged(selection, memory, transfer)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        if self.session.is_closed() {
            return self.inner().read(selection, memory, transfer);
        }
        self.read_merged(selection, memory, transfer)
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.check_open()?;
        // Strings are never in the log, and always below it.
        self.inner().write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.check_open()?;
        self.inner().read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let (spec, staging) = (self.array_log.spec(), &self.session.store.staging);
        let through = !staging.takes(&spec) && staging.images(&spec).is_none();
        if self.session.is_closed() || through {
            return self.check_open().and_then(|()| self.inner().write_many(parts, transfer));
        }
        parts.iter().try_for_each(|(selection, memory)| self.write_logged(selection, *memory, transfer))
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.write(selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done())
    }

    fn write_back(&self) -> Result<()> {
        self.check_open()?;
        if !self.session.is_closed() {
            self.session.store.drain(Some(&self.array_log))?;
        }
        self.inner().write_back()
    }

    /// If a single rank only grows the first dimension, pending writes stay in the log: recovery finds the new extent in
    /// the container. Otherwise drains first.
    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.check_open()?;
        if !self.session.is_closed() && self.session.store.comm.size() == 1 && self.array_log.only_grows(shape) {
            self.check()?;
            let store = &self.session.store;
            return store.grow(&self.place, &self.array_log, || {
                self.inner().resize(shape)?;
                store.staging.publish_metadata()?;
                self.inner().spec()
            });
        }
        self.session.together(|| {
            if !self.session.is_closed() {
                hyperslab_core::agree(&*self.session.store.comm, self.session.clear())?;
            }
            self.inner().resize(shape)?;
            if !self.session.is_closed() {
                self.session.store.staging.publish_metadata()?;
            }
            self.array_log.set_spec(self.inner().spec()?);
            Ok(())
        })
    }

    /// Does not wait for writes: see the module of the layer.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) || self.session.is_closed() {
            return Ok(());
        }
        self.session.close_later(self.array_log.clone(), self.place.clone())
    }
}
