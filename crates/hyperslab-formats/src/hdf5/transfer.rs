//! Transfers by libhdf5, directly to and from the caller's memory wherever libhdf5 can express its layout.

use super::dataspace::{self, is_all, raw_or_all};
use super::dataspace_cache::DataspaceCache;
use super::datatype::{self, Stored};
use super::library::{self, Id, done, hid_t};
use hdf5_metno_sys::h5d::{self, H5D_space_status_t};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s;
use hyperslab_core::storage::FileRules;
use hyperslab_core::{
    BufferRegion, Datatype, Dims, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Scatter, Selection,
    StructLayout,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffer for layouts that libhdf5 cannot express.
const PIECE_BYTES: u64 = 4 << 20;

/// The array concerned.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) dataset: &'a Id,
    pub(super) stored: &'a Stored,
    pub(super) dataspaces: &'a DataspaceCache,
    pub(super) scratch: &'a Mutex<Scratch>,
}

/// Dataspaces cached from call to call: creating them costs microseconds, as much as a small transfer.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Whether the shape can never change, so that the file's space may be kept.
    fixed: bool,
    file: Option<(Arc<Id>, Dims)>,
    /// The last packed memory.
    packed: Option<(Dims, Arc<Id>)>,
}

impl Scratch {
    /// For an array whose shape can never change, or may.
    pub(super) fn new(fixed: bool) -> Mutex<Self> {
        Mutex::new(Self { fixed, ..Self::default() })
    }
}

/// Where libhdf5 takes the bytes from, or puts them.
#[derive(Clone, Copy)]
pub(super) enum Buffer {
    From(*const u8),
    To(*mut u8),
}

/// How memory is described to libhdf5.
pub(super) enum Route {
    Direct(Memory),
    /// Not expressible: copied through packed pieces.
    Pieces,
}

/// Memory layout as libhdf5 type and dataspace.
pub(super) struct Memory {
    /// `None`: the array's own type.
    pub(super) element: Option<Id>,
    /// `None`: elements follow each other in the order of the selection.
    space: Option<Arc<Id>>,
    /// Bytes before the first element of the space.
    pub(super) skip: usize,
}

pub(super) const PACKED: Memory = Memory { element: None, space: None, skip: 0 };

/// Fails for arrays that cannot store every value of their type.
pub(super) fn refuse_cutting(stored: &Stored) -> Result<()> {
    if stored.terminated {
        return Err(Error::unsupported("write", "texts of this array end in NUL, so full-length text would be cut")
            .hint("write to an array with NUL-padded text"));
    }
    Ok(())
}

/// Writes the selected elements. Independent.
pub(super) fn write(request: Request<'_>, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
    let dtype = &request.stored.dtype;
    library::with(|| {
        let (space, shape) = request.file_space()?;
        selection.check_inside(&shape)?;
        memory.check(dtype, selection.len())?;
        if selection.is_empty() {
            return Ok(());
        }
        let whole = memory.layout.plan(dtype)?.covers_element();
        let mut route = route(request, selection.len(), memory.layout)?;
        if !whole && loses_other_fields(request, memory.layout) {
            route = Route::Pieces;
        } else if !whole {
            make_room(request, selection, &space, &shape)?;
        }
        match route {
            Route::Direct(lies) => {
                let buffer = Buffer::From(memory.data[lies.skip..].as_ptr());
                run(request, selection, space, &shape, lies, buffer)
            }
            Route::Pieces => {
                let mut gather = Gather::new(memory, dtype, selection.len())?;
                in_pieces(request, selection, |piece, space, packed| {
                    if !whole {
                        run(request, piece, space.clone(), &shape, PACKED, Buffer::To(packed.as_mut_ptr()))?;
                    }
                    gather.next_into(packed);
                    run(request, piece, space, &shape, PACKED, Buffer::From(packed.as_ptr()))
                })
            }
        }
    })
}

/// Reads the selected elements. Independent. Bytes of memory that no element or member covers are unchanged.
pub(super) fn read(request: Request<'_>, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
    let dtype = &request.stored.dtype;
    library::with(|| {
        let (space, shape) = request.file_space()?;
        selection.check_inside(&shape)?;
        memory.check(dtype, selection.len())?;
        if selection.is_empty() {
            return Ok(());
        }
        match read_route(request, selection.len(), memory.layout)? {
            Route::Direct(lies) => {
                let buffer = Buffer::To(memory.data[lies.skip..].as_mut_ptr());
                run(request, selection, space, &shape, lies, buffer)
            }
            Route::Pieces => {
                let mut scatter = Scatter::new(memory, dtype, selection.len())?;
                in_pieces(request, selection, |piece, space, packed| {
                    run(request, piece, space, &shape, PACKED, Buffer::To(packed.as_mut_ptr()))?;
                    scatter.next_from(packed);
                    Ok(())
                })
            }
        }
    })
}

