//! The direct path of one dataset: dispatch of transfers by layout, coherence with the library, shape changes.

use crate::cache::Cache;
use crate::chunk_index::{ChunkIndex, chunks_in_bounds};
use crate::chunk_locks::ChunkLocks;
use crate::fallback::FallbackReason;
use crate::file;
use crate::memory::{Source, Target, Types};
use crate::metadata_backend::MetadataBackend;
use crate::workers;
use crate::write_guard::WriteGuard;
use hyperslab_core::{
    ChunkGrid, Datatype, Dims, ElementPlan, Error, Gather, MemoryView, MemoryViewMut, Result, Scatter, Selection, dims,
};
use hyperslab_filters::{FilterSpec, Pipeline};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Irregular memory selections up to this many bytes are packed before the transfer; larger ones fall back.
const PACK_LIMIT: u64 = 16 << 20;
/// Default limit of a dataset's chunk cache, in bytes.
pub const CACHE_BYTES: u64 = 32 << 20;

/// Storage layout of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// One contiguous byte range.
    Contiguous,
    /// Chunks of these extents.
    Chunked(Dims),
}

/// Immutable dataset metadata.
#[derive(Debug)]
pub struct DatasetInfo {
    /// Name in error messages.
    pub name: String,
    /// The file, by a descriptor of its own.
    pub file: Arc<File>,
    /// Element type in the file.
    pub dtype: Datatype,
    /// Storage layout.
    pub layout: Layout,
    /// Filter pipeline, in encoding order.
    pub filters: Vec<FilterSpec>,
    /// Fill value; zeros if absent.
    pub fill: Option<Vec<u8>>,
    /// Whether no other process writes the dataset while it is open here.
    pub single_writer: bool,
    /// Whether growth allocates no chunks.
    pub grows_unallocated: bool,
    /// Wraps every write to the file, such as to save the overwritten bytes first.
    pub guard: Option<Arc<dyn WriteGuard>>,
}

/// Resource limits of a dataset.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads of one call, including the caller; 0 means one per core.
    pub threads: usize,
    /// Limit of the chunk cache, in bytes.
    pub cache: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { threads: 0, cache: CACHE_BYTES }
    }
}

/// What a library call may change.
#[derive(Debug, Clone, Copy)]
pub enum WriteEffect<'a> {
    /// Nothing: it only reads.
    Nothing,
    /// These elements.
    Elements(&'a Selection),
    /// Anything, including the locations of chunks.
    Everything,
}

/// The direct path of one dataset, shared by all its handles in the process. Any thread may call it.
#[derive(Debug)]
pub struct DirectDataset {
    pub(crate) name: String,
    pub(crate) file: Arc<File>,
    pub(crate) dtype: Datatype,
    pub(crate) element: u64,
    pub(crate) pipeline: Pipeline,
    pub(crate) fill: Vec<u8>,
    pub(crate) single_writer: bool,
    grows_unallocated: bool,
    guard: Option<Arc<dyn WriteGuard>>,
    pub(crate) threads: usize,
    pub(crate) chunk_bytes: usize,
    /// Read-locked by transfers, write-locked by resize, invalidation and read-modify-write of raw bytes.
    extent: RwLock<Extent>,
    pub(crate) state: Mutex<State>,
    pub(crate) locks: ChunkLocks,
    /// File address of a contiguous dataset, or [`UNKNOWN_ADDRESS`].
    address: AtomicU64,
}

const UNKNOWN_ADDRESS: u64 = u64::MAX;

/// The shape and what is derived from it.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(crate) shape: Dims,
    /// `Some` for chunked datasets.
    pub(crate) grid: Option<ChunkGrid>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: ChunkIndex,
    pub(crate) cache: Cache,
}

