//! An open array behind the layer.

use super::named::Named;
use super::read::Overlay;
use super::session::Session;
use crate::background::Place;
use crate::pieces::each_piece;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Scatter,
    Selection, TransferMode,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A read that touches more writes of the log than this has the array moved to the file first.
const MOST_TOUCHED: usize = 1 << 16;

/// One rank's handle of an array.
#[derive(Debug)]
pub(super) struct LogArray {
    pub place: Arc<Place>,
    pub named: Arc<Named>,
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

    /// Passes a result on. After an error this rank still takes part, with nothing, where others count on it.
    fn or_attend<T>(&self, transfer: TransferMode, result: Result<T>, attend: impl FnOnce(&Selection)) -> Result<T> {
        if result.is_err() && transfer == TransferMode::Collective {
            attend(&Selection::empty(self.named.spec().shape.len()));
        }
        result
    }

    fn write_logged(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let (store, spec) = (&self.session.store, self.named.spec());
        if !store.staging.takes(&spec) {
            // The caller is told of a worse error.
            let attend = |nothing: &Selection| drop(self.inner().write(nothing, MemoryView::packed(&[]), transfer));
            self.or_attend(transfer, self.check(), attend)?;
            let write = || self.inner().write(selection, memory, transfer);
            return match store.staging.images(&spec) {
                // Chunks that are stored past the log must not give places to those of it before the file says so.
                Some(_) => store.past_the_log(|| write().and_then(|()| store.staging.settle_container())),
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
        // What cannot be logged would change chunks that nobody can bring back.
        let most = if images { store.options.buffer.min(store.staging.limit() / 8) } else { store.options.buffer };
        let _alone = (!whole).then(|| store.changing_fields());
        let mut at = 0;
        each_piece(selection, most / size, &mut |piece| {
            let len = (piece.len() * size) as usize;
            let append = |packed: &[u8]| match store.append(&self.place, &self.named, piece, packed)? {
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

    /// Writes on this thread what cannot be in the log, after all that is there: a recovery must not put it over this. Returns
    /// when the container has it as safely as the log would.
    fn write_through(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let store = &self.session.store;
        let write = || self.inner().write(selection, memory, TransferMode::Independent);
        store.past_the_log(|| write().and_then(|()| store.staging.settle_container()))
    }

    /// What the log has of a selection. `None`: nothing, or the format below will say what is wrong with it.
    fn overlay(&self, spec: &ArraySpec, selection: &Selection, memory: &MemoryViewMut<'_>) -> Result<Option<Overlay>> {
        let fits = selection.check_inside(&spec.shape).is_ok() && memory.check(&spec.dtype, selection.len()).is_ok();
        if !fits || !self.named.is_logged() {
            return Ok(None);
        }
        match self.named.touching(selection, MOST_TOUCHED) {
            Some(writes) => Overlay::new(writes, spec, selection),
            None => self.session.store.drain(Some(&self.named)).map(|()| None),
        }
    }

    /// Reads with what the log has over what the format below has. In a collective transfer the format below is always asked.
    fn read_merged(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let (store, spec) = (&self.session.store, self.named.spec());
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
    fn spec(&self) -> Result<ArraySpec> {
        self.check_open()?;
        if self.session.is_closed() {
            return self.inner().spec();
        }
        Ok((*self.named.spec()).clone())
    }

    /// Every rank for itself, also in a collective transfer: other ranks hear of an error at the next flush.
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

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        let (spec, staging) = (self.named.spec(), &self.session.store.staging);
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

    fn prefetch(&self, selection: &Selection) {
        self.inner().prefetch(selection);
    }

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.inner().explain(selection, layout, writes)
    }

    fn allows_background_io(&self) -> bool {
        self.inner().allows_background_io()
    }

    fn object(&self) -> Option<u64> {
        self.inner().object()
    }

    fn write_back(&self) -> Result<()> {
        self.check_open()?;
        if !self.session.is_closed() {
            self.session.store.drain(Some(&self.named))?;
        }
        self.inner().write_back()
    }

    /// Where only the first extent grows, by one rank alone, what is in the log stays there: a recovery finds the new extent in
    /// the container. Otherwise everything is moved first.
    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.check_open()?;
        if !self.session.is_closed() && self.session.store.comm.size() == 1 && self.named.only_grows(shape) {
            self.check()?;
            let store = &self.session.store;
            return store.grow(&self.place, &self.named, || {
                self.inner().resize(shape)?;
                store.staging.make_known()?;
                self.inner().spec()
            });
        }
        self.session.together(|| {
            if !self.session.is_closed() {
                hyperslab_core::agree(&*self.session.store.comm, self.session.clear())?;
            }
            self.inner().resize(shape)?;
            if !self.session.is_closed() {
                self.session.store.staging.make_known()?;
            }
            self.named.set_spec(self.inner().spec()?);
            Ok(())
        })
    }

    /// Does not wait for writes: see the layer.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) || self.session.is_closed() {
            return Ok(());
        }
        self.session.close_later(self.named.clone(), self.place.clone())
    }
}
