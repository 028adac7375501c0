//! Decides which datasets may use the direct path, and reads their metadata.

use super::element_type::describe;
use super::metadata_backend::Handle;
use crate::host::Host;
use crate::host::api::Hid;
use hyperslab_core::{Dims, Filter, MAX_RANK};
use hyperslab_h5direct::{FilterSpec, Layout};
use std::ffi::{c_int, c_uint};

const COMPACT: c_int = 0;
const CONTIGUOUS: c_int = 1;
const CHUNKED: c_int = 2;
const ALLOCATED_LATE: c_int = 2;
const USER_DEFINED: c_int = 2;
/// `H5D_ALLOC_TIME_INCR`.
const ALLOCATED_BY_NEED: c_int = 3;
const FILLED_AT_ALLOCATION: c_int = 0;
const FILLED_NEVER: c_int = 1;
const FILLED_IF_SET: c_int = 2;
const OPTIONAL: c_uint = 1;
const GET_CHUNK_INDEX: c_int = 1;
/// `H5D_CHUNK_IDX_EARRAY`: one unlimited dimension.
const EXTENSIBLE_ARRAY: c_int = 4;
const UNLIMITED: u64 = u64::MAX;
/// Maximum number of filter parameters.
const MOST_PARAMETERS: usize = 256;

/// Why a dataset cannot use the direct path.
#[derive(Debug)]
pub(crate) struct Ineligible {
    pub(crate) why: String,
    /// Whether its elements are in other datasets or files.
    pub(crate) is_indirect: bool,
}

impl Ineligible {
    fn because(why: impl Into<String>) -> Option<Self> {
        Some(Self { why: why.into(), is_indirect: false })
    }
}

/// Why a dataset with this creation list and type cannot use the direct path; `None` if it can.
///
/// # Safety
/// Inside a call of the library; list and type are open.
pub(crate) unsafe fn ineligible(host: &'static Host, list: Hid, kind: Hid) -> Option<Ineligible> {
    // SAFETY: the list is open, places to write to are variables.
    unsafe {
        let is_indirect = |why: &str| Some(Ineligible { why: why.into(), is_indirect: true });
        match host.H5Pget_layout(list) {
            CONTIGUOUS if host.H5Pget_external_count(list) != 0 => {
                return is_indirect("its elements are in external files");
            }
            CONTIGUOUS => {}
            CHUNKED => {
                let (mut options, mut time) = (1, ALLOCATED_LATE);
                if host.H5Pget_chunk_opts(list, &raw mut options) < 0 || options != 0 {
                    return Ineligible::because("chunks at its edge are stored without filters");
                }
                let filters = host.H5Pget_nfilters(list);
                if host.H5Pget_alloc_time(list, &raw mut time) < 0 || (time == ALLOCATED_LATE && filters != 0) {
                    return Ineligible::because("all its chunks are filtered and stored at the first write");
                }
            }
            COMPACT => return Ineligible::because("compact datasets are part of the metadata"),
            _ => return is_indirect("it is a virtual dataset"),
        }
    }
    describe(host, kind, 0).err().and_then(Ineligible::because)
}

/// What a creation list says about elements.
pub(crate) struct Stored {
    pub(crate) layout: Layout,
    pub(crate) filters: Vec<FilterSpec>,
    pub(crate) fill: Option<Vec<u8>>,
    /// Whether giving it a place writes fill values all over it.
    pub(crate) allocation_fills: bool,
    /// Whether growth allocates no chunks.
    pub(crate) grows_unallocated: bool,
}

