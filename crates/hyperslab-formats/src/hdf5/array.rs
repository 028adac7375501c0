//! An open HDF5 dataset.

use super::collective::{Collective, Direction};
use super::container::{Slot, closed, refuse_compact, refuse_writing};
use super::data_plane::{self, Access, ByLibrary, Taken};
use super::dataspace;
use super::datatype::{self, Stored};
use super::diagnostics::Diagnostics;
use super::guarded::{Guarded, Way};
use super::library::{self, Id, count, done, truth};
use super::ranks::Ranks;
use super::stated;
use super::storage::{MOST_CHUNKED_DIMENSIONS, Placement};
use super::together;
use super::transfer::{self, Request, Scratch};
use super::unions::Unions;
use hdf5_metno_sys::h5::HADDR_UNDEF;
use hdf5_metno_sys::h5d::{self, H5D_alloc_time_t, H5D_fill_value_t, H5D_layout_t};
use hdf5_metno_sys::{h5p, h5t};
use hyperslab_core::{
    Array, ArraySpec, Datatype, Dims, Error, MAX_RANK, MemoryLayout, MemoryView, MemoryViewMut, Result, Selection,
    TransferMode, dims,
};
use hyperslab_plane::Touched;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const RESIZING: &str = "resize";
const DESCRIBING: &str = "describe array";

/// One rank's handle of a dataset.
#[derive(Debug)]
pub(super) struct Hdf5Array {
    name: String,
    /// Shared with the container, which empties it when closed.
    slot: Arc<Slot>,
    stored: Arc<Stored>,
    scratch: Mutex<Scratch>,
    limits: Limits,
    home: Arc<Home>,
}

/// What the arrays of an open file share.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) unions: Unions,
    pub(super) ranks: Ranks,
    /// Where ranks are processes.
    pub(super) collective: Option<Collective>,
    pub(super) writable: bool,
    /// Whether the data plane was asked for, alike on every rank.
    pub(super) plane: bool,
    /// With the data plane.
    pub(super) access: Option<Access>,
    pub(super) diagnostics: Diagnostics,
}

/// What processes cannot do with an array that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limits {
    None,
    /// Filtered: chunks change their size and place, so all processes must write together.
    WriteTogether,
    /// Structures that libhdf5 must convert: it would read what it writes over, by collective calls that ranks without
    /// elements do not make.
    WriteAlone,
    /// Nobody may write.
    NeverWrite(Because),
}

/// Why processes cannot write an array at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Because {
    Compact,
    /// With filters, which libhdf5 does not combine with conversions in parallel.
    Converted,
    /// Chunks without filters are missing. Of those libhdf5 (2.2) makes in every process only the ones that this process
    /// writes, in collective writes too, so that each has another idea of the file.
    Sparse,
}

impl Hdf5Array {
    /// Takes over an open dataset. Refuses element types and shapes this project does not know. `placement` is known
    /// of a dataset made here.
    pub(super) fn new(name: &str, dataset: Id, home: Arc<Home>, placement: Option<&Placement>) -> Result<Self> {
        let (stored, scratch, limits, way) = library::with(|| {
            // SAFETY: the dataset is live; what is returned is closed by `Id`.
            let element = Id::take("open array", unsafe { h5d::H5Dget_type(dataset.raw()) })?;
            let stored = datatype::read(&element)?;
            let fixed = match placement {
                Some(placement) => !matches!(placement, Placement::Chunked(_)),
                None => is_fixed(&dataset)?,
            };
            let limits = if home.ranks.are_processes() && home.ranks.count() > 1 {
                limits(&dataset, &element, &stored, home.writable)?
            } else {
                Limits::None
            };
            let way = match &home.access {
                None => match data_plane::found(&dataset)? {
                    Some(plane) => Way::Beside(plane),
                    None => Way::Library(Some(ByLibrary::new(&dataset)?)),
                },
                Some(access) => {
                    let (_, shape) = transfer::file_space(&dataset)?;
                    match data_plane::take(name, &dataset, &stored, &shape, access)? {
                        Taken::Over(plane) => Way::Plane(plane),
                        Taken::Left(reason) => {
                            home.diagnostics.note(&reason);
                            Way::Library(Some(ByLibrary::new(&dataset)?))
                        }
                    }
                }
            };
            Ok::<_, Error>((stored, Scratch::new(fixed), limits, way))
        })?;
        let stored = Arc::new(stored);
        let slot = Arc::new(Mutex::new(Some(Guarded::dataset(dataset, &home.ranks, way, stored.clone()))));
        Ok(Self { name: name.into(), slot, stored, scratch, limits, home })
    }

