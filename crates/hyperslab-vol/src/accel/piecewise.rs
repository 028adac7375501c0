//! Transfers of many small pieces: libhdf5 lists their byte runs, which the direct path joins.

use super::dataset::Dataset;
use super::dataspace::selection_of;
use super::transfer::Transfer;
use crate::host::Host;
use crate::host::api::{H5S_ALL, H5S_BLOCK, Hid};
use hyperslab_core::{Datatype, MAX_RANK, Result, Run};
use std::ffi::c_uint;

/// Runs that libhdf5 lists at a time.
const AT_A_TIME: usize = 1024;
/// `H5S_SEL_ITER_SHARE_WITH_DATASPACE`: the dataspace does not change meanwhile.
const SHARED: c_uint = 2;

/// A translated transfer of many pieces between a dataset and packed memory.
pub(crate) struct PiecewisePlan {
    host: &'static Host,
    /// libhdf5's iterator over the selection; open.
    iterator: Hid,
    pub(crate) elements: u64,
    /// Element type in memory, if it differs.
    pub(crate) dtype: Option<Datatype>,
    /// Byte range of the program's buffer.
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Drop for PiecewisePlan {
    fn drop(&mut self) {
        // SAFETY: it is open and ours; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Ssel_iter_close(self.iterator) });
    }
}

impl PiecewisePlan {
    /// Translates a transfer; `None` if it cannot be described by runs.
    ///
    /// # Safety
    /// Inside a call of the library; all identifiers are open, and the space for the file stays open with the plan.
    pub(crate) unsafe fn new(host: &'static Host, dataset: &Dataset, one: &Transfer, writes: bool) -> Option<Self> {
        let (kind, shape) = (&dataset.element_type, dataset.io.direct.shape());
        // SAFETY: the space is open.
        let elements = unsafe { elements_inside(host, one.file_space_id, &shape) }?;
        // SAFETY: the type is open.
        let (structure, dtype) = unsafe { kind.in_memory(host, one.mem_type_id, writes, elements) }.ok()?.structure();
        if structure.is_some() {
            return None;
        }
        let size = dtype.as_ref().map_or(kind.dtype.size(), Datatype::size);
        let offset = match one.mem_space_id {
            H5S_BLOCK => 0,
            H5S_ALL => return None,
            space => {
                // SAFETY: the space is open.
                let (shape, selection) = unsafe { selection_of(host, space, 1) }.ok()?;
                let run = selection.single_run(&shape, size).filter(|run| run.len == elements * size)?;
                usize::try_from(run.offset).ok()?
            }
        };
        let len = usize::try_from(elements.checked_mul(size)?).ok().filter(|len| *len <= isize::MAX as usize)?;
        // SAFETY: the space is open.
        let iterator = unsafe { host.H5Ssel_iter_create(one.file_space_id, kind.dtype.size() as usize, SHARED) };
        (iterator >= 0).then_some(Self { host, iterator, elements, dtype, offset, len })
    }

    /// Lists the next runs, about `most`: byte ranges of the dataset as one row-major array, in the order of the memory.
    /// None are left when there are none.
    pub(crate) fn list(&mut self, runs: &mut Vec<Run>, most: usize) -> Result<()> {
        runs.clear();
        let (mut offsets, mut lengths) = ([0u64; AT_A_TIME], [0usize; AT_A_TIME]);
        while runs.len() < most {
            let (mut number, mut elements) = (0, 0);
            // SAFETY: the iterator is open, and there is room for as many runs as stated.
            let status = unsafe {
                self.host.H5Ssel_iter_get_seq_list(
                    self.iterator,
                    AT_A_TIME,
                    isize::MAX as usize,
                    &raw mut number,
                    &raw mut elements,
                    offsets.as_mut_ptr(),
                    lengths.as_mut_ptr(),
                )
            };
            if status < 0 {
                return Err(self.host.failed("list what is selected"));
            }
            if number == 0 {
                break;
            }
            let new = offsets[..number].iter().zip(&lengths[..number]);
            runs.extend(new.map(|(&offset, &len)| Run { offset, len: len as u64 }));
        }
        Ok(())
    }
}

/// The number of selected elements, if the space has this shape and they lie in it.
unsafe fn elements_inside(host: &Host, space: Hid, shape: &[u64]) -> Option<u64> {
    let mut bounds = [[0u64; MAX_RANK]; 3];
    let [extents, low, high] = &mut bounds;
    // SAFETY: the space is open, and there is room for as many dimensions as libhdf5 may have.
    unsafe {
        let rank = host.H5Sget_simple_extent_dims(space, extents.as_mut_ptr(), std::ptr::null_mut());
        let same = usize::try_from(rank) == Ok(shape.len()) && extents[..shape.len()] == *shape;
        let inside = same
            && host.H5Sget_select_bounds(space, low.as_mut_ptr(), high.as_mut_ptr()) >= 0
            && high.iter().zip(shape).all(|(last, extent)| last < extent);
        u64::try_from(host.H5Sget_select_npoints(space)).ok().filter(|_| inside)
    }
}
