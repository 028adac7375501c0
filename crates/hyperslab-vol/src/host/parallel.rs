//! Functions that only a libhdf5 built with MPI has.

use super::api::{Herr, Hid, Ptr};
use std::ffi::c_int;
use std::ptr::null_mut;

const INDEPENDENT: c_int = 0;
const COLLECTIVE: c_int = 1;

type OfFile = unsafe extern "C" fn(Hid, Ptr, Ptr) -> Herr;
type OfTransfer = unsafe extern "C" fn(Hid, *mut c_int) -> Herr;
type SetTransfer = unsafe extern "C" fn(Hid, c_int) -> Herr;
type OfMetadata = unsafe extern "C" fn(Hid, *mut bool) -> Herr;

/// The functions, by which lists are asked about MPI-IO.
pub(crate) struct Parallel {
    file: OfFile,
    transfer: OfTransfer,
    set_transfer: SetTransfer,
    metadata: OfMetadata,
}

impl Parallel {
    /// `None` for a libhdf5 without MPI.
    pub(super) fn find(find: &dyn Fn(&str) -> Ptr) -> Option<Self> {
        let found = |name| Some(find(name)).filter(|found| !found.is_null());
        let (file, transfer) = (found("H5Pget_fapl_mpio")?, found("H5Pget_dxpl_mpio")?);
        let set_transfer = found("H5Pset_dxpl_mpio")?;
        let metadata = found("H5Pget_all_coll_metadata_ops")?;
        // SAFETY: the library's functions of these names have these types.
        unsafe {
            Some(Self {
                file: std::mem::transmute::<Ptr, OfFile>(file),
                transfer: std::mem::transmute::<Ptr, OfTransfer>(transfer),
                set_transfer: std::mem::transmute::<Ptr, SetTransfer>(set_transfer),
                metadata: std::mem::transmute::<Ptr, OfMetadata>(metadata),
            })
        }
    }

    /// Whether an access list asks for MPI-IO. Fails with an error on the library's stack if not.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open.
    pub(crate) unsafe fn opens(&self, list: Hid) -> bool {
        // SAFETY: no communicator is asked for.
        unsafe { (self.file)(list, null_mut(), null_mut()) >= 0 }
    }

    /// Whether all ranks make a transfer with this list together.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open.
    pub(crate) unsafe fn is_collective(&self, list: Hid) -> bool {
        let mut how = 0;
        // SAFETY: the place to write to is a variable.
        unsafe { (self.transfer)(list, &raw mut how) >= 0 && how == COLLECTIVE }
    }

    /// Makes transfers with this list independent.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open.
    pub(crate) unsafe fn make_independent(&self, list: Hid) -> bool {
        // SAFETY: the list is open.
        unsafe { (self.set_transfer)(list, INDEPENDENT) >= 0 }
    }

    /// Whether ranks read metadata of a file that is opened with this list only together.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open.
    pub(crate) unsafe fn reads_metadata_together(&self, list: Hid) -> bool {
        let mut together = true;
        // SAFETY: the place to write to is a variable.
        unsafe { (self.metadata)(list, &raw mut together) < 0 || together }
    }
}
