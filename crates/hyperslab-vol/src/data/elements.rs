//! The elements of one dataset: moved by the data plane where that can be, by libhdf5 otherwise.

use super::control::{Finished, Handle, Later, Library};
use super::held::Held;
use super::inside::{is_inside, make_call};
use super::space::{Space, refused};
use crate::driver::Guard;
use crate::host::Host;
use crate::host::api::Hid;
use crate::stats::Unwritten;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Datatype, Dims, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result,
    Scatter, Selection, TransferMode,
};
use hyperslab_plane::{Control, Plane, Touched};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is shared by all handles of a dataset, and by what waits in layers.
#[derive(Debug)]
pub(crate) struct Elements {
    pub(crate) host: &'static Host,
    pub(crate) name: String,
    /// The file, for words.
    pub(crate) path: PathBuf,
    /// Whether what layers hand down is in a log until it is in the file.
    pub(crate) in_log: bool,
    pub(crate) plane: Plane,
    /// What it is, but for its shape.
    pub(crate) spec: ArraySpec,
    /// The library's name for the type; open as long as there are handles.
    pub(crate) kind: Hid,
    pub(crate) allocation_fills: bool,
    pub(crate) handles: Mutex<Vec<Handle>>,
    /// Chunks that threads of ours have coded.
    pub(crate) finished: Mutex<Vec<Finished>>,
    /// Fields that wait for the others of their elements.
    pub(crate) held: Mutex<Option<Held>>,
    /// Whether the program has been where it may have learnt the place of elements in the file, to look there itself.
    pub(crate) looked_into: AtomicBool,
    /// Whether the write that is being made needs libhdf5 to store chunks only.
    pub(crate) only_stores: AtomicBool,
    /// Whether libhdf5 may hold metadata about where elements lie that is not in the file.
    pub(crate) unsaved: AtomicBool,
    /// Whether a write that has returned must survive a kill.
    pub(crate) promised: bool,
    /// Stands before the plane's writes, in files with a rollback journal.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl Elements {
    fn handle(&self) -> Option<Handle> {
        lock(&self.handles).last().copied()
    }

