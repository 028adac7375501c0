//! One array of a file, moved by its bytes.

use crate::cache::Cache;
use crate::claims::Claims;
use crate::control::Control;
use crate::file;
use crate::guard::WriteGuard;
use crate::index::{Index, chunks_around};
use crate::memory::{Source, Target, Types};
use crate::refusal::Refusal;
use crate::workers;
use hyperslab_core::{
    ChunkGrid, Datatype, Dims, ElementPlan, Error, Gather, MemoryView, MemoryViewMut, Result, Scatter, Selection, dims,
};
use hyperslab_filters::{FilterSpec, Pipeline};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Memory that is a union of slabs is packed first if it is no more than this.
const PACKED_FIRST: u64 = 16 << 20;
/// Decoded chunks of an array that are kept, unless said otherwise.
pub const CACHE_BYTES: u64 = 32 << 20;

/// How the elements of an array lie in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// In one piece.
    Contiguous,
    /// In chunks of these extents.
    Chunked(Dims),
}

/// What never changes of an array.
#[derive(Debug)]
pub struct Facts {
    /// What it is called in errors.
    pub name: String,
    /// The file, opened for this alone.
    pub file: Arc<File>,
    /// Type of the elements, in memory as in the file.
    pub dtype: Datatype,
    /// How they lie in the file.
    pub layout: Layout,
    /// Filters of chunks, in the order of writing.
    pub filters: Vec<FilterSpec>,
    /// What elements are that were never written; absent: zeros.
    pub fill: Option<Vec<u8>>,
    /// Whether no other process writes the array meanwhile.
    pub alone: bool,
    /// Makes the plane's writes to the file, if they need more than a system call.
    pub guard: Option<Arc<dyn WriteGuard>>,
}

/// What the plane may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads for one call, the calling one included; 0 for as many as there are cores.
    pub threads: usize,
    /// Bytes of decoded chunks that are kept.
    pub cache: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 0, cache: CACHE_BYTES }
    }
}

/// What a call of the library touches.
#[derive(Debug, Clone, Copy)]
pub enum Touched<'a> {
    /// It reads.
    Nothing,
    /// It writes these elements.
    Elements(&'a Selection),
    /// It may change anything.
    Everything,
}

/// One array of a file, shared by all ranks of a process that have it open.
#[derive(Debug)]
pub struct Plane {
    pub(crate) name: String,
    pub(crate) file: Arc<File>,
    pub(crate) dtype: Datatype,
    pub(crate) element: u64,
    pub(crate) pipeline: Pipeline,
    pub(crate) fill: Vec<u8>,
    pub(crate) alone: bool,
    guard: Option<Arc<dyn WriteGuard>>,
    pub(crate) threads: usize,
    pub(crate) chunk_bytes: usize,
    /// Transfers share it; who needs to be alone with the array has it for itself.
    extent: RwLock<Extent>,
    pub(crate) state: Mutex<State>,
    pub(crate) claims: Claims,
    /// Where an array in one piece begins; `NOWHERE` until that is known.
    address: AtomicU64,
}

const NOWHERE: u64 = u64::MAX;

/// What changes with the shape.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(crate) shape: Dims,
    /// Of chunked arrays.
    pub(crate) grid: Option<ChunkGrid>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    pub(crate) cache: Cache,
}

impl Plane {
    /// Takes over an array of this shape; the inner error says why it must be left to the library.
    pub fn new(facts: Facts, shape: &[u64], limits: Limits) -> Result<Result<Self, Refusal>> {
        let Facts { name, file, dtype, layout, filters, fill, alone, guard } = facts;
        let element = dtype.size();
        let (grid, chunk_bytes) = match &layout {
            Layout::Contiguous => (None, 0),
            Layout::Chunked(chunk) => {
                let bytes = usize::try_from(dims::byte_count(chunk, element)?);
                let bytes = bytes.map_err(|_| Error::unsupported("open array", "a chunk exceeds the address space"))?;
                (Some(ChunkGrid::new(shape, chunk)?), bytes)
            }
        };
        let pipeline = match Pipeline::new(&filters, chunk_bytes) {
            Ok(pipeline) => pipeline,
            Err(error) => return Ok(Err(Refusal::Filter(error.to_string()))),
        };
        let fill = fill.unwrap_or_else(|| vec![0; element as usize]);
        if fill.len() as u64 != element {
            return Err(Error::invalid("open array", "the fill value is not as long as an element"));
        }
        Ok(Ok(Self {
            name,
            file,
            element,
            pipeline,
            fill,
            alone,
            guard,
            threads: if limits.threads == 0 { workers::cores() } else { limits.threads },
            chunk_bytes,
            extent: RwLock::new(Extent { shape: shape.into(), grid }),
            state: Mutex::new(State { index: Index::default(), cache: Cache::new(limits.cache) }),
            claims: Claims::default(),
            address: AtomicU64::new(NOWHERE),
            dtype,
        }))
    }