/// Whether libhdf5 would lose the fields that are not written: it does not load a chunk when as many bytes come from
/// memory as the chunk has, which structures of the element's size make true whatever their members.
fn loses_other_fields(request: Request<'_>, layout: &MemoryLayout) -> bool {
    let same_size = layout.structure.as_ref().is_some_and(|s| s.size == request.stored.dtype.size());
    same_size && !request.scratch().fixed
}

/// Allocates an array by writing one element as it is. When libhdf5 allocates all of an array (in one piece, or in
/// chunks with alloc_time=late) in a write that selects every element it leaves the fill value out, and so the fields
/// that are not written.
fn make_room(request: Request<'_>, selection: &Selection, space: &Arc<Id>, shape: &Dims) -> Result<()> {
    if !is_all(selection, shape) || is_allocated(request.dataset)? {
        return Ok(());
    }
    let first = Selection::dense(&Dims::from_elem(0, shape.len()), &Dims::from_elem(1, shape.len()))?;
    let mut element = vec![0; request.stored.dtype.size() as usize];
    run(request, &first, space.clone(), shape, PACKED, Buffer::To(element.as_mut_ptr()))?;
    run(request, &first, space.clone(), shape, PACKED, Buffer::From(element.as_ptr()))
}

/// Whether a structure has bytes that belong to no transferred member.
fn has_gaps(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    let plan = layout.plan(dtype)?;
    Ok(plan.pieces.iter().map(|piece| piece.len).sum::<u64>() < plan.stride)
}

/// Whether the dataset is fully allocated, so that a read never returns fill values.
pub(super) fn is_allocated(dataset: &Id) -> Result<bool> {
    let mut status = H5D_space_status_t::H5D_SPACE_STATUS_NOT_ALLOCATED;
    // SAFETY: the dataset is live and the status is a variable of our own.
    done("read", unsafe { h5d::H5Dget_space_status(dataset.raw(), &raw mut status) })?;
    Ok(status == H5D_space_status_t::H5D_SPACE_STATUS_ALLOCATED)
}

/// The dataspace of an array and its present shape.
pub(super) fn file_space(dataset: &Id) -> Result<(Id, Dims)> {
    // SAFETY: the dataset is live.
    let space = Id::take("read shape", unsafe { h5d::H5Dget_space(dataset.raw()) })?;
    let extents = dataspace::extents(&space)?;
    let shape = extents.ok_or_else(|| Error::unsupported("read shape", "the array has no shape (a null dataspace)"))?;
    Ok((space, shape.shape))
}

impl Request<'_> {
    fn scratch(&self) -> MutexGuard<'_, Scratch> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The dataspace of the array, to select in, and its present shape.
    pub(super) fn file_space(&self) -> Result<(Arc<Id>, Dims)> {
        let mut scratch = self.scratch();
        if let Some(kept) = &scratch.file {
            return Ok(kept.clone());
        }
        let (space, shape) = file_space(self.dataset)?;
        let found = (Arc::new(space), shape);
        if scratch.fixed {
            scratch.file = Some(found.clone());
        }
        Ok(found)
    }

    /// All of a memory of this shape.
    fn packed_space(&self, shape: Dims) -> Result<Arc<Id>> {
        let mut scratch = self.scratch();
        if let Some((_, space)) = scratch.packed.as_ref().filter(|(kept, _)| *kept == shape) {
            return Ok(space.clone());
        }
        let space = Arc::new(dataspace::simple(&shape, None)?);
        scratch.packed = Some((shape, space.clone()));
        Ok(space)
    }
}

