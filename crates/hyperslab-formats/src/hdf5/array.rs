//! An open HDF5 dataset.

use super::collective_stats::{Collective, Direction};
use super::collective_transfer;
use super::container::{Slot, closed, refuse_compact, refuse_parallel_strings, refuse_writing};
use super::dataset_filters;
use super::dataspace;
use super::dataspace_cache::DataspaceCache;
use super::datatype::{self, Stored};
use super::diagnostics::Diagnostics;
use super::direct_access::{self, Attach, DirectAccess, LibraryOnly};
use super::handle::{DataPath, OwnedHandle};
use super::library::{self, Id, count, done, truth};
use super::ranks::Ranks;
use super::strings;
use super::transfer::{self, Request, Scratch};
use hdf5_metno_sys::h5::HADDR_UNDEF;
use hdf5_metno_sys::h5d::{self, H5D_alloc_time_t, H5D_fill_value_t, H5D_layout_t};
use hdf5_metno_sys::{h5p, h5t};
use hyperslab_core::storage::{FileRules, StoredLayout};
use hyperslab_core::{
    Array, ArraySpec, Datatype, Dims, Error, MAX_RANK, MemoryLayout, MemoryView, MemoryViewMut, Result, Selection,
    Strings, Telemetry, TransferMode, dims,
};
use hyperslab_h5direct::WriteEffect;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const RESIZING: &str = "resize";
const DESCRIBING: &str = "describe array";

/// One rank's handle of a dataset.
#[derive(Debug)]
pub(super) struct Hdf5Array {
    name: String,
    /// Shared with the container, whose close takes the handle out.
    slot: Arc<Slot>,
    stored: Arc<Stored>,
    scratch: Mutex<Scratch>,
    limits: ParallelLimits,
    context: Arc<FileContext>,
}

/// State shared by the arrays of an open file.
#[derive(Debug)]
pub(super) struct FileContext {
    pub(super) dataspaces: DataspaceCache,
    pub(super) ranks: Ranks,
    /// `Some` if ranks are processes.
    pub(super) collective: Option<Collective>,
    pub(super) writable: bool,
    /// Whether the direct path was requested, the same on every rank.
    pub(super) direct: bool,
    /// `Some` with the direct path.
    pub(super) access: Option<DirectAccess>,
    pub(super) diagnostics: Diagnostics,
}

/// Restrictions on writes of an array that processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParallelLimits {
    None,
    /// Filtered: chunks change size and address, so writes must be collective.
    CollectiveWritesOnly,
    /// Structures that libhdf5 must convert: it reads the overwritten elements by collective calls that ranks without
    /// elements do not make.
    IndependentWritesOnly,
    /// No writes at all.
    ReadOnly(ReadOnlyReason),
}

/// Why processes cannot write an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadOnlyReason {
    Compact,
    /// Filtered and converted, a combination that parallel libhdf5 does not support.
    Converted,
    /// Unfiltered chunks are not allocated. libhdf5 2.2 allocates in each process only the chunks which that process
    /// writes, even in collective writes, so that the processes' metadata diverge.
    Sparse,
}

impl Hdf5Array {
    /// Takes over an open dataset. Fails for unsupported element types and shapes. `layout` is `Some` for a dataset
    /// created here.
    pub(super) fn new(
        name: &str,
        dataset: Id,
        context: Arc<FileContext>,
        layout: Option<&StoredLayout>,
    ) -> Result<Self> {
        let (stored, scratch, limits, data_path) = library::with(|| {
            // SAFETY: the dataset is live; what is returned is closed by `Id`.
            let element = Id::take("open array", unsafe { h5d::H5Dget_type(dataset.raw()) })?;
            let stored = datatype::read(&element)?;
            let fixed = match layout {
                Some(layout) => layout.chunk().is_none(),
                None => is_fixed(&dataset)?,
            };
            let limits = if context.ranks.are_processes() && context.ranks.count() > 1 {
                limits(&dataset, &element, &stored, context.writable)?
            } else {
                ParallelLimits::None
            };
            let data_path = match &context.access {
                None => match direct_access::find(&dataset)? {
                    Some(direct) => DataPath::SharedWithDirect(direct),
                    None => DataPath::Library(Some(LibraryOnly::new(&dataset)?)),
                },
                Some(access) => {
                    let (_, shape) = transfer::file_space(&dataset)?;
                    match direct_access::attach(name, &dataset, &stored, &shape, access)? {
                        Attach::Direct(direct) => DataPath::Direct(direct),
                        Attach::Library(reason) => {
                            context.diagnostics.note(&reason);
                            DataPath::Library(Some(LibraryOnly::new(&dataset)?))
                        }
                    }
                }
            };
            Ok::<_, Error>((stored, Scratch::new(fixed), limits, data_path))
        })?;
        let stored = Arc::new(stored);
        let slot = Arc::new(Mutex::new(Some(OwnedHandle::dataset(dataset, &context.ranks, data_path, stored.clone()))));
        Ok(Self { name: name.into(), slot, stored, scratch, limits, context })
    }

