//! Owned identifiers of files and datasets, whose close may have to write.
//!
//! If that write fails, libhdf5 frees the object but keeps its identifier, and later calls (on any file) use freed
//! memory. So everything is flushed before closing; if that fails the object stays open until the process ends, and
//! libhdf5 is not shut down.
//!
//! Files shared by processes buffer only metadata, which only a collective call can flush.

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
    /// Whether there may be buffered data.
    changed: AtomicBool,
    data_path: DataPath,
    /// `Some` for datasets.
    stored: Option<Arc<Stored>>,
}

/// How the elements of a dataset are transferred.
#[derive(Debug)]
pub(super) enum DataPath {
    /// By libhdf5; for datasets with the registration that excludes the direct path.
    Library(#[expect(dead_code, reason = "held until the handle closes")] Option<LibraryOnly>),
    /// By libhdf5, kept coherent with the direct path that another handle of this process uses.
    SharedWithDirect(Arc<DirectDataset>),
    /// By the direct path, with fallback to libhdf5.
    Direct(Arc<DirectDataset>),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Dataset,
    /// Shared by processes: closing is collective.
    SharedFile,
    /// In a shared file: closing is independent.
    SharedDataset,
}

impl OwnedHandle {
    /// Takes over a file that these ranks have open.
    pub(super) fn file(id: Id, writable: bool, ranks: &Ranks) -> Self {
        let (kind, changed) =
            if ranks.are_processes() && ranks.count() > 1 { (Kind::SharedFile, false) } else { (Kind::File, writable) };
        let (data_path, stored) = (DataPath::Library(None), None);
        Self { id: ManuallyDrop::new(id), kind, changed: AtomicBool::new(changed), data_path, stored }
    }

    /// Takes over a dataset to which nothing was written yet.
    pub(super) fn dataset(id: Id, ranks: &Ranks, data_path: DataPath, stored: Arc<Stored>) -> Self {
        let kind = if ranks.are_processes() { Kind::SharedDataset } else { Kind::Dataset };
        let stored = Some(stored);
        Self { id: ManuallyDrop::new(id), kind, changed: AtomicBool::new(false), data_path, stored }
    }

    /// The direct path of this handle, and its metadata backend.
    pub(super) fn direct(&self) -> Option<(&DirectDataset, LibraryMetadata<'_>)> {
        match (&self.data_path, &self.stored) {
            (DataPath::Direct(direct), Some(stored)) => Some((direct, LibraryMetadata { dataset: &self.id, stored })),
            _ => None,
        }
    }

    /// The direct path of this or any other handle of the dataset, and its metadata backend.
    fn shared_direct(&self) -> Option<(&DirectDataset, LibraryMetadata<'_>)> {
        match (&self.data_path, &self.stored) {
            (DataPath::Direct(direct) | DataPath::SharedWithDirect(direct), Some(stored)) => {
                Some((direct, LibraryMetadata { dataset: &self.id, stored }))
            }
            _ => None,
        }
    }

    /// Runs a transfer of libhdf5, coherent with the direct path: dirty chunks are written back first, and what
    /// `effect` says may have changed is invalidated afterwards. Do not call under libhdf5's lock.
    pub(super) fn library_transfer<T>(&self, effect: WriteEffect<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.shared_direct() {
            Some((direct, library)) => direct.with_library(&library, effect, body),
            None => body(),
        }
    }

    /// Changes the shape by the libhdf5 call `body`, which returns the new one. Do not call under libhdf5's lock.
    pub(super) fn resize(&self, shape: &[u64], body: impl FnOnce() -> Result<Dims>) -> Result<()> {
        match self.shared_direct() {
            Some((direct, library)) => direct.resize(&library, shape, body),
            None => body().map(|_| ()),
        }
    }

    /// Writes dirty chunks of the direct path back. Do not call under libhdf5's lock.
    pub(super) fn write_back(&self) -> Result<()> {
        match self.shared_direct() {
            Some((direct, library)) => direct.flush(&library),
            None => Ok(()),
        }
    }

    /// The identifier.
    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// Marks the object as written to.
    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Flushes the object if it was written to. Does nothing for shared files, where that is collective.
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

    /// Marks the object as flushed, because the whole file was.
    pub(super) fn note_flushed(&self) {
        self.changed.store(false, Ordering::Relaxed);
    }

    /// Flushes and closes the object. After an error it stays open until the process ends.
    pub(super) fn close(self, operation: &'static str) -> Result<()> {
        let mut this = ManuallyDrop::new(self);
        this.release(operation)
    }

    /// Called once, by `close` or `drop`.
    fn release(&mut self, operation: &'static str) -> Result<()> {
        let written_back = self.write_back();
        let released = library::with(|| {
            written_back.and_then(|()| self.flush(operation)).inspect_err(|_| library::leave_open())?;
            // SAFETY: taken once: `close` forgets the guard, `drop` is its end.
            let id = unsafe { ManuallyDrop::take(&mut self.id) };
            id.close(operation).inspect_err(|_| library::leave_open())
        });
        // Dropped here, since `close` forgets `self`: the direct path owns a file and memory.
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
        // A drop cannot report errors.
        let _ = self.release("close");
    }
}