/// What a creation list says; `None` if it cannot be asked.
///
/// # Safety
/// Inside a call of the library; list and type are open, `element` is the size of the type.
pub(crate) unsafe fn stored(host: &Host, list: Hid, kind: Hid, rank: usize, element: usize) -> Option<Stored> {
    // SAFETY: the list is open, places to write to are variables or have the room that is stated.
    unsafe {
        let layout = match host.H5Pget_layout(list) {
            CHUNKED => {
                let mut chunk = [0u64; MAX_RANK];
                if host.H5Pget_chunk(list, rank as c_int, chunk.as_mut_ptr()) != rank as c_int {
                    return None;
                }
                Layout::Chunked(chunk[..rank].into())
            }
            _ => Layout::Contiguous,
        };
        let (mut defined, mut time) = (0, 0);
        if host.H5Pfill_value_defined(list, &raw mut defined) < 0 || host.H5Pget_fill_time(list, &raw mut time) < 0 {
            return None;
        }
        let mut fill = None;
        // Never filled: anything may be read.
        if defined == USER_DEFINED && time != FILLED_NEVER {
            let mut value = vec![0u8; element];
            if host.H5Pget_fill_value(list, kind, value.as_mut_ptr().cast()) < 0 {
                return None;
            }
            fill = Some(value);
        }
        let allocation_fills = match time {
            FILLED_AT_ALLOCATION => true,
            FILLED_IF_SET => defined == USER_DEFINED,
            _ => false,
        };
        let mut allocated = 0;
        let grows_unallocated = host.H5Pget_alloc_time(list, &raw mut allocated) >= 0 && allocated == ALLOCATED_BY_NEED;
        Some(Stored { layout, filters: filters(host, list)?, fill, allocation_fills, grows_unallocated })
    }
}

unsafe fn filters(host: &Host, list: Hid) -> Option<Vec<FilterSpec>> {
    // SAFETY: the list is open.
    let number = unsafe { host.H5Pget_nfilters(list) };
    let mut filters = Vec::new();
    for at in 0..u32::try_from(number).ok()? {
        let (mut flags, mut config, mut values, mut used) = (0, 0, [0u32; MOST_PARAMETERS], MOST_PARAMETERS);
        // SAFETY: the index is in range, `values` has the room that `used` states, no name is wanted.
        let id = unsafe {
            host.H5Pget_filter2(
                list,
                at,
                &raw mut flags,
                &raw mut used,
                values.as_mut_ptr(),
                0,
                std::ptr::null_mut(),
                &raw mut config,
            )
        };
        if id < 0 || used > MOST_PARAMETERS {
            return None;
        }
        filters.push(FilterSpec {
            id: id as u32,
            optional: flags & OPTIONAL != 0,
            parameters: values[..used].to_vec(),
        });
    }
    Some(filters)
}

/// The filters in the words of the rest of the project, as far as it has words for them.
pub(crate) fn named_filters(stated: &[FilterSpec]) -> Vec<Filter> {
    stated.iter().filter_map(FilterSpec::to_filter).collect()
}

/// The extents of a dataspace, and those it may grow to; `None` for one without dimensions.
///
/// # Safety
/// Inside a call of the library; the space is open.
pub(crate) unsafe fn shape_of(host: &Host, space: Hid) -> Option<(Dims, Vec<Option<u64>>)> {
    let (mut shape, mut most) = ([0u64; MAX_RANK], [0u64; MAX_RANK]);
    // SAFETY: there is room for as many dimensions as libhdf5 may have.
    let rank = unsafe { host.H5Sget_simple_extent_dims(space, shape.as_mut_ptr(), most.as_mut_ptr()) };
    let rank = usize::try_from(rank).ok().filter(|rank| *rank > 0)?;
    let most = most[..rank].iter().map(|&extent| (extent != UNLIMITED).then_some(extent)).collect();
    Some((shape[..rank].into(), most))
}

/// Whether libhdf5 takes chunks for others when it lists them: it numbers those of an extensible array with the growing
/// dimension first, and forgets that when it walks over them (seen in 2.2).
///
/// # Safety
/// Inside a call of the library; the dataset is open and chunked.
pub(crate) unsafe fn lists_chunks_wrongly(host: &Host, handle: Handle, most: &[Option<u64>]) -> bool {
    let mut index: c_int = EXTENSIBLE_ARRAY;
    let mut arguments: *mut c_int = &raw mut index;
    // SAFETY: the arguments are those of the operation.
    let asked = unsafe { handle.optional(host, GET_CHUNK_INDEX, &mut arguments) } >= 0;
    let grows = most.iter().position(Option::is_none);
    !asked || (index == EXTENSIBLE_ARRAY && grows.is_some_and(|dimension| dimension > 0))
}
