//! Mode `log`: writes that bypass the log are in the file, and reachable by its metadata, before their calls return.

use super::dataset::{Dataset, is_unlinked};
use super::file::FileState;
use super::metadata_backend::Handle;
use crate::driver;
use crate::host::api::{Herr, Hid};
use crate::object::{DATASET, Object};
use hyperslab_core::{Error, Result};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const FLUSH: c_int = 0;
const LOCAL: c_int = 0;
/// `H5I_ATTR`; object types in `H5VL_file_specific_args_t` are `H5I_type_t`.
pub(crate) const ATTRIBUTE: c_int = 7;

impl FileState {
    /// Whether write calls must return only when the write survives a kill of the process.
    pub(crate) fn survives_kill(&self) -> bool {
        self.settings.modes.log
            && self.writable
            && self.file.is_some()
            && !self.is_library_only()
            && self.parallel.is_none()
            && !self.is_inherited()
    }

    /// Call before returning from a write that bypassed the log; `through` is any open object of type `kind`. Flushes
    /// metadata to the kernel, and syncs to the device if the settings ask for that.
    pub(crate) fn acknowledge(&self, through: Handle, kind: c_int) -> Result<()> {
        if !self.survives_kill() {
            return Ok(());
        }
        self.save_through(through, kind)?;
        self.make_durable()
    }

    /// The same after a write by libhdf5 to a dataset without direct path.
    pub(crate) fn acknowledge_library(&self, through: Handle) -> Result<()> {
        if self.survives_kill() && is_unlinked(self.host, through) {
            // Unreachable until it is linked.
            self.has_unlinked_writes.store(true, Ordering::Relaxed);
            return Ok(());
        }
        self.acknowledge(through, DATASET)
    }

    /// The same after a write to a dataset with direct path. `in_place`: no metadata changed.
    pub(crate) fn acknowledge_write(&self, dataset: &Dataset, through: Handle, in_place: bool) -> Result<()> {
        if !self.survives_kill() {
            return Ok(());
        }
        if in_place && !self.metadata_changed.load(Ordering::Relaxed) {
            return self.make_durable();
        }
        if dataset.is_unlinked() {
            // Unreachable until it is linked.
            self.has_unlinked_writes.store(true, Ordering::Relaxed);
            return Ok(());
        }
        dataset.io.flush()?;
        self.save_through(through, DATASET)?;
        dataset.io.mark_metadata_flushed();
        self.make_durable()
    }

    /// Call before returning from the creation of a link: flushes writes to objects that were unlinked until now.
    pub(crate) fn acknowledge_link(&self, through: Handle, kind: c_int) -> Result<()> {
        if !self.survives_kill() || !self.has_unlinked_writes.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let datasets: Vec<Arc<Dataset>> = hyperslab_core::lock(&self.datasets).values().cloned().collect();
        let flushed = datasets.iter().filter(|dataset| dataset.is_open()).try_for_each(|d| d.io.flush());
        let saved = flushed.and_then(|()| self.acknowledge(through, kind));
        saved.inspect_err(|_| self.has_unlinked_writes.store(true, Ordering::Relaxed))
    }

    /// Syncs the file if writes must be durable.
    fn make_durable(&self) -> Result<()> {
        let durable = self.settings.durability.as_deref().is_some_and(|how| !matches!(how, "none" | "on-flush"));
        let Some(file) = self.file.as_ref().filter(|_| durable) else { return Ok(()) };
        // Where there is a journal it remembers that a sync has failed, of which the kernel tells once.
        let synced = self.rollback.upgrade().map_or_else(|| file.sync_data(), |rollback| rollback.sync());
        synced.map_err(|cause| Error::io("sync", cause).target(self.path.display()))
    }

    /// Has libhdf5 flush the file's metadata, through any open object of type `kind`.
    pub(crate) fn save_through(&self, through: Handle, kind: c_int) -> Result<()> {
        // All ranks would have to flush it now.
        if self.parallel.is_some() { Ok(()) } else { self.flush_through(through, kind) }
    }

    /// The same for files of several ranks too, where all of them must call it.
    pub(super) fn flush_through(&self, through: Handle, kind: c_int) -> Result<()> {
        #[repr(C)]
        struct Flush {
            operation: c_int,
            /// The union that follows is aligned for pointers.
            _until: c_int,
            kind: c_int,
            scope: c_int,
        }
        let mut arguments = Flush { operation: FLUSH, _until: 0, kind, scope: LOCAL };
        let (host, list): (_, Hid) = (self.host, self.host.default_transfer());
        // Cleared first: changes during the flush may not be part of it.
        self.metadata_changed.store(false, Ordering::Relaxed);
        // SAFETY: the object is open, and the arguments are those of the operation.
        let mut flush = || unsafe {
            let arguments = (&raw mut arguments).cast();
            host.H5VLfile_specific(through.under, through.connector, arguments, list, std::ptr::null_mut())
        };
        // In other modes only the program's own flushes commit.
        let flushed = if self.settings.modes.log { driver::flushing(host, flush) } else { Ok(flush()) };
        let saved = flushed.and_then(|status: Herr| match status {
            0.. => Ok(()),
            _ => Err(host.failed("flush")),
        });
        saved.inspect_err(|_| self.metadata_changed.store(true, Ordering::Relaxed))
    }
}

/// [`FileState::acknowledge`] for a call with status `status` that changed metadata; returns the final status.
pub(crate) fn acknowledged(object: &Object, kind: c_int, status: Herr) -> Herr {
    let Some(file) = object.file.as_ref().filter(|_| status >= 0) else { return status };
    report_failure(object, file.acknowledge(object.handle(), kind), status)
}

/// [`FileState::acknowledge_link`] for a call with status `status`; returns the final status.
pub(crate) fn acknowledged_link(object: &Object, kind: c_int, status: Herr) -> Herr {
    let Some(file) = object.file.as_ref().filter(|_| status >= 0) else { return status };
    report_failure(object, file.acknowledge_link(object.handle(), kind), status)
}

fn report_failure(object: &Object, result: Result<()>, status: Herr) -> Herr {
    match result {
        Ok(()) => status,
        Err(error) => {
            object.host.report(&error);
            -1
        }
    }
}
