//! Files and datasets: identifiers whose close may have to write.
//!
//! When that write fails, libhdf5 frees the object yet keeps its identifier, and later calls (on any file) touch freed
//! memory. So everything is flushed first; if that fails the object is left open until the process ends, and libhdf5
//! is not closed down then.
//!
//! Of files that processes share nothing waits in memory but metadata, and only a call of all of them can write that.

use super::datatype::Stored;
use super::direct_access::{LibraryMetadata, LibraryOnly};
use super::library::{self, Id, done};
use super::ranks::Ranks;
use hdf5_metno_sys::{h5d, h5f};
use hyperslab_core::{Dims, Result};
use hyperslab_h5direct::{DirectDataset, WriteEffect};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open file or dataset.
#[derive(Debug)]
pub(super) struct OwnedHandle {
    id: ManuallyDrop<Id>,
    kind: Kind,
    /// Whether there may be anything to write.
    changed: AtomicBool,
    data_path: DataPath,
    /// Of datasets.
    stored: Option<Arc<Stored>>,
}

/// How the elements of a dataset go to the file.
#[derive(Debug)]
pub(super) enum DataPath {
    /// By libhdf5; of datasets with what keeps planes away.
    Library(#[expect(dead_code, reason = "held until the handle closes")] Option<LibraryOnly>),
    /// By libhdf5, while another handle of this process uses the data plane.
    SharedWithDirect(Arc<DirectDataset>),
    /// By the data plane where it can.
    Direct(Arc<DirectDataset>),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Dataset,
    /// Shared by processes: closing waits for the others.
    SharedFile,
    /// In such a file: closing concerns this process only.
    SharedDataset,
}

impl OwnedHandle {
    /// Guards a file that these ranks have open.
    pub(super) fn file(id: Id, writable: bool, ranks: &Ranks) -> Self {
        let (kind, changed) =
            if ranks.are_processes() && ranks.count() > 1 { (Kind::SharedFile, false) } else { (Kind::File, writable) };
        let (data_path, stored) = (DataPath::Library(None), None);
        Self { id: ManuallyDrop::new(id), kind, changed: AtomicBool::new(changed), data_path, stored }
    }

    /// Guards a dataset that nothing was written to yet.
    pub(super) fn dataset(id: Id, ranks: &Ranks, data_path: DataPath, stored: Arc<Stored>) -> Self {
        let kind = if ranks.are_processes() { Kind::SharedDataset } else { Kind::Dataset };
        let stored = Some(stored);
        Self { id: ManuallyDrop::new(id), kind, changed: AtomicBool::new(false), data_path, stored }
    }

    /// The plane that moves the dataset's elements, and libhdf5 for its use.
    pub(super) fn direct(&self) -> Option<(&DirectDataset, LibraryMetadata<'_>)> {
        match (&self.data_path, &self.stored) {
            (DataPath::Direct(plane), Some(stored)) => Some((plane, LibraryMetadata { dataset: &self.id, stored })),
            _ => None,
        }
    }

    /// The plane that moves the dataset's elements for any handle.
    fn shared_direct(&self) -> Option<(&DirectDataset, LibraryMetadata<'_>)> {
        match (&self.data_path, &self.stored) {
            (DataPath::Direct(plane) | DataPath::SharedWithDirect(plane), Some(stored)) => {
                Some((plane, LibraryMetadata { dataset: &self.id, stored }))
            }
            _ => None,
        }
    }

    /// Runs a transfer of libhdf5 so that it and the plane see each other's data. Not under libhdf5's lock.
    pub(super) fn library_transfer<T>(&self, effect: WriteEffect<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.shared_direct() {
            Some((plane, library)) => plane.with_library(&library, effect, body),
            None => body(),
        }
    }

    /// Changes the shape by a call of libhdf5, which returns it. Not under libhdf5's lock.
    pub(super) fn resize(&self, body: impl FnOnce() -> Result<Dims>) -> Result<()> {
        match self.shared_direct() {
            Some((plane, library)) => plane.resize(&library, body),
            None => body().map(|_| ()),
        }
    }

    /// Gives libhdf5 what waits in the plane. Not under libhdf5's lock.
    pub(super) fn write_back(&self) -> Result<()> {
        match self.shared_direct() {
            Some((plane, library)) => plane.flush(&library),
            None => Ok(()),
        }
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
        if !self.changed.load(Ordering::Relaxed) || matches!(self.kind, Kind::SharedFile | Kind::SharedDataset) {
            return Ok(());
        }
        library::with(|| {
            // SAFETY: the identifier is live and of this kind.
            let status = unsafe {
                match self.kind {
                    Kind::File | Kind::SharedFile => h5f::H5Fflush(self.id.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL),
                    Kind::Dataset | Kind::SharedDataset => h5d::H5Dflush(self.id.raw()),
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
        let written_back = self.write_back();
        let released = library::with(|| {
            written_back.and_then(|()| self.flush(operation)).inspect_err(|_| library::leave_open())?;
            // SAFETY: taken once: `close` forgets the guard, `drop` is its end.
            let id = unsafe { ManuallyDrop::take(&mut self.id) };
            id.close(operation).inspect_err(|_| library::leave_open())
        });
        // Here, since `close` forgets the guard: the plane has a file and memory.
        self.data_path = DataPath::Library(None);
        self.stored = None;
        released
    }
}

impl Drop for OwnedHandle {
    fn drop(&mut self) {
        if matches!(self.kind, Kind::SharedFile) {
            return; // one process that gives up must not wait for the others; see `abandoned`
        }
        // Errors have no place to go in a drop.
        let _ = self.release("close");
    }
}