    /// The slot from which the container's close takes the handle.
    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedHandle>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, operation: &'static str, body: impl FnOnce(&OwnedHandle) -> Result<T>) -> Result<T> {
        match self.lock().as_ref() {
            Some(dataset) => body(dataset),
            None => Err(closed(operation, "array")),
        }
        .map_err(|error| self.mark(error))
    }

    fn request<'a>(&'a self, dataset: &'a OwnedHandle) -> Request<'a> {
        let Self { stored, context, scratch, .. } = self;
        Request { dataset: dataset.id(), stored, dataspaces: &context.dataspaces, scratch }
    }

    /// State of collective transfers; `None` if the transfer is independent.
    fn collective(&self, transfer: TransferMode) -> Option<&Collective> {
        self.context.collective.as_ref().filter(|_| transfer == TransferMode::Collective)
    }

    /// Like [`Self::collective`] for writes; the same on every rank.
    fn collective_write(&self, transfer: TransferMode) -> Option<&Collective> {
        let collective = self.collective(transfer)?;
        if self.limits == ParallelLimits::IndependentWritesOnly {
            collective.note_conversion(Direction::Write);
            return None;
        }
        Some(collective)
    }

    /// Fails for writes that would corrupt the file; the same on every rank.
    fn refuse_unsafe_write(&self, transfer: TransferMode) -> Result<()> {
        match self.limits {
            ParallelLimits::CollectiveWritesOnly if transfer == TransferMode::Independent => Err(Error::unsupported(
                "write",
                "processes cannot write an array with filters independently of each other",
            )
            .hint("use collective transfers, or an array without filters")),
            ParallelLimits::ReadOnly(ReadOnlyReason::Compact) => Err(refuse_compact("write")),
            ParallelLimits::ReadOnly(ReadOnlyReason::Converted) => Err(Error::unsupported(
                "write",
                "processes cannot write an array with filters whose elements are not stored as in memory",
            )
            .hint("write it with one rank, or create an array of this machine's own types")),
            ParallelLimits::ReadOnly(ReadOnlyReason::Sparse) => Err(Error::unsupported(
                "write",
                "processes cannot write an array some of whose chunks were never written: libhdf5 would damage the file",
            )
            .hint("write every chunk with one rank first, or create the array with these ranks or alloc_time=early")),
            _ => Ok(()),
        }
    }

    /// Independent write: by the direct path, with fallback to libhdf5.
    fn write_independent(&self, dataset: &OwnedHandle, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        if let Some((direct, library)) = dataset.direct() {
            match direct.write(&library, selection, memory)? {
                None => return Ok(()),
                Some(reason) => self.context.diagnostics.note(reason),
            }
        }
        let effect = WriteEffect::Elements(selection);
        dataset.library_transfer(effect, || transfer::write(self.request(dataset), selection, memory))
    }

    /// Independent read: by the direct path, with fallback to libhdf5.
    fn read_independent(
        &self,
        dataset: &OwnedHandle,
        selection: &Selection,
        mut memory: MemoryViewMut<'_>,
    ) -> Result<()> {
        if let Some((direct, library)) = dataset.direct() {
            match direct.read(&library, selection, &mut memory)? {
                None => return Ok(()),
                Some(reason) => self.context.diagnostics.note(reason),
            }
        }
        dataset.library_transfer(WriteEffect::Nothing, || transfer::read(self.request(dataset), selection, memory))
    }

    fn refuse_other_than_strings(&self, operation: &'static str) -> Result<()> {
        match self.stored.dtype {
            Datatype::VariableString => Ok(()),
            _ => Err(Error::unsupported(operation, "the elements of this array are no strings of variable length")),
        }
    }

    fn mark(&self, error: Error) -> Error {
        error.backend(super::NAME).target(&self.name)
    }

    /// Validates a new shape; the same on every rank. Returns whether it differs from the current one.
    fn check_resize(&self, dataset: &Id, shape: &[u64]) -> Result<bool> {
        refuse_writing(RESIZING, self.context.writable)?;
        dims::byte_count(shape, self.stored.dtype.size())?;
        library::with(|| {
            // SAFETY: the dataset is live.
            let space = Id::take(RESIZING, unsafe { h5d::H5Dget_space(dataset.raw()) })?;
            let Some(extents) = dataspace::extents(&space)? else {
                return Err(Error::unsupported(RESIZING, "the array has no shape"));
            };
            if shape.len() != extents.shape.len() {
                return Err(Error::invalid(
                    RESIZING,
                    format!("{} dimensions were given, the array has {}", shape.len(), extents.shape.len()),
                ));
            }
            if let Some(d) = (0..shape.len()).find(|&d| extents.max[d].is_some_and(|max| shape[d] > max)) {
                return Err(Error::invalid(
                    RESIZING,
                    format!("extent {} of dimension {d} exceeds its maximum {:?}", shape[d], extents.max[d]),
                ));
            }
            // SAFETY: the dataset is live; its creation list is closed by `Id`.
            let (list, chunked) = unsafe {
                let list = Id::take(RESIZING, h5d::H5Dget_create_plist(dataset.raw()))?;
                let chunked = h5p::H5Pget_layout(list.raw()) == H5D_layout_t::H5D_CHUNKED;
                (list, chunked)
            };
            let changes = shape != extents.shape.as_slice();
            if !chunked && changes {
                return Err(Error::unsupported(RESIZING, "only chunked arrays can change shape")
                    .hint("create the array with a maximum shape or with chunks"));
            }
            let many_processes = self.context.ranks.are_processes() && self.context.ranks.count() > 1;
            if many_processes && self.limits != ParallelLimits::CollectiveWritesOnly && makes_chunks_late(&list)? {
                let chunk = chunk(&list)?;
                let more = |d: usize| shape[d].div_ceil(chunk[d]) > extents.shape[d].div_ceil(chunk[d]);
                if (0..shape.len()).any(more) {
                    let message = "processes cannot give more chunks to an array that makes them when they are written";
                    return Err(Error::unsupported(RESIZING, message)
                        .hint("resize and fill it with one rank, or create it with these ranks or alloc_time=early"));
                }
            }
            Ok(changes)
        })
    }
}

