//! Arrays of the layer.

use super::container::Shared;
use super::readahead::Readahead;
use crate::background::{AppendResult, ArrayHandle, Job, Payload, StagedPayload, read_waiting};
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result,
    Scatter, Selection, Strings, TransferMode,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of selections prefetched when a pattern is recognised.
const PATTERN_AHEAD: usize = 2;

/// The state shared by all handles of an array.
#[derive(Debug)]
pub(super) struct ArrayState {
    /// Cached specification: querying the format below may wait for a running transfer.
    spec: Mutex<Arc<ArraySpec>>,
}

impl ArrayState {
    pub fn new(spec: ArraySpec) -> Self {
        Self { spec: Mutex::new(Arc::new(spec)) }
    }

    pub fn set_spec(&self, spec: ArraySpec) {
        *self.spec.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(spec);
    }

    fn spec(&self) -> Arc<ArraySpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A handle of an array.
#[derive(Debug)]
pub(super) struct AsyncArray {
    place: Arc<ArrayHandle>,
    named: Arc<ArrayState>,
    shared: Arc<Shared>,
    pattern: Mutex<Readahead>,
    closed: AtomicBool,
}

impl AsyncArray {
    pub fn new(place: Arc<ArrayHandle>, named: Arc<ArrayState>, shared: Arc<Shared>) -> Self {
        Self { place, named, shared, pattern: Mutex::default(), closed: AtomicBool::new(false) }
    }

    fn inner(&self) -> &dyn Array {
        &*self.place.array
    }

    /// Whether writes go directly to the format below: it refuses them, or background I/O is not allowed.
    fn straight(&self) -> bool {
        self.shared.read_only || self.shared.synchronous || self.shared.is_closed()
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::invalid("access array", "it is closed").target(&self.place.name)),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        self.check_open()?;
        self.shared.engine.check().map_err(|error| error.target(&self.place.name))
    }

    fn check_write(&self, selection: &Selection, memory: &MemoryView<'_>) -> Result<Arc<ArraySpec>> {
        self.check()?;
        let spec = self.named.spec();
        let checked = selection.check_inside(&spec.shape).and_then(|()| memory.check(&spec.dtype, selection.len()));
        checked.map_err(|error| error.target(&self.place.name))?;
        Ok(spec)
    }

    /// Checks a write. If it is refused, takes an empty part in a collective write.
    fn admit(&self, selection: &Selection, memory: &MemoryView<'_>, transfer: TransferMode) -> Result<Arc<ArraySpec>> {
        self.or_attend(transfer, self.check_write(selection, memory))
    }

    /// Whether a background thread may make the write, and the format below supports its memory. Otherwise it is refused at
    /// once.
    fn can_wait(&self, spec: &ArraySpec, layout: &MemoryLayout) -> Result<bool> {
        if !self.inner().allows_background_io() {
            return Ok(false);
        }
        Ok(self.shared.partial_fields || layout.is_packed() || layout.plan(&spec.dtype)?.covers_element())
    }

    /// Takes an empty part in a collective write.
    fn join_collective(&self) {
        let rank = self.named.spec().shape.len();
        if !self.inner().allows_background_io() || self.shared.engine.join_collective(self.place.clone(), rank).is_err()
        {
            // Without a permitted background thread: on this thread, in order.
            self.shared.before_collective();
            let nothing = Selection::empty(rank);
            // The caller gets the first error.
            let _ = self.inner().write(&nothing, MemoryView::packed(&[]), TransferMode::Collective);
        }
    }

    /// Writes on this thread, in order.
    fn write_now(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        if let Some(staging) = &self.shared.staging {
            // Recovery must not overwrite this with earlier staged writes.
            self.shared.engine.drain();
            self.or_attend(transfer, self.shared.engine.check().and_then(|()| staging.clear()))?;
        }
        self.wait_for_conflicts(selection, transfer);
        self.shared.engine.forget_prefetched();
        self.inner().write(selection, memory, transfer)
    }

    /// Waits for queued transfers that conflict with one on this thread.
    fn wait_for_conflicts(&self, selection: &Selection, transfer: TransferMode) {
        let collective = transfer == TransferMode::Collective;
        self.shared.engine.wait_while(|job| (collective && job.is_collective()) || job.writes(&self.place, selection));
    }

    fn job(&self, selection: &Selection, data: Payload, layout: MemoryLayout, transfer: TransferMode) -> Job {
        Job::Write { place: self.place.clone(), selection: selection.clone(), data, layout, transfer }
    }