    pub(crate) fn guard(&self) -> Option<&dyn WriteGuard> {
        self.guard.as_deref()
    }

    /// Tells the guard that elements may lie elsewhere.
    pub(crate) fn note_moved(&self) {
        if let Some(guard) = &self.guard {
            guard.moved();
        }
    }

    pub(crate) fn extent(&self) -> RwLockReadGuard<'_, Extent> {
        self.extent.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn extent_alone(&self) -> RwLockWriteGuard<'_, Extent> {
        self.extent.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the selected elements, or says why the library should.
    pub fn read(
        &self,
        control: &dyn Control,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
    ) -> Result<Option<Refusal>> {
        self.read_as(control, selection, memory, &self.dtype)
    }

    /// Writes the selected elements, or says why the library should. Part of them may be written then.
    pub fn write(
        &self,
        control: &dyn Control,
        selection: &Selection,
        memory: MemoryView<'_>,
    ) -> Result<Option<Refusal>> {
        self.write_as(control, selection, memory, &self.dtype)
    }

    /// As [`Self::read`], with elements of another type in memory.
    pub fn read_as(
        &self,
        control: &dyn Control,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<Refusal>> {
        let (extent, elements) = (self.extent(), selection.len());
        selection.check_inside(&extent.shape)?;
        memory.check(dtype, elements)?;
        if elements == 0 {
            return Ok(None);
        }
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(false)? {
            Ok(conversion) => conversion,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
        if let Some(target) = Target::new(view, types, elements, conversion.clone())? {
            return self.read_to(&extent, control, selection, target);
        }
        if elements * dtype.size() > PACKED_FIRST {
            return Ok(Some(Refusal::ScatteredMemory));
        }
        let mut packed = file::buffer((elements * dtype.size()) as usize)?;
        let view = MemoryViewMut::packed(&mut packed);
        let Some(target) = Target::new(view, types, elements, conversion)? else { return Ok(None) };
        let refused = self.read_to(&extent, control, selection, target)?;
        if refused.is_none() {
            let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
            Scatter::new(view, dtype, elements)?.next_from(&packed);
        }
        Ok(refused)
    }

    /// As [`Self::write`], with elements of another type in memory.
    pub fn write_as(
        &self,
        control: &dyn Control,
        selection: &Selection,
        memory: MemoryView<'_>,
        dtype: &Datatype,
    ) -> Result<Option<Refusal>> {
        let elements = selection.len();
        selection.check_inside(&self.extent().shape)?;
        memory.check(dtype, elements)?;
        if elements == 0 {
            return Ok(None);
        }
        let whole = memory.layout.is_packed() || memory.layout.plan(dtype)?.covers_element();
        if !whole && !self.alone {
            return Ok(Some(Refusal::OtherWriters));
        }
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(true)? {
            Ok(conversion) => conversion,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let packed;
        let source = match Source::new(memory, types, elements, conversion.clone())? {
            Some(source) => source,
            None if !whole || elements * dtype.size() > PACKED_FIRST => return Ok(Some(Refusal::ScatteredMemory)),
            None => {
                packed = gathered(memory, dtype, elements)?;
                let Some(source) = Source::new(MemoryView::packed(&packed), types, elements, conversion)? else {
                    return Ok(Some(Refusal::ScatteredMemory));
                };
                source
            }
        };
        self.write_source(control, selection, source, whole)
    }

    /// As [`Self::write`], from several buffers that have some fields of every element each. Where they have the same ones, the
    /// last counts.
    pub fn write_together(
        &self,
        control: &dyn Control,
        selection: &Selection,
        views: &[MemoryView<'_>],
    ) -> Result<Option<Refusal>> {
        let (elements, types) = (selection.len(), Types { memory: &self.dtype, file: &self.dtype });
        let mut plans = Vec::with_capacity(views.len());
        let mut all: Option<Source<'_>> = None;
        for view in views {
            view.check(&self.dtype, elements)?;
            plans.push(view.layout.plan(&self.dtype)?);
            let Some(source) = Source::new(*view, types, elements, None)? else {
                return Ok(Some(Refusal::ScatteredMemory));
            };
            all = Some(match all {
                Some(below) => below.under(source),
                None => source,
            });
        }
        let whole = ElementPlan::covered_together(&plans) == self.element;
        match all {
            Some(_) if !whole && !self.alone => Ok(Some(Refusal::OtherWriters)),
            Some(source) if elements > 0 => self.write_source(control, selection, source, whole),
            _ => Ok(None),
        }
    }

    fn write_source(
        &self,
        control: &dyn Control,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
    ) -> Result<Option<Refusal>> {
        let extent = self.extent();
        selection.check_inside(&extent.shape)?;
        if self.pipeline.is_plain() && self.must_keep(&extent.shape, selection, whole)? {
            drop(extent);
            let extent = self.extent_alone();
            selection.check_inside(&extent.shape)?;
            return self.write_from(&extent, control, selection, source, whole, true);
        }
        self.write_from(&extent, control, selection, source, whole, false)
    }

    fn read_to(
        &self,
        extent: &Extent,
        control: &dyn Control,
        selection: &Selection,
        target: Target<'_>,
    ) -> Result<Option<Refusal>> {
        match &extent.grid {
            None => self.read_contiguous(extent, control, selection, target),
            Some(grid) if self.pipeline.is_plain() => self.read_plain_chunks(grid, control, selection, target),
            Some(grid) => self.read_coded(grid, control, selection, target),
        }
    }

    fn write_from(
        &self,
        extent: &Extent,
        control: &dyn Control,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
        keeping: bool,
    ) -> Result<Option<Refusal>> {
        match &extent.grid {
            None => self.write_contiguous(extent, control, selection, source, keeping),
            Some(grid) if self.pipeline.is_plain() => {
                self.write_plain_chunks(grid, control, selection, source, whole, keeping)
            }
            Some(_) if !self.alone => Ok(Some(Refusal::OtherWriters)),
            Some(grid) => self.write_coded(grid, control, selection, source, whole),
        }
    }

    /// Where an array in one piece begins, if that was asked before.
    pub(crate) fn known_address(&self) -> Option<u64> {
        Some(self.address.load(Ordering::Acquire)).filter(|known| *known != NOWHERE)
    }

    /// Where an array in one piece begins.
    pub(crate) fn address(&self, control: &dyn Control, allocate: bool) -> Result<Option<u64>> {
        if let Some(known) = self.known_address() {
            return Ok(Some(known));
        }
        let found = control.place(allocate)?;
        self.note_moved();
        self.address.store(found.unwrap_or(NOWHERE), Ordering::Release);
        Ok(found)
    }

    /// Its extents at present.
    pub fn shape(&self) -> Dims {
        self.extent().shape.clone()
    }

    /// Whether the place of every element is known, and transfers ask nothing of the library.
    pub fn is_independent(&self) -> bool {
        match &self.extent().grid {
            None => self.known_address().is_some(),
            Some(_) => self.pipeline.is_plain() && self.state().index.is_complete(),
        }
    }

    /// The same, after asking the library for places if they were never asked for.
    pub fn make_independent(&self, control: &dyn Control) -> Result<bool> {
        let extent = self.extent();
        match &extent.grid {
            None => Ok(self.address(control, self.alone)?.is_some()),
            Some(_) if !self.pipeline.is_plain() => Ok(false),
            Some(grid) => {
                let mut state = self.state();
                if !state.index.is_loaded() {
                    state.index.load(control, grid)?;
                    self.note_moved();
                }
                Ok(state.index.is_complete())
            }
        }
    }

    /// Whether writing the selected elements, whole ones, asks nothing of the library but to store chunks; its places are
    /// asked for now, if they never were. True until someone else changes the array.
    pub fn only_stores(&self, control: &dyn Control, selection: &Selection) -> Result<bool> {
        let extent = self.extent();
        match &extent.grid {
            Some(grid) if !self.pipeline.is_plain() && selection.check_inside(&extent.shape).is_ok() => {
                if !self.state().index.is_loaded() {
                    self.state().index.load(control, grid)?;
                }
                self.only_stores_in(grid, selection)
            }
            _ => Ok(false),
        }
    }

    /// Stores everything that waits in memory.
    pub fn flush(&self, control: &dyn Control) -> Result<()> {
        let extent = self.extent();
        self.store_changed(&extent, control)
    }

    /// Runs a call of the library, which finds everything in the file and leaves nothing stale behind here.
    pub fn aside<T>(&self, control: &dyn Control, touched: Touched<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Touched::Nothing = touched {
            let extent = self.extent();
            self.store_changed(&extent, control)?;
            return body();
        }
        let extent = self.extent_alone();
        self.store_changed(&extent, control)?;
        self.state().cache.drop_unchanged();
        let result = body();
        // A chunk without filters stays where it is.
        let settled = self.pipeline.is_plain() && self.state().index.is_complete();
        if !settled {
            self.note_moved();
        }
        let noted = match (touched, &extent.grid) {
            (Touched::Elements(selection), Some(grid)) if !settled => self.note_written(grid, selection),
            _ => Ok(()),
        };
        if result.is_err() || noted.is_err() || matches!(touched, Touched::Everything) && !settled {
            self.state().index.forget();
            self.address.store(NOWHERE, Ordering::Release);
        }
        result
    }

    /// Notes that others have changed the array; nothing of it may be in use.
    pub fn forget(&self) {
        self.note_moved();
        let mut state = self.state();
        state.cache.drop_unchanged();
        state.index.forget();
        self.address.store(NOWHERE, Ordering::Release);
    }

    /// Changes the shape by a call of the library, which returns the new one.
    pub fn resize(&self, control: &dyn Control, body: impl FnOnce() -> Result<Dims>) -> Result<()> {
        let mut extent = self.extent_alone();
        self.store_changed(&extent, control)?;
        self.state().cache.drop_unchanged();
        let result = body();
        let shape = match result {
            Ok(shape) => shape,
            Err(error) => {
                self.note_moved();
                self.state().index.forget();
                return Err(error);
            }
        };
        let grid = match &extent.grid {
            Some(grid) => Some(ChunkGrid::new(&shape, grid.chunk())?),
            None => None,
        };
        // Chunks without filters stay where they are, and keep their numbers, if there are only more rows of them and nobody else
        // has them moved or allocated.
        let rows = extent.shape.get(1..) == shape.get(1..) && extent.shape.first() <= shape.first();
        match &grid {
            Some(grid) if rows && self.alone && self.pipeline.is_plain() => self.state().index.grow(grid.len()),
            _ => {
                self.note_moved();
                self.state().index.forget();
            }
        }
        (extent.grid, extent.shape) = (grid, shape);
        Ok(())
    }

    fn note_written(&self, grid: &ChunkGrid, selection: &Selection) -> Result<()> {
        for part in selection.split_by_chunk(grid)? {
            let number = grid.linear(&part?.chunk)?;
            self.state().index.note_written(number, None);
        }
        Ok(())
    }

    /// Asks for the places of chunks, if they are needed and worth it.
    pub(crate) fn prepare_index(&self, grid: &ChunkGrid, control: &dyn Control, selection: &Selection) -> Result<()> {
        let mut state = self.state();
        if !state.index.is_loaded() || state.index.is_worth_loading(chunks_around(selection, grid)) {
            // The library may be at work for another rank: what it writes meanwhile is noted only afterwards.
            state.index.load(control, grid)?;
        }
        Ok(())
    }

    /// An error that names the array and a chunk.
    pub(crate) fn mark(&self, error: Error, grid: &ChunkGrid, number: u64) -> Error {
        let chunk = grid.coordinates(number).map_or_else(|_| number.to_string(), |c| format!("{:?}", c.as_slice()));
        error.target(format!("{}, chunk {chunk}", self.name))
    }
}

/// The elements of a view, packed.
fn gathered(memory: MemoryView<'_>, dtype: &Datatype, elements: u64) -> Result<Vec<u8>> {
    let mut packed = file::buffer((elements * dtype.size()) as usize)?;
    Gather::new(memory, dtype, elements)?.next_into(&mut packed);
    Ok(packed)
}