    /// What the container empties on close.
    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    fn lock(&self) -> MutexGuard<'_, Option<Guarded>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, operation: &'static str, body: impl FnOnce(&Guarded) -> Result<T>) -> Result<T> {
        match self.lock().as_ref() {
            Some(dataset) => body(dataset),
            None => Err(closed(operation, "array")),
        }
        .map_err(|error| self.mark(error))
    }

    fn request<'a>(&'a self, dataset: &'a Guarded) -> Request<'a> {
        let Self { stored, home, scratch, .. } = self;
        Request { dataset: dataset.id(), stored, unions: &home.unions, scratch }
    }

    /// What a transfer uses that all processes make together; `None` if each rank acts for itself.
    fn together(&self, transfer: TransferMode) -> Option<&Collective> {
        self.home.collective.as_ref().filter(|_| transfer == TransferMode::Collective)
    }

    /// Like [`Self::together`] for writes, alike on every rank.
    fn together_writing(&self, transfer: TransferMode) -> Option<&Collective> {
        let collective = self.together(transfer)?;
        if self.limits == Limits::WriteAlone {
            collective.note_conversion(Direction::Write);
            return None;
        }
        Some(collective)
    }

    /// Refuses writes that would harm the file, alike on every rank.
    fn refuse_harm(&self, transfer: TransferMode) -> Result<()> {
        match self.limits {
            Limits::WriteTogether if transfer == TransferMode::Independent => Err(Error::unsupported(
                "write",
                "processes cannot write an array with filters independently of each other",
            )
            .hint("use collective transfers, or an array without filters")),
            Limits::NeverWrite(Because::Compact) => Err(refuse_compact("write")),
            Limits::NeverWrite(Because::Converted) => Err(Error::unsupported(
                "write",
                "processes cannot write an array with filters whose elements are not stored as in memory",
            )
            .hint("write it with one rank, or create an array of this machine's own types")),
            Limits::NeverWrite(Because::Sparse) => Err(Error::unsupported(
                "write",
                "processes cannot write an array some of whose chunks were never written: libhdf5 would damage the file",
            )
            .hint("write every chunk with one rank first, or create the array with these ranks or alloc_time=early")),
            _ => Ok(()),
        }
    }

    /// Writes for this rank alone: by the plane, or by libhdf5 where the plane refuses.
    fn write_alone(&self, dataset: &Guarded, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        if let Some((plane, library)) = dataset.plane() {
            match plane.write(&library, selection, memory)? {
                None => return Ok(()),
                Some(refusal) => self.home.diagnostics.note(refusal),
            }
        }
        let touched = Touched::Elements(selection);
        dataset.beside_plane(touched, || transfer::write(self.request(dataset), selection, memory))
    }

    /// As [`Self::write_alone`].
    fn read_alone(&self, dataset: &Guarded, selection: &Selection, mut memory: MemoryViewMut<'_>) -> Result<()> {
        if let Some((plane, library)) = dataset.plane() {
            match plane.read(&library, selection, &mut memory)? {
                None => return Ok(()),
                Some(refusal) => self.home.diagnostics.note(refusal),
            }
        }
        dataset.beside_plane(Touched::Nothing, || transfer::read(self.request(dataset), selection, memory))
    }

    fn mark(&self, error: Error) -> Error {
        error.backend(super::NAME).target(&self.name)
    }

    /// Refuses shapes the dataset cannot take, alike on every rank. Returns whether there is anything to change.
    fn check_resize(&self, dataset: &Id, shape: &[u64]) -> Result<bool> {
        refuse_writing(RESIZING, self.home.writable)?;
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
            let several = self.home.ranks.are_processes() && self.home.ranks.count() > 1;
            if several && self.limits != Limits::WriteTogether && makes_chunks_late(&list)? {
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

/// What processes cannot do with a dataset. Call under the lock.
fn limits(dataset: &Id, element: &Id, stored: &Stored, writable: bool) -> Result<Limits> {
    const DOING: &str = "open array";
    // SAFETY: the dataset is live; the list is closed by `Id`.
    unsafe {
        let list = Id::take(DOING, h5d::H5Dget_create_plist(dataset.raw()))?;
        if h5p::H5Pget_layout(list.raw()) == H5D_layout_t::H5D_COMPACT {
            return Ok(Limits::NeverWrite(Because::Compact));
        }
        let filtered = count(DOING, h5p::H5Pget_nfilters(list.raw()))? > 0;
        if writable && !filtered && makes_chunks_late(&list)? && !transfer::is_allocated(dataset)? {
            return Ok(Limits::NeverWrite(Because::Sparse));
        }
        let structure = matches!(stored.dtype, Datatype::Compound(_));
        let converts = (structure || filtered) && !truth(DOING, h5t::H5Tequal(element.raw(), stored.memory.raw()))?;
        Ok(match (filtered, converts) {
            (true, true) => Limits::NeverWrite(Because::Converted),
            (true, false) => Limits::WriteTogether,
            (false, true) => Limits::WriteAlone,
            (false, false) => Limits::None,
        })
    }
}

/// Whether an array of this creation list gets chunks only when they are written. Call under the lock.
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

/// Whether the shape can never change. Refuses shapes this project does not know.
fn is_fixed(dataset: &Id) -> Result<bool> {
    // Only a contiguous array that has its place in the file has an offset. Asking for it is much cheaper than for the
    // creation list, which libhdf5 copies.
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

/// Refuses arrays whose selections libhdf5 cannot walk without harm.
fn refuse_too_many_dimensions(rank: usize, layout: H5D_layout_t) -> Result<()> {
    if layout == H5D_layout_t::H5D_CHUNKED && rank > MOST_CHUNKED_DIMENSIONS {
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
            refuse_writing("write", self.home.writable)?;
            self.refuse_harm(transfer)?;
            transfer::refuse_cutting(&self.stored)?;
            dataset.note_change();
            let written = match self.together_writing(transfer) {
                Some(collective) => {
                    // Chunks of other ranks may be made, or move, too.
                    let touched = match self.home.ranks.count() {
                        1 => Touched::Elements(selection),
                        _ => Touched::Everything,
                    };
                    let mine = dataset.beside_plane(touched, || {
                        together::write(self.request(dataset), collective, selection, memory)
                    });
                    if self.limits == Limits::WriteTogether || self.home.plane {
                        // A chunk of several ranks is written by one of them: only then can the others read theirs. And
                        // MPI-IO gathers elements at few ranks: Open MPI's ompio lets the others go on before those
                        // have written, and those may write back what they read between the elements.
                        self.home.ranks.barrier()?;
                    }
                    mine
                }
                None => self.write_alone(dataset, selection, memory),
            };
            written.inspect_err(|error| self.home.collective.iter().for_each(|collective| collective.note_error(error)))
        })
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.with("read", |dataset| match self.together(transfer) {
            Some(collective) => dataset.beside_plane(Touched::Nothing, || {
                together::read(self.request(dataset), collective, selection, memory)
            }),
            None => self.read_alone(dataset, selection, memory),
        })
    }

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.with("explain", |dataset| {
            let Some((plane, library)) = dataset.plane() else {
                let reasons = self.home.diagnostics.list();
                return Ok((!reasons.is_empty()).then(|| reasons.join("\n")));
            };
            plane.explain(&library, selection, layout, writes).map(|explained| Some(explained.to_string()))
        })
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let checked = self.with(RESIZING, |dataset| self.check_resize(dataset.id(), shape));
        let changes = self.home.ranks.agree(checked)?;
        let resize = |dataset: &Guarded| {
            if !changes {
                return Ok(());
            }
            dataset.note_change();
            dataset.resizing(|| {
                // SAFETY: the dataset is live and has as many dimensions as `shape` (checked above).
                library::with(|| done(RESIZING, unsafe { h5d::H5Dset_extent(dataset.id().raw(), shape.as_ptr()) }))?;
                Ok(shape.into())
            })
        };
        self.home.ranks.change(Ok(()), || self.with(RESIZING, resize)).map(|_| ())
    }

    fn close(&self) -> Result<()> {
        let Some(dataset) = self.lock().take() else { return Ok(()) };
        let mine = dataset.close("close array").map_err(|error| self.mark(error));
        self.home.ranks.agree(mine)
    }
}

/// What the dataset is now. Call under the lock.
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
        filters: stated::filters(&list)?.iter().map(stated::named).collect::<Result<_>>()?,
        fill_value: fill_value(&list, stored)?,
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
        done(DESCRIBING, h5p::H5Pget_fill_value(list.raw(), stored.memory.raw(), value.as_mut_ptr().cast()))?;
    }
    Ok(Some(value))
}
