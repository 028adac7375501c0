//! Conversion between libhdf5 dataspaces and selections.

use crate::host::Host;
use crate::host::api::{H5S_ALL, H5S_BLOCK, H5S_PLIST, Hid};
use hyperslab_core::{Dims, Error, MAX_RANK, Result, Selection, Slab};
use std::ffi::c_int;
use std::ptr::null;

/// Irregular selections with more blocks, and more points, are not described by slabs.
pub(super) const MOST_PIECES: i64 = 1 << 16;
/// Why a selection is not described.
pub(super) const TOO_MANY: &str = "the selection has too many pieces";
const SELECTED_NONE: c_int = 0;
const SELECTED_POINTS: c_int = 1;
const SELECTED_SLABS: c_int = 2;
const SELECTED_ALL: c_int = 3;
const SET: c_int = 0;
const OR: c_int = 1;

/// Extents and selection of a dataspace. The error is the reason for a fallback: [`TOO_MANY`] for irregular selections
/// of more than `most` pieces.
///
/// # Safety
/// Inside a call of the library; `space` is open.
pub(crate) unsafe fn selection_of(host: &Host, space: Hid, most: i64) -> Result<(Dims, Selection), &'static str> {
    if matches!(space, H5S_ALL | H5S_BLOCK | H5S_PLIST) {
        return Err("the selection is in the transfer list");
    }
    let mut shape = [0u64; MAX_RANK];
    // SAFETY: libhdf5 has at most 32 dimensions, the room given.
    let rank = unsafe { host.H5Sget_simple_extent_dims(space, shape.as_mut_ptr(), std::ptr::null_mut()) };
    if rank < 0 {
        return Err("the space has no extents");
    }
    let shape = &shape[..rank as usize];
    // SAFETY: as above.
    if shape.is_empty() && unsafe { host.H5Sget_select_npoints(space) } != 1 {
        return Err("nothing is selected");
    }
    // SAFETY: as above.
    let selection = match unsafe { host.H5Sget_select_type(space) } {
        SELECTED_ALL => Selection::all(shape).map_err(|_| "the space is too large"),
        SELECTED_NONE => Ok(Selection::empty(shape.len())),
        // SAFETY: as above.
        SELECTED_SLABS => unsafe { slabs(host, space, shape, most) },
        // SAFETY: as above.
        SELECTED_POINTS => unsafe { points(host, space, shape, most) },
        _ => Err("the selection is of an unknown kind"),
    }?;
    Ok((shape.into(), selection))
}

unsafe fn slabs(host: &Host, space: Hid, shape: &[u64], most: i64) -> Result<Selection, &'static str> {
    let rank = shape.len();
    let odd = "the selection cannot be described";
    let (mut low, mut high) = ([0u64; MAX_RANK], [0u64; MAX_RANK]);
    // SAFETY: there is room for as many dimensions as libhdf5 may have.
    if unsafe { host.H5Sget_select_bounds(space, low.as_mut_ptr(), high.as_mut_ptr()) } < 0 {
        return Err(odd);
    }
    if high[..rank].iter().zip(shape).any(|(last, extent)| last >= extent) {
        return Err("the selection lies outside of its space");
    }
    // SAFETY: as above.
    if unsafe { host.H5Sis_regular_hyperslab(space) } <= 0 {
        // SAFETY: as above.
        return unsafe { blocks(host, space, rank, &low[..rank], most) };
    }
    let mut each = [[0u64; MAX_RANK]; 4];
    let [start, stride, count, block] = &mut each;
    // SAFETY: as above.
    let status = unsafe {
        host.H5Sget_regular_hyperslab(
            space,
            start.as_mut_ptr(),
            stride.as_mut_ptr(),
            count.as_mut_ptr(),
            block.as_mut_ptr(),
        )
    };
    if status < 0 {
        return Err(odd);
    }
    // The bounds know of an offset (`H5Soffset_simple`), the rest does not.
    let selection =
        Selection::strided(&low[..rank], &stride[..rank], &count[..rank], &block[..rank]).map_err(|_| odd)?;
    match selection.bounds() {
        Some((_, end)) if end.iter().zip(&high[..rank]).all(|(end, last)| *end == last + 1) => Ok(selection),
        _ => Err(odd),
    }
}

unsafe fn blocks(host: &Host, space: Hid, rank: usize, low: &[u64], most: i64) -> Result<Selection, &'static str> {
    // SAFETY: inside a call of the library, on an open space.
    let number = unsafe { host.H5Sget_select_hyper_nblocks(space) };
    if !(1..=most).contains(&number) {
        return Err(TOO_MANY);
    }
    let mut corners = vec![0u64; number as usize * 2 * rank];
    // SAFETY: there is room for two corners of every block.
    if unsafe { host.H5Sget_select_hyper_blocklist(space, 0, number as u64, corners.as_mut_ptr()) } < 0 {
        return Err("the selection cannot be described");
    }
    let mut slabs = Vec::with_capacity(number as usize);
    for block in corners.chunks_exact(2 * rank) {
        let (first, last) = block.split_at(rank);
        let extents: Dims = first.iter().zip(last).map(|(first, last)| last.saturating_sub(*first) + 1).collect();
        slabs.extend(Slab::dense(first, &extents).ok().flatten());
    }
    // SAFETY: as above.
    let points = unsafe { host.H5Sget_select_npoints(space) };
    union(rank, slabs, points, low)
}