    /// Runs something with libhdf5 at hand, which has got all chunks that were coded before; on a thread that may not call it, or
    /// when no handle is open, without. Nothing is held.
    pub(crate) fn with_control<T>(&self, body: impl FnOnce(Option<&Library<'_>>) -> Result<T>) -> Result<T> {
        self.with_library(|library| {
            match library {
                Some(library) => self.write_held(library)?,
                None => self.write_held(&Later(&self.finished))?,
            }
            body(library)
        })
    }

    /// The same, whatever is held.
    fn with_library<T>(&self, body: impl FnOnce(Option<&Library<'_>>) -> Result<T>) -> Result<T> {
        match self.handle().filter(|_| is_inside()) {
            None => body(None),
            Some(handle) => {
                let (shape, allocation_fills) = (self.plane.shape(), self.allocation_fills);
                let library = Library { host: self.host, handle, kind: self.kind, shape: &shape, allocation_fills };
                let finished = std::mem::take(&mut *lock(&self.finished));
                finished.iter().try_for_each(|chunk| chunk.store(&library))?;
                body(Some(&library))
            }
        }
    }

    /// Whether the file says where all elements are, so that a write in place changes nothing else.
    pub(crate) fn is_saved(&self) -> bool {
        self.is_found() && !self.unsaved.load(Ordering::Relaxed)
    }

    /// Whether a write in place is found by whoever opens the file: nothing else has to be written, and a rollback leaves it.
    fn is_found(&self) -> bool {
        let taken_back = self.promised && self.guard.as_ref().is_some_and(|guard| !guard.is_for_good());
        self.plane.is_independent() && !taken_back
    }

    /// All that libhdf5 knows is in the file, and committed.
    pub(crate) fn now_saved(&self) {
        self.unsaved.store(false, Ordering::Relaxed);
        if let Some(guard) = self.guard.as_ref().filter(|_| self.promised && self.plane.is_independent()) {
            guard.stay();
        }
    }

    /// Gives libhdf5 the chunks that were coded.
    pub(crate) fn store_finished(&self) -> Result<()> {
        if lock(&self.finished).is_empty() { Ok(()) } else { self.with_control(|_| Ok(())) }
    }

    fn control_or_later<T>(&self, body: impl FnOnce(&dyn Control) -> Result<T>) -> Result<T> {
        self.with_control(|library| match library {
            Some(library) => body(library),
            None => body(&Later(&self.finished)),
        })
    }

    /// The same while fields are held.
    pub(super) fn beside_held<T>(&self, body: impl FnOnce(&dyn Control) -> Result<T>) -> Result<T> {
        self.with_library(|library| match library {
            Some(library) => body(library),
            None => body(&Later(&self.finished)),
        })
    }

    /// Whether the next write of these elements may be made by a thread of ours.
    pub(crate) fn note_write(&self, selection: &Selection, whole: bool) -> Result<()> {
        let only_stores = whole
            && self.with_control(|library| match library {
                Some(library) => self.plane.only_stores(library, selection),
                None => Ok(false),
            })?;
        self.only_stores.store(only_stores, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the plane needs nothing of libhdf5 any more; asks it for what is missing, if it can be asked.
    pub(crate) fn make_independent(&self) -> Result<bool> {
        if self.plane.is_independent() {
            return Ok(true);
        }
        self.with_control(|library| match library {
            Some(library) => self.plane.make_independent(library),
            None => Ok(false),
        })
    }

    /// Stores what waits in the plane. Whoever is told that fields cannot be written is told once.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushed = self.control_or_later(|control| self.plane.flush(control));
        if let Err(error) = &flushed
            && self.drop_held()
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
    ) -> Result<Option<hyperslab_plane::Refusal>> {
        if !self.is_found() {
            self.unsaved.store(true, Ordering::Relaxed);
        }
        self.control_or_later(|control| self.plane.write_as(control, selection, memory, dtype))
    }

    /// Reads elements as a type in memory; the inner value says why libhdf5 must.
    pub(crate) fn read_as(
        &self,
        selection: &Selection,
        memory: &mut MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<hyperslab_plane::Refusal>> {
        self.control_or_later(|control| self.plane.read_as(control, selection, memory, dtype))
    }

    /// Runs a call of libhdf5 so that it and the plane see each other's data.
    pub(crate) fn beside<T>(&self, touched: Touched<'_>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if !matches!(touched, Touched::Nothing) {
            self.unsaved.store(true, Ordering::Relaxed);
        }
        self.with_control(|library| match library {
            Some(library) => self.plane.aside(library, touched, body),
            None => Err(refused("transfer", "no handle of the dataset is open")),
        })
    }

    /// Packed elements, by libhdf5.
    fn write_by_library(&self, selection: &Selection, packed: &[u8]) -> Result<()> {
        self.with_control(|library| {
            let library = library.ok_or_else(|| refused("write", "libhdf5 would be needed in the background"))?;
            let file = Space::selecting(self.host, library.shape, selection)?;
            let memory = Space::simple(self.host, &[selection.len()])?;
            let write = || library.write(memory.id(), file.id(), packed.as_ptr().cast());
            self.plane.aside(library, Touched::Elements(selection), write)
        })
    }

    fn read_by_library(&self, selection: &Selection, packed: &mut [u8]) -> Result<()> {
        self.with_control(|library| {
            let library = library.ok_or_else(|| refused("read", "libhdf5 would be needed in the background"))?;
            let file = Space::selecting(self.host, library.shape, selection)?;
            let memory = Space::simple(self.host, &[selection.len()])?;
            let read = || library.read(memory.id(), file.id(), packed.as_mut_ptr().cast());
            self.plane.aside(library, Touched::Nothing, read)
        })
    }

    /// Changes the shape by the call of the program that is under way.
    pub(crate) fn resize(&self, shape: &[u64]) -> Result<()> {
        let new: Dims = shape.into();
        let resize = || make_call().map(|()| new);
        self.unsaved.store(true, Ordering::Relaxed);
        self.with_control(|library| match library {
            Some(library) => self.plane.resize(library, resize),
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
pub(crate) struct ElementsArray {
    pub(crate) elements: Arc<Elements>,
    /// Which object of the file they are.
    pub(crate) object: u64,
}

impl ElementsArray {
    fn write_now(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let dtype = &self.elements.spec.dtype;
        if self.elements.write_as(selection, memory, dtype)?.is_none() {
            return Ok(());
        }
        if memory.layout.is_packed() {
            return self.elements.write_by_library(selection, memory.data);
        }
        let mut packed = self.elements.buffer(selection)?;
        if !memory.layout.plan(dtype)?.covers_element() {
            // The other fields.
            self.elements.read_by_library(selection, &mut packed)?;
        }
        Gather::new(memory, dtype, selection.len())?.next_into(&mut packed);
        self.elements.write_by_library(selection, &packed)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for ElementsArray {
    fn spec(&self) -> Result<ArraySpec> {
        Ok(ArraySpec { shape: self.elements.plane.shape(), ..self.elements.spec.clone() })
    }

    fn allows_background_io(&self) -> bool {
        self.elements.only_stores.load(Ordering::Relaxed) || self.elements.plane.is_independent()
    }

    fn object(&self) -> Option<u64> {
        Some(self.object)
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, _: TransferMode) -> Result<()> {
        let written = self.write_now(selection, memory);
        if let (Err(error), false) = (&written, is_inside()) {
            // Nobody may ask any more.
            self.elements.note_unwritten(error);
        }
        written
    }

    fn read(&self, selection: &Selection, mut memory: MemoryViewMut<'_>, _: TransferMode) -> Result<()> {
        let dtype = &self.elements.spec.dtype;
        if self.elements.read_as(selection, &mut memory, dtype)?.is_none() {
            return Ok(());
        }
        if memory.layout.is_packed() {
            return self.elements.read_by_library(selection, memory.data);
        }
        let mut packed = self.elements.buffer(selection)?;
        self.elements.read_by_library(selection, &mut packed)?;
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
        if is_inside() { self.elements.flush() } else { Ok(()) }
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.elements.resize(shape)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
