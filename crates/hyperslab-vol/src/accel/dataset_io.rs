//! The elements of one dataset: moved by the data plane where that can be, by libhdf5 otherwise.

use super::callback_scope::{in_callback, run_native_call};
use super::dataspace::{Dataspace, refused};
use super::field_buffer::FieldBuffer;
use super::metadata_backend::{DeferredBackend, EncodedChunk, Handle, LibraryBackend};
use crate::driver::Guard;
use crate::host::Host;
use crate::host::api::Hid;
use crate::stats::Unwritten;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, Dims, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result,
    Scatter, Selection, TransferMode,
};
use hyperslab_h5direct::{DirectDataset, MetadataBackend, WriteEffect};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is shared by all handles of a dataset, and by what waits in layers.
#[derive(Debug)]
pub(crate) struct DatasetIo {
    pub(crate) host: &'static Host,
    pub(crate) name: String,
    /// The file, for words.
    pub(crate) path: PathBuf,
    /// Whether what layers hand down is in a log until it is in the file.
    pub(crate) in_log: bool,
    pub(crate) direct: DirectDataset,
    /// What it is, but for its shape.
    pub(crate) spec: ArraySpec,
    /// The library's name for the type; open as long as there are handles.
    pub(crate) type_id: Hid,
    pub(crate) allocation_fills: bool,
    pub(crate) handles: Mutex<Vec<Handle>>,
    /// Chunks that threads of ours have coded.
    pub(crate) encoded_chunks: Mutex<Vec<EncodedChunk>>,
    /// Fields that wait for the others of their elements.
    pub(crate) field_buffer: Mutex<Option<FieldBuffer>>,
    /// Whether the program has been where it may have learnt the place of elements in the file, to look there itself.
    pub(crate) offset_exposed: AtomicBool,
    /// Whether the write that is being made needs libhdf5 to store chunks only.
    pub(crate) needs_no_reads: AtomicBool,
    /// Whether libhdf5 may hold metadata about where elements lie that is not in the file.
    pub(crate) metadata_dirty: AtomicBool,
    /// Whether a write that has returned must survive a kill.
    pub(crate) survives_kill: bool,
    /// Stands before the plane's writes, in files with a rollback journal.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl DatasetIo {
    fn handle(&self) -> Option<Handle> {
        lock(&self.handles).last().copied()
    }