/// Determines the restrictions of a dataset. Call under libhdf5's lock.
fn limits(dataset: &Id, element: &Id, stored: &Stored, writable: bool) -> Result<ParallelLimits> {
    const DOING: &str = "open array";
    // SAFETY: the dataset is live; the list is closed by `Id`.
    unsafe {
        let list = Id::take(DOING, h5d::H5Dget_create_plist(dataset.raw()))?;
        if h5p::H5Pget_layout(list.raw()) == H5D_layout_t::H5D_COMPACT {
            return Ok(ParallelLimits::ReadOnly(ReadOnlyReason::Compact));
        }
        let filtered = count(DOING, h5p::H5Pget_nfilters(list.raw()))? > 0;
        if writable && !filtered && makes_chunks_late(&list)? && !transfer::is_allocated(dataset)? {
            return Ok(ParallelLimits::ReadOnly(ReadOnlyReason::Sparse));
        }
        let structure = matches!(stored.dtype, Datatype::Compound(_));
        let converts = (structure || filtered) && !truth(DOING, h5t::H5Tequal(element.raw(), stored.memory.raw()))?;
        Ok(match (filtered, converts) {
            (true, true) => ParallelLimits::ReadOnly(ReadOnlyReason::Converted),
            (true, false) => ParallelLimits::CollectiveWritesOnly,
            (false, true) => ParallelLimits::IndependentWritesOnly,
            (false, false) => ParallelLimits::None,
        })
    }
}