    /// Copies the data of a write; returns the copy and its layout. `None` if it must be written at once.
    fn hold(
        &self,
        spec: &ArraySpec,
        selection: &Selection,
        memory: MemoryView<'_>,
    ) -> Result<Option<(StagedPayload, MemoryLayout)>> {
        if !self.can_wait(spec, memory.layout)? {
            return Ok(None);
        }
        let engine = &self.shared.engine;
        // Whole elements are packed; for some fields, memory is copied unchanged.
        let whole = memory.layout.is_packed() || memory.layout.plan(&spec.dtype)?.covers_element();
        let packed = (selection.len() * spec.dtype.size()) as usize;
        if let Some(staging) = self.shared.staging.as_ref().filter(|staging| staging.takes(spec)) {
            if !whole || packed as u64 > engine.most_staged() {
                return Ok(None);
            }
            let append = |bytes: &[u8]| loop {
                match staging.append(&self.place.name, &spec.dtype, selection, bytes) {
                    AppendResult::Staged(record) => return Ok(Some(record)),
                    AppendResult::Never => return Ok(None),
                    AppendResult::Refused(error) => return Err(error),
                    AppendResult::Full { needed } => {
                        engine.check()?;
                        staging.complete_moved()?;
                        engine.times().wait(|| staging.wait_for_room(needed));
                    }
                }
            };
            let record = match memory.layout.is_packed() {
                true => engine.times().copy(|| append(memory.data))?,
                false => {
                    let mut buffer = engine.pool().take(packed, packed as u64)?;
                    copy(memory, Some(&spec.dtype), selection, buffer.as_mut())?;
                    append(buffer.as_ref())?
                }
            };
            let Some(record) = record else { return Ok(None) };
            let held = engine.keep(Payload::Staged(record), selection)?;
            return Ok(held.map(|held| (held, MemoryLayout::packed())));
        }
        let pack = (whole && !memory.layout.is_packed()).then_some(&spec.dtype);
        let layout = if whole { MemoryLayout::packed() } else { memory.layout.clone() };
        let len = if pack.is_some() { packed } else { memory.data.len() };
        let held = engine.copy(len, selection, |to| copy(memory, pack, selection, to))?;
        Ok(held.map(|held| (held, layout)))
    }

    fn write_later(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let spec = self.admit(selection, &memory, transfer)?;
        if selection.is_empty() && transfer == TransferMode::Independent {
            return Ok(());
        }
        match self.or_attend(transfer, self.hold(&spec, selection, memory))? {
            None => self.write_now(selection, memory, transfer),
            Some((held, layout)) => self.shared.engine.write(held, |data| self.job(selection, data, layout, transfer)),
        }
    }

    /// Returns `result`. On error, this rank first takes an empty part in a collective write.
    fn or_attend<T>(&self, transfer: TransferMode, result: Result<T>) -> Result<T> {
        if result.is_err() && transfer == TransferMode::Collective {
            self.join_collective();
        }
        result
    }

    /// The elements, if buffered writes cover them.
    fn read_waiting(&self, selection: &Selection, memory: &mut MemoryViewMut<'_>) -> Result<bool> {
        let waiting = self.shared.engine.waiting(|job| job.writes(&self.place, selection));
        if waiting.is_empty() {
            return Ok(false);
        }
        let spec = self.named.spec();
        if memory.layout.is_packed() {
            return read_waiting(&waiting, &spec, selection, memory.data);
        }
        let mut packed = self.shared.engine.pool().take((selection.len() * spec.dtype.size()) as usize, 0)?;
        let there = read_waiting(&waiting, &spec, selection, packed.as_mut())?;
        if there {
            let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
            Scatter::new(view, &spec.dtype, selection.len())?.next_from(packed.as_ref());
        }
        Ok(there)
    }

    /// Prefetched elements, or `None`.
    fn take_prefetched(&self, selection: &Selection, memory: &mut MemoryViewMut<'_>) -> Option<Result<()>> {
        let slot = self.shared.engine.prefetched(&self.place, selection)?;
        let buffer = slot.take()?;
        let spec = self.named.spec();
        Some(self.shared.engine.times().copy(|| {
            let packed: &[u8] = buffer.as_ref();
            if memory.layout.is_packed() {
                memory.data.copy_from_slice(packed);
                return Ok(());
            }
            let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
            Scatter::new(view, &spec.dtype, selection.len())?.next_from(packed);
            Ok(())
        }))
    }

    /// Prefetches what is likely to be read next.
    fn look_ahead(&self, selection: &Selection) {
        if self.shared.options.ahead == 0 || self.shared.synchronous || self.shared.hands_hints_on {
            return;
        }
        let shape = self.named.spec().shape.clone();
        let next = self.pattern.lock().unwrap_or_else(PoisonError::into_inner).next(selection, &shape, PATTERN_AHEAD);
        next.iter().for_each(|selection| self.prefetch(selection));
    }
}

/// Copies memory unchanged, or packed if a type is given.
fn copy(memory: MemoryView<'_>, pack: Option<&Datatype>, selection: &Selection, to: &mut [u8]) -> Result<()> {
    match pack {
        None => to.copy_from_slice(memory.data),
        Some(dtype) => {
            Gather::new(memory, dtype, selection.len())?.next_into(to);
        }
    }
    Ok(())
}