/// A selection of points in row-major order; others are not supported.
unsafe fn points(host: &Host, space: Hid, shape: &[u64], most: i64) -> Result<Selection, &'static str> {
    let rank = shape.len();
    // SAFETY: inside a call of the library, on an open space.
    let number = unsafe { host.H5Sget_select_npoints(space) };
    if !(1..=most).contains(&number) {
        return Err(TOO_MANY);
    }
    let (mut places, mut low, mut high) = (vec![0u64; number as usize * rank], [0; MAX_RANK], [0; MAX_RANK]);
    // SAFETY: there is room for every point, and for as many dimensions as libhdf5 may have.
    let status =
        unsafe {
            host.H5Sget_select_bounds(space, low.as_mut_ptr(), high.as_mut_ptr())
                .min(host.H5Sget_select_elem_pointlist(space, 0, number as u64, places.as_mut_ptr()))
        };
    if status < 0 || rank == 0 {
        return Err("points are selected");
    }
    let sorted = places.chunks_exact(rank).zip(places.chunks_exact(rank).skip(1)).all(|(one, next)| one < next);
    if !sorted {
        return Err("points are selected, not in the order of the array");
    }
    let one = Dims::from_elem(1, rank);
    let slabs = places.chunks_exact(rank).filter_map(|place| Slab::dense(place, &one).ok().flatten()).collect();
    let selection = union(rank, slabs, number, &low[..rank])?;
    selection.check_inside(shape).map_err(|_| "the selection lies outside of its space")?;
    Ok(selection)
}

/// A union that must have `points` elements and begin at `low`, as libhdf5 says.
fn union(rank: usize, slabs: Vec<Slab>, points: i64, low: &[u64]) -> Result<Selection, &'static str> {
    let odd = "the selection cannot be described";
    let selection = Selection::union(rank, slabs).map_err(|_| odd)?;
    let begins = selection.bounds().is_some_and(|(first, _)| first.as_slice() == low);
    if begins && i64::try_from(selection.len()) == Ok(points) { Ok(selection) } else { Err(odd) }
}

/// An owned dataspace.
pub(crate) struct Dataspace {
    host: &'static Host,
    id: Hid,
}

impl Drop for Dataspace {
    fn drop(&mut self) {
        // SAFETY: it is open and ours; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Sclose(self.id) });
    }
}

impl Dataspace {
    /// With these extents. Inside a call of the library only, as everything here.
    pub(crate) fn simple(host: &'static Host, shape: &[u64]) -> Result<Self> {
        // SAFETY: there are as many extents as stated.
        let id = unsafe { host.H5Screate_simple(shape.len() as c_int, shape.as_ptr(), null()) };
        if id < 0 { Err(host.failed("select")) } else { Ok(Self { host, id }) }
    }

    pub(crate) fn id(&self) -> Hid {
        self.id
    }

    pub(crate) fn select(&self, how: c_int, start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Result<()> {
        let [start, stride, count, block] = [start, stride, count, block].map(<[u64]>::as_ptr);
        // SAFETY: callers give as many of each as the space has dimensions.
        let status = unsafe { self.host.H5Sselect_hyperslab(self.id, how, start, stride, count, block) };
        if status < 0 { Err(self.host.failed("select")) } else { Ok(()) }
    }

    /// The space of an array, with elements of it selected.
    pub(crate) fn selecting(host: &'static Host, shape: &[u64], selection: &Selection) -> Result<Self> {
        let space = Self::simple(host, shape)?;
        if selection.is_empty() {
            // SAFETY: the space is open.
            let status = unsafe { host.H5Sselect_none(space.id) };
            return if status < 0 { Err(host.failed("select")) } else { Ok(space) };
        }
        for (at, slab) in selection.slabs().iter().enumerate() {
            let each = |f: fn(&hyperslab_core::StridedRange) -> u64| slab.ranges().iter().map(f).collect::<Dims>();
            use hyperslab_core::StridedRange;
            let (start, stride) = (each(StridedRange::start), each(StridedRange::stride));
            let how = if at == 0 { SET } else { OR };
            space.select(how, &start, &stride, &each(StridedRange::count), &each(StridedRange::block))?;
        }
        Ok(space)
    }
}

/// Refuses what no error of the library explains.
pub(crate) fn refused(doing: &'static str, why: impl Into<String>) -> Error {
    Error::unsupported(doing, why)
}