/// Whether chunks are allocated only when they are written. Call under libhdf5's lock.
fn makes_chunks_late(list: &Id) -> Result<bool> {
    let mut time = H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY;
    // SAFETY: the list is live and the time is a variable of our own.
    unsafe {
        if h5p::H5Pget_layout(list.raw()) != H5D_layout_t::H5D_CHUNKED {
            return Ok(false);
        }
        done("open array", h5p::H5Pget_alloc_time(list.raw(), &raw mut time))?;
    }
    Ok(time != H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY)
}

/// Whether the shape can never change. Fails for unsupported shapes.
fn is_fixed(dataset: &Id) -> Result<bool> {
    // Only an allocated contiguous dataset has an offset. Querying it is much cheaper than the creation list, which
    // libhdf5 copies.
    // SAFETY: the dataset is live.
    let offset = unsafe { h5d::H5Dget_offset(dataset.raw()) };
    let (_, shape) = transfer::file_space(dataset)?;
    if offset != HADDR_UNDEF {
        return Ok(true);
    }
    // SAFETY: the dataset is live; the list is closed by `Id`.
    let layout = unsafe {
        let list = Id::take("open array", h5d::H5Dget_create_plist(dataset.raw()))?;
        h5p::H5Pget_layout(list.raw())
    };
    refuse_too_many_dimensions(shape.len(), layout)?;
    Ok(matches!(layout, H5D_layout_t::H5D_CONTIGUOUS | H5D_layout_t::H5D_COMPACT))
}

/// Fails for datasets whose selections make libhdf5 overflow a buffer.
fn refuse_too_many_dimensions(rank: usize, layout: H5D_layout_t) -> Result<()> {
    if layout == H5D_layout_t::H5D_CHUNKED && rank > FileRules::MOST_CHUNKED_DIMENSIONS {
        let message = format!("{rank} dimensions with chunks are too many for libhdf5");
        return Err(Error::unsupported("open array", message));
    }
    Ok(())
}

impl Array for Hdf5Array {
    fn spec(&self) -> Result<ArraySpec> {
        self.with(DESCRIBING, |dataset| library::with(|| describe(dataset.id(), &self.stored)))
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.with("write", |dataset| {
            refuse_writing("write", self.context.writable)?;
            self.refuse_unsafe_write(transfer)?;
            transfer::refuse_cutting(&self.stored)?;
            dataset.note_change();
            let written = match self.collective_write(transfer) {
                Some(collective) => {
                    // Chunks written by other ranks may be allocated, or move, too.
                    let effect = match self.context.ranks.count() {
                        1 => WriteEffect::Elements(selection),
                        _ => WriteEffect::Everything,
                    };
                    let mine = dataset.library_transfer(effect, || {
                        collective_transfer::write(self.request(dataset), collective, selection, memory)
                    });
                    if self.limits == ParallelLimits::CollectiveWritesOnly || self.context.direct {
                        // A chunk shared by several ranks is written by one of them, and must be complete before others
                        // read it. And MPI-IO aggregates elements at few ranks: Open MPI's ompio lets the other ranks
                        // continue before those have written, and they may write back stale bytes between the elements.
                        self.context.ranks.barrier()?;
                    }
                    mine
                }
                None => self.write_independent(dataset, selection, memory),
            };
            written
                .inspect_err(|error| self.context.collective.iter().for_each(|collective| collective.note_error(error)))
        })
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.with("read", |dataset| match self.collective(transfer) {
            Some(collective) => dataset.library_transfer(WriteEffect::Nothing, || {
                collective_transfer::read(self.request(dataset), collective, selection, memory)
            }),
            None => self.read_independent(dataset, selection, memory),
        })
    }

    /// Independent, also in collective transfers.
    fn write_strings(&self, selection: &Selection, strings: &Strings, _: TransferMode) -> Result<()> {
        self.with("write", |dataset| {
            refuse_writing("write", self.context.writable)?;
            self.refuse_other_than_strings("write")?;
            if self.context.ranks.are_processes() {
                return Err(refuse_parallel_strings("write"));
            }
            dataset.note_change();
            let effect = WriteEffect::Elements(selection);
            dataset.library_transfer(effect, || strings::write(self.request(dataset), selection, strings))
        })
    }

