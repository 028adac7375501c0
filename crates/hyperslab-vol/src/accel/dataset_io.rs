//! Transfers of one dataset: by the direct path, with fallback to libhdf5.

use super::callback_scope::{in_callback, run_native_call};
use super::dataspace::{Dataspace, refused};
use super::field_buffer::FieldBuffer;
use super::metadata_backend::{DeferredBackend, EncodedChunk, Handle, LibraryBackend};
use crate::driver::Guard;
use crate::host::Host;
use crate::host::api::Hid;
use crate::stats::Unwritten;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, Dims, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, NoTelemetry,
    Request, Result, Run, Scatter, Selection, Strings, Telemetry, TransferMode, lock,
};
use hyperslab_h5direct::{DirectDataset, MetadataBackend, WriteEffect};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Transfer state of a dataset, shared by its handles and by layers that buffer its writes.
#[derive(Debug)]
pub(crate) struct DatasetIo {
    pub(crate) host: &'static Host,
    pub(crate) name: String,
    /// The file's path, for messages.
    pub(crate) path: PathBuf,
    /// Whether a log holds writes until they are in the file.
    pub(crate) in_log: bool,
    pub(crate) direct: DirectDataset,
    /// The specification; its shape is not maintained.
    pub(crate) spec: ArraySpec,
    /// Type identifier; open while the dataset has handles.
    pub(crate) type_id: Hid,
    pub(crate) allocation_fills: bool,
    pub(crate) handles: Mutex<Vec<Handle>>,
    /// Chunks encoded in the background, to be stored by the next callback.
    pub(crate) encoded_chunks: Mutex<Vec<EncodedChunk>>,
    /// Whether libhdf5 has refused the dataset's only chunk, and would lose it without an error now.
    pub(crate) only_chunk_refused: AtomicBool,
    /// Whether libhdf5 has refused the first of `encoded_chunks`.
    pub(crate) chunks_refused: AtomicBool,
    /// Fields that wait for the other fields of their elements.
    pub(crate) field_buffer: Mutex<Option<FieldBuffer>>,
    /// Whether the program may have queried the dataset's file offset, and so may read the file itself.
    pub(crate) offset_exposed: AtomicBool,
    /// Whether the current write needs nothing of libhdf5 but to store chunks.
    pub(crate) needs_no_reads: AtomicBool,
    /// Whether libhdf5 may hold unflushed metadata about the location of elements.
    pub(crate) metadata_dirty: AtomicBool,
    /// Whether a write that has returned must survive a kill.
    pub(crate) survives_kill: bool,
    /// Guard around direct writes, in files with a rollback journal.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl DatasetIo {
    fn handle(&self) -> Option<Handle> {
        lock(&self.handles).last().copied()
    }

