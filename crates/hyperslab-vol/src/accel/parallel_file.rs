//! Files that the ranks of an MPI program open together, by libhdf5's MPI-IO driver.
//!
//! Each rank moves its own elements through a descriptor of its own, at addresses that libhdf5 knows in advance: it allocates
//! datasets without filters when they are created. Others see them when this rank has flushed or closed the file.
//!
//! **Invariant:** every collective call of the program is that call of libhdf5 on every rank, whatever became of the
//! elements ([`FileState::write_back_before_call`](super::file::FileState::write_back_before_call), `join`): no rank ever waits
//! for a call that another does not make. The connector calls no MPI.

use super::launched_job::LaunchedJob;
use super::transfer::Transfer;
use crate::host::Host;
use crate::host::api::{H5P_DEFAULT, Herr, Hid};
use crate::object::{DATASET, Object};
use crate::settings::Settings;
use hyperslab_core::Result;
use std::ffi::c_int;
use std::fs::File;
use std::path::Path;

/// Asks a dataset for its space.
const GET_SPACE: c_int = 2;

/// How the ranks share a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParallelFile {
    /// Whether ranks read metadata only together, so that none can look for chunks by itself.
    pub(crate) reads_metadata_together: bool,
}

impl ParallelFile {
    /// Whether an access list asks for MPI-IO.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open.
    pub(super) unsafe fn asked_for(host: &Host, list: Hid) -> Option<Self> {
        let parallel = host.parallel.as_ref().filter(|_| host.has_contexts())?;
        host.preserving_error_stack(|| {
            // SAFETY: the list is open.
            unsafe {
                let reads_metadata_together = || parallel.reads_metadata_together(list);
                parallel.opens(list).then(|| Self { reads_metadata_together: reads_metadata_together() })
            }
        })
    }

    /// Why such files are passed on, if they are.
    pub(super) fn refused(settings: &Settings, writable: bool) -> Option<&'static str> {
        let modes = settings.modes;
        match () {
            () if settings.mpi_strict => Some("mpi=strict passes files of MPI programs on"),
            () if writable && modes.log && LaunchedJob::find().is_none() => {
                Some("mode log needs to know the MPI job, and its launcher does not tell")
            }
            () if writable && modes.cache => Some("mode cache passes files on that an MPI program writes"),
            () if writable && modes.auto => Some("mode auto passes files on that an MPI program writes"),
            () => None,
        }
    }

    /// Opens a descriptor of this rank's own.
    pub(super) fn open(path: &Path, writable: bool) -> Result<File, String> {
        let told = |error| format!("this rank cannot open the file by its name: {error}");
        let file = File::options().read(true).write(writable).open(path).map_err(told)?;
        if writable {
            hyperslab_h5direct::refuse_incoherent(&file).map_err(|error| error.to_string())?;
        }
        Ok(file)
    }
}

/// Call after all ranks have made a dataset, or changed its shape: a recovery of their logs must find it in the file.
pub(crate) fn publish_dataset(object: &Object) {
    if object.file.as_ref().is_some_and(|file| file.settings.modes.log) {
        drain_ranks(object, DATASET);
    }
}

/// A collective write whose elements each rank writes by itself: the list for the latter. Calls with it need
/// [a new context](crate::host::api::Api::in_new_context).
pub(super) struct Alone {
    host: &'static Host,
    pub(super) list: Hid,
}

impl Drop for Alone {
    fn drop(&mut self) {
        // SAFETY: the list is ours; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Pclose(self.list) });
    }
}

impl Alone {
    /// Joins a collective write with no elements, so that no other rank waits for this one; those of earlier collective writes
    /// are in the file then. `None` for an independent write.
    ///
    /// With elements of no rank in collective writes, MPI-IO never reads and writes back what lies between them, where another
    /// rank may be writing.
    ///
    /// # Safety
    /// Inside a call of the library, with the arguments it gives for a write to the object, a dataset.
    pub(super) unsafe fn joining(object: &Object, one: &Transfer) -> Result<Option<Self>> {
        let host = object.host;
        let Some(parallel) = host.parallel.as_ref() else { return Ok(None) };
        // SAFETY: lists are open, and the copy is ours; nothing is selected, and so no memory is needed.
        unsafe {
            if one.dxpl_id == H5P_DEFAULT || !parallel.is_collective(one.dxpl_id) {
                return Ok(None);
            }
            join(object, one, |nothing| object.handle().write(host, nothing, std::ptr::null()))?;
            let alone = Self { host, list: host.H5Pcopy(one.dxpl_id) };
            if alone.list < 0 || !parallel.make_independent(alone.list) {
                return Err(host.failed("write"));
            }
            Ok(Some(alone))
        }
    }
}

/// Whether all ranks make a transfer with this list together.
///
/// # Safety
/// Inside a call of the library; the list is open.
pub(super) unsafe fn is_collective(host: &Host, list: Hid) -> bool {
    // SAFETY: the list is open.
    list != H5P_DEFAULT && host.parallel.as_ref().is_some_and(|parallel| unsafe { parallel.is_collective(list) })
}

/// Makes a collective transfer of the program with no elements of this rank's.
pub(super) fn join(object: &Object, one: &Transfer, call: impl FnOnce(&Transfer) -> Herr) -> Result<()> {
    let host = object.host;
    let nothing = object.handle().identifier(host, GET_SPACE).ok_or_else(|| host.failed("transfer together"))?;
    // SAFETY: the space is open and ours.
    let status = unsafe {
        let selected = host.H5Sselect_none(nothing);
        let joined = call(&Transfer { mem_space_id: nothing, file_space_id: nothing, ..*one });
        host.H5Sclose(nothing);
        selected.min(joined)
    };
    if status < 0 { Err(host.failed("transfer together")) } else { Ok(()) }
}

/// Call before all ranks make a call together that may free space of datasets, or reads them: waits until every rank has
/// written what it holds, which could otherwise hit what comes to lie there.
pub(crate) fn drain_ranks(object: &Object, kind: c_int) {
    let Some(file) = object.file.as_ref().filter(|file| file.moves_alone()) else { return };
    if let Err(error) = file.flush_through(object.handle(), kind) {
        file.defer_error(error);
    }
}
