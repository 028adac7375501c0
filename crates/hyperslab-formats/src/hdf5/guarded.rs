//! Files and datasets: identifiers whose close may have to write.
//!
//! When that write fails, libhdf5 frees the object yet keeps its identifier, and later calls (on any file) touch freed
//! memory. So everything is flushed first; if that fails the object is left open until the process ends, and libhdf5
//! is not closed down then.

use super::library::{self, Id, done};
use hdf5_metno_sys::{h5d, h5f};
use hyperslab_core::Result;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open file or dataset.
#[derive(Debug)]
pub(super) struct Guarded {
    id: ManuallyDrop<Id>,
    kind: Kind,
    /// Whether there may be anything to write.
    changed: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Dataset,
}

impl Guarded {
    /// Guards a file.
    pub(super) fn file(id: Id, writable: bool) -> Self {
        Self { id: ManuallyDrop::new(id), kind: Kind::File, changed: AtomicBool::new(writable) }
    }

    /// Guards a dataset that nothing was written to yet.
    pub(super) fn dataset(id: Id) -> Self {
        Self { id: ManuallyDrop::new(id), kind: Kind::Dataset, changed: AtomicBool::new(false) }
    }

    /// The identifier inside.
    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// Notes that something was written.
    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Writes what is pending.
    pub(super) fn flush(&self, operation: &'static str) -> Result<()> {
        if !self.changed.load(Ordering::Relaxed) {
            return Ok(());
        }
        library::with(|| {
            // SAFETY: the identifier is live and of this kind.
            let status = unsafe {
                match self.kind {
                    Kind::File => h5f::H5Fflush(self.id.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL),
                    Kind::Dataset => h5d::H5Dflush(self.id.raw()),
                }
            };
            done(operation, status)
        })
    }

    /// Notes that nothing is pending, because the whole file was flushed.
    pub(super) fn note_flushed(&self) {
        self.changed.store(false, Ordering::Relaxed);
    }

    /// Writes what is pending and gives the identifier back; reports what failed.
    pub(super) fn close(self, operation: &'static str) -> Result<()> {
        let mut this = ManuallyDrop::new(self);
        this.release(operation)
    }

    /// Called once, before the guard is gone.
    fn release(&mut self, operation: &'static str) -> Result<()> {
        library::with(|| {
            self.flush(operation).inspect_err(|_| library::leave_open())?;
            // SAFETY: taken once: `close` forgets the guard, `drop` is its end.
            let id = unsafe { ManuallyDrop::take(&mut self.id) };
            id.close(operation).inspect_err(|_| library::leave_open())
        })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Errors have no place to go in a drop.
        let _ = self.release("close");
    }
}