#[deny(clippy::missing_trait_methods)]
impl Array for AsyncArray {
    hyperslab_core::forward!(self, self.inner(), [telemetry, allows_background_io, object]);

    fn spec(&self) -> Result<ArraySpec> {
        self.check_open()?;
        if self.shared.is_closed() {
            return self.inner().spec();
        }
        Ok((*self.named.spec()).clone())
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.straight() {
            true => self.check_open().and_then(|()| self.inner().write(selection, memory, transfer)),
            false => self.write_later(selection, memory, transfer),
        }
    }

    fn read(&self, selection: &Selection, mut memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        if self.shared.is_closed() {
            return self.inner().read(selection, memory, transfer);
        }
        if let Err(error) = self.check() {
            if transfer == TransferMode::Collective {
                self.wait_for_conflicts(selection, transfer);
                let nothing = Selection::empty(selection.rank());
                // The caller gets the first error.
                let _ = self.inner().read(&nothing, MemoryViewMut::packed(&mut []), transfer);
            }
            return Err(error);
        }
        if transfer == TransferMode::Independent {
            let spec = self.named.spec();
            let fits =
                selection.check_inside(&spec.shape).is_ok() && memory.check(&spec.dtype, selection.len()).is_ok();
            if fits && let Some(taken) = self.take_prefetched(selection, &mut memory) {
                taken?;
                self.look_ahead(selection);
                return Ok(());
            }
            if fits && self.read_waiting(selection, &mut memory)? {
                return self.check();
            }
        }
        self.wait_for_conflicts(selection, transfer);
        // A write that failed meanwhile may be one that this read must see.
        let read = self.inner().read(selection, memory, transfer);
        self.check()?;
        read?;
        if transfer == TransferMode::Independent {
            self.look_ahead(selection);
        }
        Ok(())
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.check()?;
        // Strings are never written in the background; what comes before them in a collective order is.
        self.shared.engine.wait_while(Job::is_collective);
        self.inner().write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.check()?;
        self.shared.engine.wait_while(Job::is_collective);
        self.inner().read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        if self.straight() || transfer == TransferMode::Collective {
            // Ranks may have different numbers of parts, which the format below handles.
            self.check_open()?;
            let everything = |job: &Job| job.is_collective() || job.place().is_same(&self.place);
            self.shared.engine.wait_while(everything);
            self.shared.engine.forget_prefetched();
            return self.inner().write_many(parts, transfer);
        }
        parts.iter().try_for_each(|(selection, memory)| self.write_later(selection, *memory, transfer))
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        if self.straight() {
            self.check_open()?;
            return self.inner().submit_write(selection, data, layout, transfer);
        }
        let spec = self.admit(selection, &MemoryView { data: &data, layout }, transfer)?;
        let held = match self.shared.staging.is_none() && self.can_wait(&spec, layout)? {
            true => {
                let kept = self.shared.engine.keep(Payload::Memory(data.clone()), selection);
                self.or_attend(transfer, kept)?.map(|held| (held, layout.clone()))
            }
            false => self.or_attend(transfer, self.hold(&spec, selection, MemoryView { data: &data, layout }))?,
        };
        match held {
            None => self.write_now(selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done()),
            Some((held, layout)) => {
                drop(data);
                self.shared.engine.submit(held, |data| self.job(selection, data, layout, transfer))
            }
        }
    }

    fn prefetch(&self, selection: &Selection) {
        if self.shared.hands_hints_on {
            return self.inner().prefetch(selection);
        }
        let options = &self.shared.options;
        if !self.inner().allows_background_io() {
            return;
        }
        if self.shared.synchronous || self.shared.is_closed() || selection.is_empty() || self.check().is_err() {
            return;
        }
        let spec = self.named.spec();
        let bytes = selection.len().checked_mul(spec.dtype.size()).and_then(|bytes| usize::try_from(bytes).ok());
        if let Some(bytes) = bytes.filter(|_| selection.check_inside(&spec.shape).is_ok()) {
            self.shared.engine.prefetch(&self.place, selection, bytes, options.ahead);
        }
    }

    fn write_back(&self) -> Result<()> {
        self.check_open()?;
        if !self.shared.is_closed() {
            self.shared.engine.wait_while(|job| job.place().is_same(&self.place));
            self.check()?;
        }
        self.inner().write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.check_open()?;
        self.shared.together(|| {
            self.shared.clear_for(|job| job.place().is_same(&self.place))?;
            self.inner().resize(shape)?;
            self.shared.publish_metadata()?;
            self.named.set_spec(self.inner().spec()?);
            Ok(())
        })
    }

    /// Does not wait for writes: see the module of the layer.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) || self.shared.is_closed() {
            return Ok(());
        }
        self.shared.close_later(self.place.clone())
    }
}