impl DirectDataset {
    /// Creates the direct path of a dataset of this shape. The inner error is the reason why it is not supported.
    pub fn new(info: DatasetInfo, shape: &[u64], limits: Limits) -> Result<Result<Self, FallbackReason>> {
        let DatasetInfo { name, file, dtype, layout, filters, fill, single_writer, grows_unallocated, guard } = info;
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
            Err(error) => return Ok(Err(FallbackReason::Filter(error.to_string()))),
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
            single_writer,
            grows_unallocated,
            guard,
            threads: if limits.threads == 0 { workers::cores() } else { limits.threads },
            chunk_bytes,
            extent: RwLock::new(Extent { shape: shape.into(), grid }),
            state: Mutex::new(State { index: ChunkIndex::default(), cache: Cache::new(limits.cache) }),
            locks: ChunkLocks::default(),
            address: AtomicU64::new(UNKNOWN_ADDRESS),
            dtype,
        }))
    }

    pub(crate) fn guard(&self) -> Option<&dyn WriteGuard> {
        self.guard.as_deref()
    }

    /// Tells the guard that elements may have moved in the file.
    pub(crate) fn notify_relocated(&self) {
        if let Some(guard) = &self.guard {
            guard.relocated();
        }
    }

    pub(crate) fn extent(&self) -> RwLockReadGuard<'_, Extent> {
        self.extent.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn extent_exclusive(&self) -> RwLockWriteGuard<'_, Extent> {
        self.extent.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the selected elements. `Some`: nothing was read, the library must execute the transfer.
    pub fn read(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
    ) -> Result<Option<FallbackReason>> {
        self.read_as(control, selection, memory, &self.dtype)
    }

    /// Writes the selected elements. `Some`: the library must execute the transfer; part of the elements may have been
    /// written. Filtered chunks that are covered partly stay dirty in the cache until a write-back.
    pub fn write(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        memory: MemoryView<'_>,
    ) -> Result<Option<FallbackReason>> {
        self.write_as(control, selection, memory, &self.dtype)
    }

    /// As [`Self::read`], converting to the element type `dtype` of memory.
    pub fn read_as(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<FallbackReason>> {
        let (extent, elements) = (self.extent(), selection.len());
        selection.check_inside(&extent.shape)?;
        memory.check(dtype, elements)?;
        if elements == 0 {
            return Ok(None);
        }
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(false)? {
            Ok(conversion) => conversion,
            Err(reason) => return Ok(Some(reason)),
        };
        let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
        if let Some(target) = Target::new(view, types, elements, conversion.clone())? {
            return self.read_to(&extent, control, selection, target);
        }
        if elements * dtype.size() > PACK_LIMIT {
            return Ok(Some(FallbackReason::ScatteredMemory));
        }
        let mut packed = file::buffer((elements * dtype.size()) as usize)?;
        let view = MemoryViewMut::packed(&mut packed);
        let Some(target) = Target::new(view, types, elements, conversion)? else { return Ok(None) };
        let reason = self.read_to(&extent, control, selection, target)?;
        if reason.is_none() {
            let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
            Scatter::new(view, dtype, elements)?.next_from(&packed);
        }
        Ok(reason)
    }

    /// As [`Self::write`], converting from the element type `dtype` of memory.
    pub fn write_as(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        memory: MemoryView<'_>,
        dtype: &Datatype,
    ) -> Result<Option<FallbackReason>> {
        let elements = selection.len();
        selection.check_inside(&self.extent().shape)?;
        memory.check(dtype, elements)?;
        if elements == 0 {
            return Ok(None);
        }
        let whole = memory.layout.is_packed() || memory.layout.plan(dtype)?.covers_element();
        if !whole && !self.single_writer {
            return Ok(Some(FallbackReason::OtherWriters));
        }
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(true)? {
            Ok(conversion) => conversion,
            Err(reason) => return Ok(Some(reason)),
        };
        let packed;
        let source = match Source::new(memory, types, elements, conversion.clone())? {
            Some(source) => source,
            None if !whole || elements * dtype.size() > PACK_LIMIT => return Ok(Some(FallbackReason::ScatteredMemory)),
            None => {
                packed = gathered(memory, dtype, elements)?;
                let Some(source) = Source::new(MemoryView::packed(&packed), types, elements, conversion)? else {
                    return Ok(Some(FallbackReason::ScatteredMemory));
                };
                source
            }
        };
        self.write_source(control, selection, source, whole)
    }

    /// As [`Self::write`], from several buffers, each with some fields of every element. Where fields overlap, the last
    /// buffer wins.
    pub fn write_fields(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        views: &[MemoryView<'_>],
    ) -> Result<Option<FallbackReason>> {
        let (elements, types) = (selection.len(), Types { memory: &self.dtype, file: &self.dtype });
        let mut plans = Vec::with_capacity(views.len());
        let mut all: Option<Source<'_>> = None;
        for view in views {
            view.check(&self.dtype, elements)?;
            plans.push(view.layout.plan(&self.dtype)?);
            let Some(source) = Source::new(*view, types, elements, None)? else {
                return Ok(Some(FallbackReason::ScatteredMemory));
            };
            all = Some(match all {
                Some(below) => below.under(source),
                None => source,
            });
        }
        let whole = ElementPlan::covered_together(&plans) == self.element;
        match all {
            Some(_) if !whole && !self.single_writer => Ok(Some(FallbackReason::OtherWriters)),
            Some(source) if elements > 0 => self.write_source(control, selection, source, whole),
            _ => Ok(None),
        }
    }

    fn write_source(
        &self,
        control: &dyn MetadataBackend,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
    ) -> Result<Option<FallbackReason>> {
        let extent = self.extent();
        selection.check_inside(&extent.shape)?;
        if self.pipeline.is_plain() && self.needs_read_modify_write(&extent.shape, selection, whole)? {
            drop(extent);
            let extent = self.extent_exclusive();
            selection.check_inside(&extent.shape)?;
            return self.write_from(&extent, control, selection, source, whole, true);
        }
        self.write_from(&extent, control, selection, source, whole, false)
    }

    fn read_to(
        &self,
        extent: &Extent,
        control: &dyn MetadataBackend,
        selection: &Selection,
        target: Target<'_>,
    ) -> Result<Option<FallbackReason>> {
        match &extent.grid {
            None => self.read_contiguous(extent, control, selection, target),
            Some(grid) if self.pipeline.is_plain() => self.read_unfiltered_chunks(grid, control, selection, target),
            Some(grid) => self.read_filtered_chunks(grid, control, selection, target),
        }
    }

    fn write_from(
        &self,
        extent: &Extent,
        control: &dyn MetadataBackend,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
        read_modify_write: bool,
    ) -> Result<Option<FallbackReason>> {
        match &extent.grid {
            None => self.write_contiguous(extent, control, selection, source, read_modify_write),
            Some(grid) if self.pipeline.is_plain() => {
                self.write_unfiltered_chunks(grid, control, selection, source, whole, read_modify_write)
            }
            Some(_) if !self.single_writer => Ok(Some(FallbackReason::OtherWriters)),
            Some(grid) => self.write_filtered_chunks(grid, control, selection, source, whole),
        }
    }

    /// The cached address of a contiguous dataset.
    pub(crate) fn known_address(&self) -> Option<u64> {
        Some(self.address.load(Ordering::Acquire)).filter(|known| *known != UNKNOWN_ADDRESS)
    }

    /// The address of a contiguous dataset; queries the library if it is not cached. `None`: not allocated.
    pub(crate) fn address(&self, control: &dyn MetadataBackend, allocate: bool) -> Result<Option<u64>> {
        if let Some(known) = self.known_address() {
            return Ok(Some(known));
        }
        let found = control.dataset_address(allocate)?;
        self.notify_relocated();
        self.address.store(found.unwrap_or(UNKNOWN_ADDRESS), Ordering::Release);
        Ok(found)
    }

    /// The current shape.
    pub fn shape(&self) -> Dims {
        self.extent().shape.clone()
    }

    /// Whether the address of every element is known, so that transfers need nothing of the library.
    pub fn has_full_index(&self) -> bool {
        match &self.extent().grid {
            None => self.known_address().is_some(),
            Some(_) => self.pipeline.is_plain() && self.state().index.is_full(),
        }
    }

    /// Loads the chunk index or address if it was never loaded, then answers [`Self::has_full_index`]. Allocates a
    /// contiguous dataset where this process is the only writer.
    pub fn load_full_index(&self, control: &dyn MetadataBackend) -> Result<bool> {
        let extent = self.extent();
        match &extent.grid {
            None => Ok(self.address(control, self.single_writer)?.is_some()),
            Some(_) if !self.pipeline.is_plain() => Ok(false),
            Some(grid) => {
                let mut state = self.state();
                if !state.index.is_loaded() {
                    state.index.load(control, grid)?;
                    self.notify_relocated();
                }
                Ok(state.index.is_full())
            }
        }
    }

    /// Whether writing the selected, complete elements needs nothing of the library but to store chunks. Loads the
    /// chunk index if it was never loaded. Valid until another writer changes the dataset.
    pub fn needs_no_reads(&self, control: &dyn MetadataBackend, selection: &Selection) -> Result<bool> {
        let extent = self.extent();
        match &extent.grid {
            Some(grid) if !self.pipeline.is_plain() && selection.check_inside(&extent.shape).is_ok() => {
                if !self.state().index.is_loaded() {
                    self.state().index.load(control, grid)?;
                }
                self.all_chunks_overwritten(grid, selection)
            }
            _ => Ok(false),
        }
    }

    /// Writes all dirty chunks back.
    pub fn flush(&self, control: &dyn MetadataBackend) -> Result<()> {
        let extent = self.extent();
        self.write_back(&extent, control)
    }

    /// Writes dirty chunks back, runs a library call, then invalidates what `effect` says it may have changed. After
    /// an error of the call everything cached is invalidated.
    pub fn with_library<T>(
        &self,
        control: &dyn MetadataBackend,
        effect: WriteEffect<'_>,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let WriteEffect::Nothing = effect {
            let extent = self.extent();
            self.write_back(&extent, control)?;
            return body();
        }
        let extent = self.extent_exclusive();
        self.write_back(&extent, control)?;
        self.state().cache.drop_clean();
        let result = body();
        // Unfiltered chunks never move.
        let stays_full = self.pipeline.is_plain() && self.state().index.is_full();
        if !stays_full {
            self.notify_relocated();
        }
        let noted = match (effect, &extent.grid) {
            (WriteEffect::Elements(selection), Some(grid)) if !stays_full => self.note_written(grid, selection),
            _ => Ok(()),
        };
        if result.is_err() || noted.is_err() || matches!(effect, WriteEffect::Everything) && !stays_full {
            self.state().index.forget();
            self.address.store(UNKNOWN_ADDRESS, Ordering::Release);
        }
        result
    }

    /// Invalidates all cached metadata and clean chunks, because another writer changed the dataset. No transfer may be
    /// in flight.
    pub fn forget(&self) {
        self.notify_relocated();
        let mut state = self.state();
        state.cache.drop_clean();
        state.index.forget();
        self.address.store(UNKNOWN_ADDRESS, Ordering::Release);
    }

    /// Whether chunks keep their numbers, addresses and content if the shape becomes this: it grows along the first
    /// dimension, and no other process allocates chunks.
    pub fn keeps_chunks(&self, shape: &[u64]) -> bool {
        self.keeps_chunks_of(&self.extent().shape, shape)
    }

    fn keeps_chunks_of(&self, old: &[u64], new: &[u64]) -> bool {
        // Of chunks that the library allocates and filters by itself the filter masks would be unknown.
        (self.pipeline.is_plain() || self.grows_unallocated)
            && self.single_writer
            && old.len() == new.len()
            && old.get(1..) == new.get(1..)
            && old.first() <= new.first()
    }

    /// Changes the shape to `wanted` by the library call `body`, which returns the new one. Dirty chunks are written back
    /// first, unless they keep their place.
    pub fn resize(
        &self,
        control: &dyn MetadataBackend,
        wanted: &[u64],
        body: impl FnOnce() -> Result<Dims>,
    ) -> Result<()> {
        let mut extent = self.extent_exclusive();
        if !self.keeps_chunks_of(&extent.shape, wanted) {
            self.write_back(&extent, control)?;
            self.state().cache.drop_clean();
        }
        let result = body();
        let shape = match result {
            Ok(shape) => shape,
            Err(error) => {
                self.notify_relocated();
                self.state().index.forget();
                return Err(error);
            }
        };
        let grid = match &extent.grid {
            Some(grid) => Some(ChunkGrid::new(&shape, grid.chunk())?),
            None => None,
        };
        match &grid {
            // Chunks that the library allocates at once hold fill values, as those read that are not allocated.
            Some(grid) if self.keeps_chunks_of(&extent.shape, &shape) => self.state().index.grow(grid.len()),
            _ => {
                self.notify_relocated();
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

    /// Loads the chunk index if it was never loaded, or if that is cheaper than single lookups.
    pub(crate) fn prepare_index(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        selection: &Selection,
    ) -> Result<()> {
        let mut state = self.state();
        if !state.index.is_loaded() || state.index.is_worth_loading(chunks_in_bounds(selection, grid)) {
            // The library may be writing for another rank: that is noted in the index only afterwards.
            state.index.load(control, grid)?;
        }
        Ok(())
    }

    /// Adds the dataset's name and the chunk's coordinates to an error.
    pub(crate) fn chunk_error(&self, error: Error, grid: &ChunkGrid, number: u64) -> Error {
        let chunk = grid.coordinates(number).map_or_else(|_| number.to_string(), |c| format!("{:?}", c.as_slice()));
        error.target(format!("{}, chunk {chunk}", self.name))
    }
}

/// Gathers the elements of a view into a packed buffer.
fn gathered(memory: MemoryView<'_>, dtype: &Datatype, elements: u64) -> Result<Vec<u8>> {
    let mut packed = file::buffer((elements * dtype.size()) as usize)?;
    Gather::new(memory, dtype, elements)?.next_into(&mut packed);
    Ok(packed)
}
