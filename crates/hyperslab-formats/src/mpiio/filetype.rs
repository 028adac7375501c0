//! Which bytes of a file a call moves, as a datatype of MPI.

use super::errors::call;
use hyperslab_core::{Result, Run, Selection};
use mpi_sys as ffi;
use smallvec::SmallVec;
use std::ffi::c_int;

/// One regular hyperslab as bytes: a run, repeated at regular steps, that row repeated at others, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Regular {
    /// The first byte.
    pub offset: u64,
    /// Bytes of each run.
    pub len: u64,
    /// How often, and bytes from one to the next; innermost first.
    pub levels: SmallVec<[(u64, u64); 4]>,
}

impl Regular {
    /// The selection as bytes of an array of `shape`, if it is one slab. It must lie inside.
    pub fn of(selection: &Selection, shape: &[u64], element: u64) -> Option<Self> {
        let slab = selection.as_slab()?;
        let mut out = Self { offset: 0, len: element, levels: SmallVec::new() };
        let mut pitch = element;
        for (span, &extent) in slab.ranges().iter().zip(shape).rev() {
            out.offset += span.start() * pitch;
            for (count, step) in [(span.block(), pitch), (span.count(), span.stride() * pitch)] {
                match out.levels.last_mut() {
                    _ if count == 1 => {}
                    None if step == out.len => out.len *= count,
                    Some((inner, inner_step)) if step == *inner * *inner_step => *inner *= count,
                    _ => out.levels.push((count, step)),
                }
            }
            pitch *= extent;
        }
        let fits = |n: u64| n <= c_int::MAX as u64;
        (fits(out.len) && out.levels.iter().all(|(count, _)| fits(*count))).then_some(out)
    }
}

/// A datatype of ours, freed when dropped. MPI must run while it lives.
#[derive(Debug)]
pub(super) struct Filetype(ffi::MPI_Datatype);

impl Filetype {
    /// Makes a type with `create`, which writes it to the place it is given.
    fn made(create: impl FnOnce(*mut ffi::MPI_Datatype) -> c_int) -> Result<Self> {
        // SAFETY: reading a constant of the library.
        let mut handle = unsafe { ffi::RSMPI_DATATYPE_NULL };
        call("describe selection", || create(&raw mut handle))?;
        Ok(Self(handle))
    }

    fn committed(mut self) -> Result<Self> {
        // SAFETY: the type is live.
        call("describe selection", || unsafe { ffi::MPI_Type_commit(&raw mut self.0) })?;
        Ok(self)
    }

    /// A slab; offsets count from its first byte.
    pub fn regular(slab: &Regular) -> Result<Self> {
        // SAFETY: a predefined type; lengths and counts fit, as `Regular::of` saw to.
        let mut made =
            Self::made(|new| unsafe { ffi::MPI_Type_contiguous(slab.len as c_int, ffi::RSMPI_UINT8_T, new) })?;
        for &(count, step) in &slab.levels {
            let inner = made.0;
            // SAFETY: the inner type is live.
            made = Self::made(|new| unsafe {
                ffi::MPI_Type_create_hvector(count as c_int, 1, step as ffi::MPI_Aint, inner, new)
            })?;
        }
        made.committed()
    }

    /// Rising runs of at most 2^31 bytes together; offsets count from the first.
    pub fn runs(runs: &[Run]) -> Result<Self> {
        let first = runs.first().map_or(0, |run| run.offset);
        let lengths: Vec<c_int> = runs.iter().map(|run| run.len as c_int).collect();
        let places: Vec<ffi::MPI_Aint> = runs.iter().map(|run| (run.offset - first) as ffi::MPI_Aint).collect();
        // SAFETY: both arrays have as many entries as are said, and live for the call.
        let made = Self::made(|new| unsafe {
            ffi::MPI_Type_create_hindexed(
                runs.len() as c_int,
                lengths.as_ptr(),
                places.as_ptr(),
                ffi::RSMPI_UINT8_T,
                new,
            )
        });
        made?.committed()
    }

    pub fn handle(&self) -> ffi::MPI_Datatype {
        self.0
    }
}

impl Drop for Filetype {
    fn drop(&mut self) {
        // SAFETY: the type is live and ours; MPI keeps what a view still uses. There is nobody to tell of an error.
        unsafe { ffi::MPI_Type_free(&raw mut self.0) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The runs that a regular description stands for.
    fn runs(slab: &Regular) -> Vec<Run> {
        let mut starts = vec![slab.offset];
        for &(count, step) in slab.levels.iter().rev() {
            starts = starts.iter().flat_map(|at| (0..count).map(move |i| at + i * step)).collect();
        }
        starts.into_iter().map(|offset| Run { offset, len: slab.len }).collect()
    }

    #[test]
    fn slabs_are_described_byte_for_byte() {
        for (start, stride, count, block, shape) in [
            ([0, 0], [1, 1], [4, 5], [1, 1], [4, 5]),
            ([1, 2], [1, 1], [2, 3], [1, 1], [4, 6]),
            ([0, 1], [2, 3], [2, 2], [1, 2], [5, 9]),
            ([1, 0], [2, 6], [2, 1], [1, 6], [6, 6]),
            ([0, 0], [3, 3], [2, 2], [2, 2], [6, 6]),
        ] {
            let selection = Selection::strided(&start, &stride, &count, &block).unwrap();
            let bytes = |runs: Vec<Run>| runs.iter().flat_map(|run| run.offset..run.end()).collect::<Vec<_>>();
            let expected = bytes(selection.runs(&shape, 4).unwrap().collect());
            assert_eq!(bytes(runs(&Regular::of(&selection, &shape, 4).unwrap())), expected, "{selection:?}");
        }
        let whole = Regular::of(&Selection::all(&[3, 4, 5]).unwrap(), &[3, 4, 5], 8).unwrap();
        assert_eq!((whole.len, whole.levels.len()), (480, 0));
        assert_eq!(Regular::of(&Selection::all(&[1 << 32]).unwrap(), &[1 << 32], 1), None, "too long for MPI's counts");
    }
}
