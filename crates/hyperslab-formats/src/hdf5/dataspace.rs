//! Shapes and selections as libhdf5's dataspaces.

use super::library::{Id, done, hid_t};
use hdf5_metno_sys::h5s::{self, H5S_UNLIMITED, H5S_class_t, H5S_seloper_t};
use hyperslab_core::{Dims, Error, MAX_RANK, Result, Selection, Slab};
use smallvec::SmallVec;
use std::sync::Arc;

const DOING: &str = "select";
/// Slabs joined one by one; more are joined as a tree, since each join costs the size of what is joined.
const LEAF: usize = 32;

/// Extents of an array in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) shape: Dims,
    /// `None` inside means without limit.
    pub(super) max: SmallVec<[Option<u64>; 4]>,
}

/// A dataspace of `shape`; a scalar when it has no dimensions. Call under the lock, as everything here.
pub(super) fn simple(shape: &[u64], max: Option<&[Option<u64>]>) -> Result<Id> {
    if shape.is_empty() {
        // SAFETY: makes a new dataspace.
        return Id::take(DOING, unsafe { h5s::H5Screate(H5S_class_t::H5S_SCALAR) });
    }
    let max: Option<Dims> = max.map(|max| max.iter().map(|m| m.unwrap_or(H5S_UNLIMITED)).collect());
    let max = max.as_ref().map_or(std::ptr::null(), |max| max.as_ptr());
    // SAFETY: both lists have as many extents as stated (`ArraySpec::check`), or the second is null.
    Id::take(DOING, unsafe { h5s::H5Screate_simple(shape.len() as i32, shape.as_ptr(), max) })
}

/// The extents of a dataspace; `None` when it holds no elements by construction (H5S_NULL).
pub(super) fn extents(space: &Id) -> Result<Option<Extents>> {
    let mut shape = [0u64; MAX_RANK];
    let mut max = [0u64; MAX_RANK];
    // SAFETY: the dataspace is live; libhdf5 has at most 32 dimensions, the room given.
    let rank = unsafe {
        match h5s::H5Sget_simple_extent_type(space.raw()) {
            H5S_class_t::H5S_NULL => return Ok(None),
            H5S_class_t::H5S_SCALAR | H5S_class_t::H5S_SIMPLE => {}
            _ => return Err(Error::unsupported("read shape", "the dataspace is of an unknown kind")),
        }
        h5s::H5Sget_simple_extent_dims(space.raw(), shape.as_mut_ptr(), max.as_mut_ptr())
    };
    done("read shape", rank)?;
    let max = max[..rank as usize].iter().map(|&m| Some(m).filter(|&m| m != H5S_UNLIMITED)).collect();
    Ok(Some(Extents { shape: shape[..rank as usize].into(), max }))
}

/// Whether `selection` is every element of `shape`. The selection must lie inside.
pub(super) fn is_all(selection: &Selection, shape: &[u64]) -> bool {
    selection.as_slab().is_some_and(|slab| slab.counts().as_slice() == shape)
}

/// Selects in `space`, whose extents are `shape`. The selection must lie inside.
/// Returns the space to use, which for unions is another one.
pub(super) fn select(space: Arc<Id>, shape: &[u64], selection: &Selection) -> Result<Arc<Id>> {
    match selection.slabs() {
        // SAFETY: the dataspace is live.
        [] => done(DOING, unsafe { h5s::H5Sselect_none(space.raw()) }).map(|()| space),
        _ if shape.is_empty() => Ok(space),
        [slab] => add(&space, H5S_seloper_t::H5S_SELECT_SET, slab, None).map(|()| space),
        slabs => union(shape, slabs, None).map(Arc::new),
    }
}

/// A dataspace of `shape` followed by one dimension of `lanes`, with the selection taken in lane `lane` only.
pub(super) fn select_lane(shape: &[u64], selection: &Selection, lanes: u64, lane: u64) -> Result<Arc<Id>> {
    let mut extended = Dims::from_slice(shape);
    extended.push(lanes);
    match selection.slabs() {
        [] => select(Arc::new(simple(&extended, None)?), &extended, selection),
        slabs => union(&extended, slabs, Some(lane)).map(Arc::new),
    }
}

/// The union of disjoint slabs sorted by first element. Joining halves keeps the cost near n log n.
fn union(shape: &[u64], slabs: &[Slab], lane: Option<u64>) -> Result<Id> {
    if slabs.len() > LEAF {
        let (low, high) = slabs.split_at(slabs.len() / 2);
        let (low, high) = (union(shape, low, lane)?, union(shape, high, lane)?);
        // SAFETY: both are live dataspaces of the same extents with hyperslab selections.
        let status = unsafe { h5s::H5Smodify_select(low.raw(), H5S_seloper_t::H5S_SELECT_OR, high.raw()) };
        return done(DOING, status).map(|()| low);
    }
    let space = simple(shape, None)?;
    for (i, slab) in slabs.iter().enumerate() {
        let how = if i == 0 { H5S_seloper_t::H5S_SELECT_SET } else { H5S_seloper_t::H5S_SELECT_OR };
        add(&space, how, slab, lane)?;
    }
    Ok(space)
}

fn add(space: &Id, how: H5S_seloper_t, slab: &Slab, lane: Option<u64>) -> Result<()> {
    let ranges = slab.ranges();
    let each = |f: fn(&hyperslab_core::StridedRange) -> u64, last: u64| {
        ranges.iter().map(f).chain(lane.map(|_| last)).collect::<Dims>()
    };
    let start = each(hyperslab_core::StridedRange::start, lane.unwrap_or(0));
    let stride = each(hyperslab_core::StridedRange::stride, 1);
    let count = each(hyperslab_core::StridedRange::count, 1);
    let block = each(hyperslab_core::StridedRange::block, 1);
    // SAFETY: each list has one entry per dimension of the live dataspace.
    let status = unsafe {
        h5s::H5Sselect_hyperslab(space.raw(), how, start.as_ptr(), stride.as_ptr(), count.as_ptr(), block.as_ptr())
    };
    done(DOING, status)
}

/// Every `step`-th element of a one-dimensional space, `n` of them, from `first`.
pub(super) fn comb(n: u64, step: u64, first: u64) -> Result<Id> {
    let extent = n.checked_mul(step).ok_or_else(|| Error::invalid(DOING, "the memory exceeds 2^64 elements"))?;
    let space = simple(&[extent], None)?;
    let (start, stride, count, block) = ([first], [step], [n], [1]);
    // SAFETY: the space is live and has one dimension.
    let status = unsafe {
        h5s::H5Sselect_hyperslab(
            space.raw(),
            H5S_seloper_t::H5S_SELECT_SET,
            start.as_ptr(),
            stride.as_ptr(),
            count.as_ptr(),
            block.as_ptr(),
        )
    };
    done(DOING, status).map(|()| space)
}

/// The identifier of a space, or "everything".
pub(super) fn raw_or_all(space: Option<&Arc<Id>>) -> hid_t {
    space.map_or(h5s::H5S_ALL, |space| space.raw())
}