    /// Independent, also in collective transfers.
    fn read_strings(&self, selection: &Selection, _: TransferMode) -> Result<Strings> {
        self.with("read", |dataset| {
            self.refuse_other_than_strings("read")?;
            dataset.library_transfer(WriteEffect::Nothing, || strings::read(self.request(dataset), selection))
        })
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let checked = self.with(RESIZING, |dataset| self.check_resize(dataset.id(), shape));
        let changes = self.context.ranks.agree(checked)?;
        let resize = |dataset: &OwnedHandle| {
            if !changes {
                return Ok(());
            }
            dataset.note_change();
            dataset.resize(shape, || {
                // SAFETY: the dataset is live and has as many dimensions as `shape` (checked above).
                library::with(|| done(RESIZING, unsafe { h5d::H5Dset_extent(dataset.id().raw(), shape.as_ptr()) }))?;
                Ok(shape.into())
            })
        };
        self.context.ranks.change(Ok(()), || self.with(RESIZING, resize)).map(|_| ())
    }

    fn close(&self) -> Result<()> {
        let Some(dataset) = self.lock().take() else { return Ok(()) };
        let mine = dataset.close("close array").map_err(|error| self.mark(error));
        self.context.ranks.agree(mine)
    }
}

impl Telemetry for Hdf5Array {
    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.with("explain", |dataset| {
            let Some((direct, library)) = dataset.direct() else {
                let reasons = self.context.diagnostics.list();
                return Ok((!reasons.is_empty()).then(|| reasons.join("\n")));
            };
            direct.explain(&library, selection, layout, writes).map(|explained| Some(explained.to_string()))
        })
    }
}

/// The dataset's current specification. Call under libhdf5's lock.
fn describe(dataset: &Id, stored: &Stored) -> Result<ArraySpec> {
    // SAFETY: the dataset is live; both identifiers are closed by `Id`.
    let (space, list) = unsafe {
        let space = Id::take(DESCRIBING, h5d::H5Dget_space(dataset.raw()))?;
        (space, Id::take(DESCRIBING, h5d::H5Dget_create_plist(dataset.raw()))?)
    };
    let Some(extents) = dataspace::extents(&space)? else {
        return Err(Error::unsupported(DESCRIBING, "the array has no shape (a null dataspace)"));
    };
    let fixed = extents.max.iter().zip(&extents.shape).all(|(max, extent)| *max == Some(*extent));
    // SAFETY: the list is live.
    let layout = unsafe { h5p::H5Pget_layout(list.raw()) };
    Ok(ArraySpec {
        dtype: stored.dtype.clone(),
        max_shape: (!fixed).then(|| extents.max.to_vec()),
        shape: extents.shape,
        chunk: if layout == H5D_layout_t::H5D_CHUNKED { Some(chunk(&list)?) } else { None },
        filters: dataset_filters::filters(&list)?.iter().map(dataset_filters::to_filter).collect::<Result<_>>()?,
        fill_value: fill_value(&list, stored)?,
        dims: None,
    })
}

pub(super) fn chunk(list: &Id) -> Result<Dims> {
    let mut extents = [0u64; MAX_RANK];
    // SAFETY: the list is live; there is room for as many extents as stated.
    let rank = unsafe { h5p::H5Pget_chunk(list.raw(), MAX_RANK as i32, extents.as_mut_ptr()) };
    Ok(extents[..count(DESCRIBING, rank)?.min(MAX_RANK)].into())
}

pub(super) fn fill_value(list: &Id, stored: &Stored) -> Result<Option<Vec<u8>>> {
    let mut status = H5D_fill_value_t::H5D_FILL_VALUE_UNDEFINED;
    let mut value = vec![0u8; stored.dtype.size() as usize];
    // SAFETY: the list is live; `value` has the size of the memory type.
    unsafe {
        done(DESCRIBING, h5p::H5Pfill_value_defined(list.raw(), &raw mut status))?;
        if status != H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED {
            return Ok(None);
        }
        if stored.dtype == Datatype::VariableString {
            let mut text: *mut c_char = std::ptr::null_mut();
            done(DESCRIBING, h5p::H5Pget_fill_value(list.raw(), stored.memory.raw(), (&raw mut text).cast()))?;
            // Empty text is what such elements are anyway.
            return Ok(Some(strings::taken(text)).filter(|text| !text.is_empty()));
        }
        done(DESCRIBING, h5p::H5Pget_fill_value(list.raw(), stored.memory.raw(), value.as_mut_ptr().cast()))?;
    }
    Ok(Some(value))
}