    /// Runs `body` with the metadata backend, after writing buffered fields and storing queued chunks. `None` on
    /// threads outside a callback, and if no handle is open.
    pub(crate) fn with_library<T>(&self, body: impl FnOnce(Option<&LibraryBackend<'_>>) -> Result<T>) -> Result<T> {
        self.with_library_unflushed(|library| {
            match library {
                Some(library) => self.write_buffered_fields(library)?,
                None => self.write_buffered_fields(&DeferredBackend(&self.encoded_chunks))?,
            }
            body(library)
        })
    }

    /// The same without writing buffered fields.
    fn with_library_unflushed<T>(&self, body: impl FnOnce(Option<&LibraryBackend<'_>>) -> Result<T>) -> Result<T> {
        match self.handle().filter(|_| in_callback()) {
            None => body(None),
            Some(handle) => {
                let (shape, allocation_fills) = (self.direct.shape(), self.allocation_fills);
                let library = LibraryBackend {
                    host: self.host,
                    handle,
                    type_id: self.type_id,
                    shape: &shape,
                    allocation_fills,
                    chunk: self.spec.chunk.as_deref().unwrap_or_default(),
                    only_chunk_refused: &self.only_chunk_refused,
                };
                self.store_queued(&library)?;
                body(Some(&library))
            }
        }
    }

    /// Stores the chunks that were encoded in the background. Those that libhdf5 refuses, as on a full disk, stay and are
    /// tried again by the next call: what reads or flushes meanwhile fails, and sees nothing older.
    fn store_queued(&self, library: &LibraryBackend<'_>) -> Result<()> {
        let mut waiting = std::mem::take(&mut *lock(&self.encoded_chunks));
        let mut done = Ok(());
        let stored = waiting.iter().take_while(|chunk| {
            done = chunk.store(library);
            done.is_ok()
        });
        let stored = stored.count();
        let refused = done.map_err(|error| error.target(&self.name));
        match &refused {
            Err(error) => {
                waiting.drain(..stored);
                let mut queue = lock(&self.encoded_chunks);
                // What came meanwhile is newer.
                waiting.append(&mut queue);
                *queue = waiting;
                drop(queue);
                self.chunks_refused.store(true, Ordering::Relaxed);
                self.note_unwritten(error);
            }
            Ok(()) => {
                if stored > 0 && self.chunks_refused.swap(false, Ordering::Relaxed) {
                    self.host.stats.note_written(&self.path.display().to_string(), &self.name);
                }
            }
        }
        refused
    }

    /// Whether chunks wait that libhdf5 has refused, which was noted.
    pub(crate) fn keeps_refused_chunks(&self) -> bool {
        self.chunks_refused.load(Ordering::Relaxed)
    }

    /// Whether the file's metadata on disk locates all elements, so that a write in place is complete by itself.
    pub(crate) fn is_metadata_flushed(&self) -> bool {
        self.found_after_crash() && !self.metadata_dirty.load(Ordering::Relaxed)
    }

    /// Whether a write in place is found after a crash: no metadata must be flushed, and a rollback does not undo it.
    fn found_after_crash(&self) -> bool {
        let taken_back = self.survives_kill && self.guard.as_ref().is_some_and(|guard| !guard.is_for_good());
        self.direct.has_full_index() && !taken_back
    }

    /// Records that libhdf5's metadata are in the file, and committed.
    pub(crate) fn mark_metadata_flushed(&self) {
        self.metadata_dirty.store(false, Ordering::Relaxed);
        if let Some(guard) = self.guard.as_ref().filter(|_| self.survives_kill && self.direct.has_full_index()) {
            guard.stay();
        }
    }

    /// Stores the chunks that were encoded in the background.
    pub(crate) fn store_encoded_chunks(&self) -> Result<()> {
        if lock(&self.encoded_chunks).is_empty() { Ok(()) } else { self.with_library(|_| Ok(())) }
    }

    fn with_backend<T>(&self, body: impl FnOnce(&dyn MetadataBackend) -> Result<T>) -> Result<T> {
        self.with_library(|library| match library {
            Some(library) => body(library),
            None => body(&DeferredBackend(&self.encoded_chunks)),
        })
    }

    /// Runs `body` with a metadata backend, without writing buffered fields.
    pub(super) fn with_backend_unflushed<T>(&self, body: impl FnOnce(&dyn MetadataBackend) -> Result<T>) -> Result<T> {
        self.with_library_unflushed(|library| match library {
            Some(library) => body(library),
            None => body(&DeferredBackend(&self.encoded_chunks)),
        })
    }

    /// Decides whether the next write of these elements may be executed in the background.
    pub(crate) fn decide_background_write(&self, selection: &Selection, whole: bool) -> Result<()> {
        let needs_no_reads = whole
            && self.with_library(|library| match library {
                Some(library) => self.direct.needs_no_reads(library, selection),
                None => Ok(false),
            })?;
        self.needs_no_reads.store(needs_no_reads, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the address of every element is known; loads the index first if this thread may call libhdf5.
    pub(crate) fn load_full_index(&self) -> Result<bool> {
        if self.direct.has_full_index() {
            return Ok(true);
        }
        self.with_library(|library| match library {
            Some(library) => self.direct.load_full_index(library),
            None => Ok(false),
        })
    }

    /// Writes dirty chunks and buffered fields back. After an error buffered fields are discarded, so that it is
    /// reported once.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushed = self.with_backend(|backend| self.direct.flush(backend));
        if let Err(error) = &flushed
            && self.discard_buffered_fields()
        {
            self.note_unwritten(error);
        }
        flushed
    }

    /// Records that acknowledged writes are lost.
    pub(crate) fn note_unwritten(&self, error: &Error) {
        self.host.note_unwritten(Unwritten {
            file: self.path.display().to_string(),
            dataset: self.name.clone(),
            why: error.to_string(),
            in_log: self.in_log,
        });
    }

    /// Writes elements of type `dtype` in memory. `Some`: libhdf5 must execute the transfer.
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

    /// Reads elements as type `dtype` in memory. `Some`: libhdf5 must execute the transfer.
    pub(crate) fn read_as(
        &self,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_h5direct::FallbackReason>> {
        self.with_backend(|backend| self.direct.read_as(backend, selection, memory, dtype))
    }

    /// As [`Self::write_as`], of the elements in runs, from packed memory.
    pub(crate) fn write_runs(
        &self,
        runs: &[Run],
        memory: MemoryView<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_h5direct::FallbackReason>> {
        if !self.found_after_crash() {
            self.metadata_dirty.store(true, Ordering::Relaxed);
        }
        self.with_backend(|backend| self.direct.write_runs(backend, runs, memory, dtype))
    }

    /// As [`Self::read_as`], of the elements in runs, into packed memory.
    pub(crate) fn read_runs(
        &self,
        runs: &[Run],
        memory: MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_h5direct::FallbackReason>> {
        self.with_backend(|backend| self.direct.read_runs(backend, runs, memory, dtype))
    }

    /// Runs a libhdf5 call coherently: dirty chunks are written back first, then what it may have changed is
    /// invalidated.
    pub(crate) fn library_transfer<T>(&self, effect: WriteEffect<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if !matches!(effect, WriteEffect::Nothing) {
            self.metadata_dirty.store(true, Ordering::Relaxed);
        }
        self.with_library(|library| match library {
            Some(library) => self.direct.with_library(library, effect, body),
            None => Err(refused("transfer", "no handle of the dataset is open")),
        })
    }

    /// Writes packed elements by libhdf5.
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

    /// Changes the shape by the program's current call.
    pub(crate) fn resize(&self, shape: &[u64]) -> Result<()> {
        let new: Dims = shape.into();
        let resize = || run_native_call().map(|()| new);
        self.metadata_dirty.store(true, Ordering::Relaxed);
        self.with_library(|library| match library {
            Some(library) => self.direct.resize(library, shape, resize),
            None => Err(refused("resize", "no handle of the dataset is open")),
        })
    }

    fn buffer(&self, selection: &Selection) -> Result<Vec<u8>> {
        let bytes = selection.len().checked_mul(self.spec.dtype.size()).and_then(|bytes| usize::try_from(bytes).ok());
        Ok(vec![0; bytes.ok_or_else(|| Error::invalid("transfer", "it exceeds the address space"))?])
    }
}

/// The dataset as the array at the bottom of the layers.
#[derive(Debug)]
pub(crate) struct DatasetArray {
    pub(crate) io: Arc<DatasetIo>,
    /// Object number in the file.
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
            // Read-modify-write: the other fields.
            self.io.read_by_library(selection, &mut packed)?;
        }
        Gather::new(memory, dtype, selection.len())?.next_into(&mut packed);
        self.io.write_by_library(selection, &packed)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for DatasetArray {
    hyperslab_core::forward!(self, self.io, [resize]);

    fn spec(&self) -> Result<ArraySpec> {
        Ok(ArraySpec { shape: self.io.direct.shape(), ..self.io.spec.clone() })
    }

    /// Such arrays are left to libhdf5.
    fn write_strings(&self, _: &Selection, _: &Strings, _: TransferMode) -> Result<()> {
        Err(Error::unsupported("write", "strings of variable length are left to libhdf5"))
    }

    fn read_strings(&self, _: &Selection, _: TransferMode) -> Result<Strings> {
        Err(Error::unsupported("read", "strings of variable length are left to libhdf5"))
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
            // The program's call may have returned: record the loss.
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

    fn telemetry(&self) -> &dyn Telemetry {
        &NoTelemetry
    }

    fn write_back(&self) -> Result<()> {
        if in_callback() { self.io.flush() } else { Ok(()) }
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
