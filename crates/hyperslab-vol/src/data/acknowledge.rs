//! What mode `log` promises of writes that no log has: they are in the file, and found there, before their calls return.

use super::control::Handle;
use super::dataset::{Dataset, is_unlinked};
use super::file::FileState;
use crate::driver;
use crate::host::api::{Herr, Hid};
use crate::object::{DATASET, Object};
use hyperslab_core::{Error, Result};
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const FLUSH: c_int = 0;
const LOCAL: c_int = 0;
/// Where the kinds of objects begin that can be asked to flush their file.
pub(crate) const ATTRIBUTE: c_int = 7;

impl FileState {
    /// Whether calls that write return only when a kill can no longer undo them.
    pub(crate) fn promises(&self) -> bool {
        self.settings.modes.log && self.writable && self.file.is_some() && !self.is_left() && !self.is_inherited()
    }

    /// Before a call returns that has written past the log, through an open object of this kind: the kernel has everything, or the
    /// device if that was asked for.
    pub(crate) fn acknowledge(&self, through: Handle, kind: c_int) -> Result<()> {
        if !self.promises() {
            return Ok(());
        }
        self.save_through(through, kind)?;
        self.make_durable()
    }

    /// The same after libhdf5's own write to a dataset that has no other way.
    pub(crate) fn acknowledge_library(&self, through: Handle) -> Result<()> {
        if self.promises() && is_unlinked(self.host, through) {
            // Nobody finds it before it is linked.
            self.nameless.store(true, Ordering::Relaxed);
            return Ok(());
        }
        self.acknowledge(through, DATASET)
    }

    /// The same after a write to a dataset that has one. `in_place`: nothing of libhdf5's has changed.
    pub(crate) fn acknowledge_write(&self, dataset: &Dataset, through: Handle, in_place: bool) -> Result<()> {
        if !self.promises() {
            return Ok(());
        }
        if in_place && !self.changed.load(Ordering::Relaxed) {
            return self.make_durable();
        }
        if dataset.is_unlinked() {
            // Nobody finds it before it is linked.
            self.nameless.store(true, Ordering::Relaxed);
            return Ok(());
        }
        dataset.elements.flush()?;
        self.save_through(through, DATASET)?;
        dataset.elements.now_saved();
        self.make_durable()
    }

    /// Before a call returns that has given an object a name, seen from an open object of this kind.
    pub(crate) fn acknowledge_link(&self, through: Handle, kind: c_int) -> Result<()> {
        if !self.promises() || !self.nameless.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let datasets: Vec<Arc<Dataset>> = super::file::lock(&self.datasets).values().cloned().collect();
        let flushed = datasets.iter().filter(|dataset| dataset.is_open()).try_for_each(|d| d.elements.flush());
        let saved = flushed.and_then(|()| self.acknowledge(through, kind));
        saved.inspect_err(|_| self.nameless.store(true, Ordering::Relaxed))
    }

    /// Where writes have to survive the loss of power: returns when the device has what the kernel has of the file.
    fn make_durable(&self) -> Result<()> {
        let durable = self.settings.durability.as_deref().is_some_and(|how| !matches!(how, "none" | "on-flush"));
        let Some(file) = self.file.as_ref().filter(|_| durable) else { return Ok(()) };
        // Where there is a journal it remembers that a sync has failed, of which the kernel tells once.
        let synced = self.rollback.upgrade().map_or_else(|| file.sync_data(), |rollback| rollback.sync());
        synced.map_err(|cause| Error::io("sync", cause).target(self.path.display()))
    }

    /// Has libhdf5 write its metadata, through an object of this kind that is open.
    pub(crate) fn save_through(&self, through: Handle, kind: c_int) -> Result<()> {
        #[repr(C)]
        struct Flush {
            operation: c_int,
            /// The rest may hold pointers, and begins where these may.
            _until: c_int,
            kind: c_int,
            scope: c_int,
        }
        let mut arguments = Flush { operation: FLUSH, _until: 0, kind, scope: LOCAL };
        let (host, list): (_, Hid) = (self.host, self.host.default_transfer());
        // What changes meanwhile is not surely part of it.
        self.changed.store(false, Ordering::Relaxed);
        // SAFETY: the object is open, and the arguments are those of the operation.
        let mut flush = || unsafe {
            let arguments = (&raw mut arguments).cast();
            host.H5VLfile_specific(through.under, through.connector, arguments, list, std::ptr::null_mut())
        };
        // Other modes promise the state of the program's own flushes, and nothing newer.
        let flushed = if self.settings.modes.log { driver::flushing(host, flush) } else { Ok(flush()) };
        let saved = flushed.and_then(|status: Herr| match status {
            0.. => Ok(()),
            _ => Err(host.failed("flush")),
        });
        saved.inspect_err(|_| self.changed.store(true, Ordering::Relaxed))
    }
}

/// Before a call on an object returns that has changed what the file says, other than elements of a dataset: as
/// [`FileState::acknowledge`], with the status that it returns.
pub(crate) fn acknowledged(object: &Object, kind: c_int, status: Herr) -> Herr {
    let Some(file) = object.file.as_ref().filter(|_| status >= 0) else { return status };
    told(object, file.acknowledge(object.handle(), kind), status)
}

/// The same for what gives an object a name.
pub(crate) fn acknowledged_link(object: &Object, kind: c_int, status: Herr) -> Herr {
    let Some(file) = object.file.as_ref().filter(|_| status >= 0) else { return status };
    told(object, file.acknowledge_link(object.handle(), kind), status)
}

fn told(object: &Object, result: Result<()>, status: Herr) -> Herr {
    match result {
        Ok(()) => status,
        Err(error) => {
            object.host.report(&error);
            -1
        }
    }
}