/// Calls `each` with pieces of the selection, a file space and a packed buffer for each.
fn in_pieces(
    request: Request<'_>,
    selection: &Selection,
    mut each: impl FnMut(&Selection, Arc<Id>, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let element = request.stored.dtype.size();
    let mut packed = Vec::new();
    selection.for_each_part(PIECE_BYTES / element, &mut |piece| {
        packed.resize((piece.len() * element) as usize, 0);
        each(piece, request.file_space()?.0, &mut packed)
    })
}

/// One call of libhdf5 with everything but the buffer.
pub(super) struct Call {
    element: Option<Id>,
    /// `None` is everything, of the shape of the array.
    memory: Option<Arc<Id>>,
    file: Option<Arc<Id>>,
}

/// Describes a transfer to libhdf5. The selection is not empty and lies inside `shape`.
pub(super) fn prepare(
    request: Request<'_>,
    selection: &Selection,
    space: Arc<Id>,
    shape: &[u64],
    memory: Memory,
) -> Result<Call> {
    let file = if is_all(selection, shape) { None } else { Some(request.dataspaces.select(space, shape, selection)?) };
    let packed = match (&memory.space, &file) {
        (Some(_), _) | (None, None) => None,
        // The same number of dimensions on both sides lets libhdf5 match chunks without visiting each element.
        (None, Some(_)) => Some(request.packed_space(match selection.as_slab() {
            Some(slab) => slab.counts(),
            None => Dims::from_slice(&[selection.len()]),
        })?),
    };
    Ok(Call { element: memory.element, memory: memory.space.or(packed), file })
}

impl Call {
    /// A transfer of no elements, for ranks that only take part. Nothing is selected in `memory`.
    pub(super) fn of_nothing(request: Request<'_>, memory: &Arc<Id>) -> Result<Self> {
        let (file, _) = request.file_space()?;
        // SAFETY: the dataspace is live.
        done("select", unsafe { h5s::H5Sselect_none(file.raw()) })?;
        Ok(Self { element: None, memory: Some(memory.clone()), file: Some(file) })
    }

    /// Makes the call with a transfer list. The buffer holds what the memory of [`prepare`] describes.
    pub(super) fn perform(&self, request: Request<'_>, list: hid_t, buffer: Buffer) -> Result<()> {
        let element = self.element.as_ref().unwrap_or(&request.stored.memory).raw();
        let (dataset, memory) = (request.dataset.raw(), raw_or_all(self.memory.as_ref()));
        let file = raw_or_all(self.file.as_ref());
        // SAFETY: identifiers are live. Selection and layout were checked against shape and buffer length, so libhdf5
        // touches only bytes of the buffer; when the memory space is "all", so is the file's, and both are the shape.
        unsafe {
            match buffer {
                Buffer::From(from) => done("write", h5d::H5Dwrite(dataset, element, memory, file, list, from.cast())),
                Buffer::To(to) => done("read", h5d::H5Dread(dataset, element, memory, file, list, to.cast())),
            }
        }
    }
}

/// One independent transfer. Requirements as for [`prepare`] and [`Call::perform`].
pub(super) fn run(
    request: Request<'_>,
    selection: &Selection,
    space: Arc<Id>,
    shape: &[u64],
    memory: Memory,
    buffer: Buffer,
) -> Result<()> {
    prepare(request, selection, space, shape, memory)?.perform(request, H5P_DEFAULT, buffer)
}

/// The words for memory that is read into.
pub(super) fn read_route(request: Request<'_>, elements: u64, layout: &MemoryLayout) -> Result<Route> {
    match route(request, elements, layout)? {
        // Where nothing was written, libhdf5 fills whole structures, gaps included.
        Route::Direct(lies) if lies.element.is_some() && has_gaps(layout, &request.stored.dtype)? => {
            if is_allocated(request.dataset)? { Ok(Route::Direct(lies)) } else { Ok(Route::Pieces) }
        }
        route => Ok(route),
    }
}

/// Finds the words for a layout that has passed its check. Copies nothing.
pub(super) fn route(request: Request<'_>, elements: u64, layout: &MemoryLayout) -> Result<Route> {
    let stored = request.stored;
    let select_within = |within: &BufferRegion| {
        let space = Arc::new(dataspace::simple(&within.shape, None)?);
        request.dataspaces.select(space, &within.shape, &within.selection)
    };
    let plan = layout.plan(&stored.dtype)?;
    let within = layout.within.as_ref();
    if within.is_some_and(|within| within.shape.len() > FileRules::MOST_CHUNKED_DIMENSIONS) {
        return Ok(Route::Pieces); // libhdf5 may walk the memory's selection too
    }
    let Some(structure) = layout.structure.as_ref().filter(|_| !plan.is_identity()) else {
        return Ok(Route::Direct(Memory { space: within.map(select_within).transpose()?, ..PACKED }));
    };
    let (size, element) = (plan.stride, plan.element);
    match plan.pieces.as_slice() {
        // Whole elements at a fixed distance: an array with more lanes than are used. Named fields are left to the
        // library's conversion, which programs that write structures go through.
        [one]
            if structure.members.iter().all(|member| member.field.is_none())
                && one.len == element
                && size % element == 0
                && within.is_none_or(|w| w.shape.len() < FileRules::MOST_CHUNKED_DIMENSIONS) =>
        {
            let (lanes, lane) = (size / element, one.memory / element);
            let space = match within {
                Some(within) => dataspace::select_lane(&within.shape, &within.selection, lanes, lane)?,
                None => Arc::new(dataspace::comb(elements, lanes, lane)?),
            };
            Ok(Route::Direct(Memory { space: Some(space), skip: (one.memory % element) as usize, element: None }))
        }
        _ if matches!(stored.dtype, Datatype::Compound(_)) => {
            let element = Some(in_structure(stored, structure)?);
            Ok(Route::Direct(Memory { element, space: within.map(select_within).transpose()?, skip: 0 }))
        }
        _ => Ok(Route::Pieces),
    }
}

/// The compound type of the structure in memory: the array's fields at the structure's offsets.
fn in_structure(stored: &Stored, structure: &StructLayout) -> Result<Id> {
    let mut members = Vec::new();
    for member in &structure.members {
        match &member.field {
            Some(name) => members.push((name.as_str(), member.offset, datatype::member(&stored.memory, name)?)),
            None => {
                for field in stored.dtype.fields() {
                    let kind = datatype::member(&stored.memory, &field.name)?;
                    members.push((field.name.as_str(), member.offset + field.offset, kind));
                }
            }
        }
    }
    datatype::compound(structure.size, &members)
}