    /// Runs something with libhdf5 at hand, which has got all chunks that were coded before; on a thread that may not call it, or
    /// when no handle is open, without. Nothing is held.
    pub(crate) fn with_library<T>(&self, body: impl FnOnce(Option<&LibraryBackend<'_>>) -> Result<T>) -> Result<T> {
        self.with_library_unflushed(|library| {
            match library {
                Some(library) => self.write_buffered_fields(library)?,
                None => self.write_buffered_fields(&DeferredBackend(&self.encoded_chunks))?,
            }
            body(library)
        })
    }

    /// The same, whatever is held.
    fn with_library_unflushed<T>(&self, body: impl FnOnce(Option<&LibraryBackend<'_>>) -> Result<T>) -> Result<T> {
        match self.handle().filter(|_| in_callback()) {
            None => body(None),
            Some(handle) => {
                let (shape, allocation_fills) = (self.direct.shape(), self.allocation_fills);
                let library =
                    LibraryBackend { host: self.host, handle, type_id: self.type_id, shape: &shape, allocation_fills };
                let encoded_chunks = std::mem::take(&mut *lock(&self.encoded_chunks));
                encoded_chunks.iter().try_for_each(|chunk| chunk.store(&library))?;
                body(Some(&library))
            }
        }
    }

    /// Whether the file says where all elements are, so that a write in place changes nothing else.
    pub(crate) fn is_metadata_flushed(&self) -> bool {
        self.found_after_crash() && !self.metadata_dirty.load(Ordering::Relaxed)
    }

    /// Whether a write in place is found by whoever opens the file: nothing else has to be written, and a rollback leaves it.
    fn found_after_crash(&self) -> bool {
        let taken_back = self.survives_kill && self.guard.as_ref().is_some_and(|guard| !guard.is_for_good());
        self.direct.has_full_index() && !taken_back
    }

    /// All that libhdf5 knows is in the file, and committed.
    pub(crate) fn mark_metadata_flushed(&self) {
        self.metadata_dirty.store(false, Ordering::Relaxed);
        if let Some(guard) = self.guard.as_ref().filter(|_| self.survives_kill && self.direct.has_full_index()) {
            guard.stay();
        }
    }

    /// Gives libhdf5 the chunks that were coded.
    pub(crate) fn store_encoded_chunks(&self) -> Result<()> {
        if lock(&self.encoded_chunks).is_empty() { Ok(()) } else { self.with_library(|_| Ok(())) }
    }

    fn with_backend<T>(&self, body: impl FnOnce(&dyn MetadataBackend) -> Result<T>) -> Result<T> {
        self.with_library(|library| match library {
            Some(library) => body(library),
            None => body(&DeferredBackend(&self.encoded_chunks)),
        })
    }

    /// The same while fields are held.
    pub(super) fn with_backend_unflushed<T>(&self, body: impl FnOnce(&dyn MetadataBackend) -> Result<T>) -> Result<T> {
        self.with_library_unflushed(|library| match library {
            Some(library) => body(library),
            None => body(&DeferredBackend(&self.encoded_chunks)),
        })
    }

    /// Whether the next write of these elements may be made by a thread of ours.
    pub(crate) fn decide_background_write(&self, selection: &Selection, whole: bool) -> Result<()> {
        let needs_no_reads = whole
            && self.with_library(|library| match library {
                Some(library) => self.direct.needs_no_reads(library, selection),
                None => Ok(false),
            })?;
        self.needs_no_reads.store(needs_no_reads, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the plane needs nothing of libhdf5 any more; asks it for what is missing, if it can be asked.
    pub(crate) fn load_full_index(&self) -> Result<bool> {
        if self.direct.has_full_index() {
            return Ok(true);
        }
        self.with_library(|library| match library {
            Some(library) => self.direct.load_full_index(library),
            None => Ok(false),
        })
    }

    /// Stores what waits in the plane. Whoever is told that fields cannot be written is told once.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushed = self.with_backend(|backend| self.direct.flush(backend));
        if let Err(error) = &flushed
            && self.discard_buffered_fields()
        {
            self.note_unwritten(error);
        }
        flushed
    }

    /// Notes that elements cannot be written whose write has returned.
    pub(crate) fn note_unwritten(&self, error: &Error) {
        self.host.note_unwritten(Unwritten {
            file: self.path.display().to_string(),
            dataset: self.name.clone(),
            why: error.to_string(),
            in_log: self.in_log,
        });
    }

    /// Writes elements of a type in memory; the inner value says why libhdf5 must.
    pub(crate) fn write_as(
        &self,
        selection: &Selection,
        memory: MemoryView<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_h5direct::FallbackReason>> {
        if !self.found_after_crash() {
            self.metadata_dirty.store(true, Ordering::Relaxed);
        }
        self.with_backend(|backend| self.direct.write_as(backend, selection, memory, dtype))
    }

    /// Reads elements as a type in memory; the inner value says why libhdf5 must.
    pub(crate) fn read_as(
        &self,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_h5direct::FallbackReason>> {
        self.with_backend(|backend| self.direct.read_as(backend, selection, memory, dtype))
    }

    /// Runs a call of libhdf5 so that it and the plane see each other's data.
    pub(crate) fn library_transfer<T>(&self, touched: WriteEffect<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if !matches!(touched, WriteEffect::Nothing) {
            self.metadata_dirty.store(true, Ordering::Relaxed);
        }
        self.with_library(|library| match library {
            Some(library) => self.direct.with_library(library, touched, body),
            None => Err(refused("transfer", "no handle of the dataset is open")),
        })
    }

    /// Packed elements, by libhdf5.
    fn write_by_library(&self, selection: &Selection, packed: &[u8]) -> Result<()> {
        self.with_library(|library| {
            let library = library.ok_or_else(|| refused("write", "libhdf5 would be needed in the background"))?;
            let file = Dataspace::selecting(self.host, library.shape, selection)?;
            let memory = Dataspace::simple(self.host, &[selection.len()])?;
            let write = || library.write(memory.id(), file.id(), packed.as_ptr().cast());
            self.direct.with_library(library, WriteEffect::Elements(selection), write)
        })
    }

    fn read_by_library(&self, selection: &Selection, packed: &mut [u8]) -> Result<()> {
        self.with_library(|library| {
            let library = library.ok_or_else(|| refused("read", "libhdf5 would be needed in the background"))?;
            let file = Dataspace::selecting(self.host, library.shape, selection)?;
            let memory = Dataspace::simple(self.host, &[selection.len()])?;
            let read = || library.read(memory.id(), file.id(), packed.as_mut_ptr().cast());
            self.direct.with_library(library, WriteEffect::Nothing, read)
        })
    }

    /// Changes the shape by the call of the program that is under way.
    pub(crate) fn resize(&self, shape: &[u64]) -> Result<()> {
        let new: Dims = shape.into();
        let resize = || run_native_call().map(|()| new);
        self.metadata_dirty.store(true, Ordering::Relaxed);
        self.with_library(|library| match library {
            Some(library) => self.direct.resize(library, resize),
            None => Err(refused("resize", "no handle of the dataset is open")),
        })
    }

    fn buffer(&self, selection: &Selection) -> Result<Vec<u8>> {
        let bytes = selection.len().checked_mul(self.spec.dtype.size()).and_then(|bytes| usize::try_from(bytes).ok());
        Ok(vec![0; bytes.ok_or_else(|| Error::invalid("transfer", "it exceeds the address space"))?])
    }
}

/// The elements as an array that layers may lie on.
#[derive(Debug)]
pub(crate) struct DatasetArray {
    pub(crate) io: Arc<DatasetIo>,
    /// Which object of the file they are.
    pub(crate) object: u64,
}

impl DatasetArray {
    fn write_now(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let dtype = &self.io.spec.dtype;
        if self.io.write_as(selection, memory, dtype)?.is_none() {
            return Ok(());
        }
        if memory.layout.is_packed() {
            return self.io.write_by_library(selection, memory.data);
        }
        let mut packed = self.io.buffer(selection)?;
        if !memory.layout.plan(dtype)?.covers_element() {
            // The other fields.
            self.io.read_by_library(selection, &mut packed)?;
        }
        Gather::new(memory, dtype, selection.len())?.next_into(&mut packed);
        self.io.write_by_library(selection, &packed)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for DatasetArray {
    fn spec(&self) -> Result<ArraySpec> {
        Ok(ArraySpec { shape: self.io.direct.shape(), ..self.io.spec.clone() })
    }

    fn allows_background_io(&self) -> bool {
        self.io.needs_no_reads.load(Ordering::Relaxed) || self.io.direct.has_full_index()
    }

    fn object(&self) -> Option<u64> {
        Some(self.object)
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, _: TransferMode) -> Result<()> {
        let written = self.write_now(selection, memory);
        if let (Err(error), false) = (&written, in_callback()) {
            // Nobody may ask any more.
            self.io.note_unwritten(error);
        }
        written
    }

    fn read(&self, selection: &Selection, mut memory: MemoryViewMut<'_>, _: TransferMode) -> Result<()> {
        let dtype = &self.io.spec.dtype;
        if self.io.read_as(selection, &mut memory, dtype)?.is_none() {
            return Ok(());
        }
        if memory.layout.is_packed() {
            return self.io.read_by_library(selection, memory.data);
        }
        let mut packed = self.io.buffer(selection)?;
        self.io.read_by_library(selection, &mut packed)?;
        Scatter::new(memory, dtype, selection.len())?.next_from(&packed);
        Ok(())
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        parts.iter().try_for_each(|(selection, memory)| self.write(selection, *memory, transfer))
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.write(selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done())
    }

    fn prefetch(&self, _: &Selection) {}

    fn explain(&self, _: &Selection, _: &MemoryLayout, _: bool) -> Result<Option<String>> {
        Ok(None)
    }

    fn write_back(&self) -> Result<()> {
        if in_callback() { self.io.flush() } else { Ok(()) }
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.io.resize(shape)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
