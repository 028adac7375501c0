//! Arrays of the layer.

use super::container::Shared;
use super::exchange::Exchange;
use super::plan_exchange::{ExchangePlan, RankRequest, agree_on_access};
use super::storage_order::StorageOrder;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, MemoryLayout, MemoryView, MemoryViewMut, Reduce, Request, Result, Selection,
    Strings, TransferMode, agree,
};
use std::sync::Arc;

/// A handle of an array.
#[derive(Debug)]
pub(super) struct TwoPhaseArray {
    pub inner: Arc<dyn Array>,
    pub shared: Arc<Shared>,
    pub name: String,
}

/// The array during one transfer; its shape may have changed since the last.
struct Now {
    dtype: Datatype,
    /// `None` if the transfer goes to the format below.
    order: Option<StorageOrder>,
}

impl TwoPhaseArray {
    /// Whether this transfer uses the exchange.
    fn is_exchanged(&self, transfer: TransferMode) -> bool {
        transfer == TransferMode::Collective && self.shared.comm.size() > 1
    }

    /// Checks the arguments of this rank like the format below, and exchanges the requests of all ranks.
    fn agree(
        &self,
        selection: &Selection,
        check: impl FnOnce(&ArraySpec) -> Result<()>,
        whole: impl FnOnce(&Datatype) -> Result<bool>,
    ) -> Result<(ExchangePlan, Option<Now>)> {
        let mine = self.inner.spec().and_then(|spec| {
            check(&spec)?;
            let order = StorageOrder::new(&spec)?;
            let left_to_format = order.is_none() || !whole(&spec.dtype)?;
            let range = order.as_ref().map(|order| order.range(selection)).transpose()?.flatten();
            let wish = RankRequest { range, bytes: selection.len() * spec.dtype.size(), left_to_format };
            Ok((wish, Now { dtype: spec.dtype, order }))
        });
        let (wish, now) = match mine {
            Ok((wish, now)) => (Ok(wish), Some(now)),
            Err(error) => (Err(error.target(&self.name)), None),
        };
        let grain = now.as_ref().and_then(|now| now.order.as_ref()).map_or(1, StorageOrder::grain);
        Ok((agree_on_access(&*self.shared.comm, wish, grain)?, now))
    }

    /// Forwards the whole transfer to the format below, on every rank.
    fn leave(&self, transfer: impl FnOnce(&dyn Array) -> Result<()>) -> Result<()> {
        self.shared.note_left_to_format();
        agree(&*self.shared.comm, transfer(&*self.inner))
    }

    fn write_exchanged(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let check = |spec: &ArraySpec| {
            selection.check_inside(&spec.shape)?;
            memory.check(&spec.dtype, selection.len())?;
            // Nothing is written, but errors that forbid writing at all are returned now, on all ranks.
            let nothing = Selection::empty(spec.shape.len());
            self.inner.write(&nothing, MemoryView::packed(&[]), TransferMode::Independent)
        };
        let whole = |dtype: &Datatype| Ok(memory.layout.plan(dtype)?.covers_element());
        match self.agree(selection, check, whole)? {
            (ExchangePlan::Exchange(access), Some(Now { dtype, order: Some(order) })) => {
                Exchange::new(self, &order, &dtype, &access).write(selection, memory)
            }
            (ExchangePlan::Nothing, _) => Ok(()),
            _ => self.leave(|inner| inner.write(selection, memory, TransferMode::Collective)),
        }
    }

    fn read_exchanged(&self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let check = |spec: &ArraySpec| {
            selection.check_inside(&spec.shape)?;
            memory.check(&spec.dtype, selection.len())
        };
        match self.agree(selection, check, |_| Ok(true))? {
            (ExchangePlan::Exchange(access), Some(Now { dtype, order: Some(order) })) => {
                Exchange::new(self, &order, &dtype, &access).read(selection, memory)
            }
            (ExchangePlan::Nothing, _) => Ok(()),
            _ => self.leave(|inner| inner.read(selection, memory, TransferMode::Collective)),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for TwoPhaseArray {
    hyperslab_core::forward!(
        self,
        self.inner,
        [spec, prefetch, telemetry, allows_background_io, object, write_back, resize, close]
    );

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.is_exchanged(transfer) {
            true => self.write_exchanged(selection, memory),
            false => self.inner.write(selection, memory, transfer),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        match self.is_exchanged(transfer) {
            true => self.read_exchanged(selection, memory),
            false => self.inner.read(selection, memory, transfer),
        }
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        // Strings are not exchanged between ranks.
        self.inner.write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.inner.read_strings(selection, transfer)
    }

    /// In a collective transfer ranks may have different numbers of parts: the first parts of all ranks are one exchange,
    /// then the second.
    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        if !self.is_exchanged(transfer) {
            return self.inner.write_many(parts, transfer);
        }
        let rank = agree(&*self.shared.comm, self.inner.spec())?.shape.len();
        let mut most = [parts.len() as u64];
        self.shared.comm.all_reduce(&mut most, Reduce::Max)?;
        let nothing = Selection::empty(rank);
        for number in 0..most[0] as usize {
            let (selection, memory) = parts.get(number).copied().unwrap_or((&nothing, MemoryView::packed(&[])));
            self.write_exchanged(selection, memory)?;
        }
        Ok(())
    }

    /// A collective write is complete when this returns.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        if !self.is_exchanged(transfer) {
            return self.inner.submit_write(selection, data, layout, transfer);
        }
        self.write_exchanged(selection, MemoryView { data: &data, layout }).map(|()| Request::done())
    }
}
