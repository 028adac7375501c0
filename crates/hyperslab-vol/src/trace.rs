//! Records the program's HDF5 calls as workloads.
//!
//! The layer `trace` records calls to the format below it. Here that is a format without data, whose arrays execute the
//! program's current libhdf5 call, so that the layer times it.

use crate::accel::{ElementType, Plan, Transfer, named_filters, run_native_call, shape_of, stored, with_native_call};
use crate::host::Host;
use crate::host::api::{Herr, Hid};
use crate::object::Object;
use crate::settings::Settings;
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Bytes, Caps, Communicator, Container, Durability, Error, Format,
    MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, Stack, StackElement, TransferMode,
};
use hyperslab_h5direct::Layout;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const GET_CREATION_LIST: c_int = 1;
const GET_SPACE: c_int = 2;
const GET_TYPE: c_int = 5;

/// Number of files that this process has recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// A traced file.
#[derive(Debug)]
pub(crate) struct TracedFile {
    container: Arc<dyn Container>,
    next: Arc<Mutex<Option<ArraySpec>>>,
    /// Datasets that had no name when they were made.
    unnamed: AtomicU64,
}

/// A traced dataset.
pub(crate) struct TracedDataset {
    array: Arc<dyn Array>,
    element_type: ElementType,
}

impl TracedFile {
    /// Starts a trace; `None` if it cannot be created, which is reported to the user.
    pub(crate) fn open(host: &'static Host, settings: &Settings, path: &Path, how: OpenMode) -> Option<Self> {
        let number = RECORDED.fetch_add(1, Ordering::Relaxed) + 1;
        let file = settings.trace.display().to_string();
        let file = file.replace("%p", &std::process::id().to_string()).replace("%n", &number.to_string());
        let element = |name: &str, options| StackElement { name: name.into(), options };
        let layers = vec![element("trace", vec![("file".to_owned(), file)])];
        let next = Arc::new(Mutex::new(None));
        let below: Arc<dyn Format> = Arc::new(NativeFormat(next.clone()));
        let comm: Arc<dyn Communicator> = Arc::new(Solo);
        let opened = hyperslab_layers::build(&Stack { layers, format: element("hdf5", Vec::new()) }, below)
            .and_then(|format| format.open(path, how, &comm));
        match opened {
            Ok(container) => Some(Self { container, next, unnamed: AtomicU64::new(0) }),
            Err(error) => {
                host.say_once(&format!("nothing is recorded: {error}"));
                None
            }
        }
    }

    /// A dataset that was created or opened; `None` if its elements cannot be described.
    ///
    /// # Safety
    /// Inside a call of the library; the object is an open dataset.
    pub(crate) unsafe fn dataset(&self, object: &Object, name: &str, created: bool) -> Option<TracedDataset> {
        // SAFETY: the caller's.
        let (element_type, spec) = unsafe { described(object) }?;
        let array = match created {
            // Programs may write elements first and link the dataset to a name later (h5py: `file[name] = data`).
            true if name.is_empty() => {
                let number = self.unnamed.fetch_add(1, Ordering::Relaxed) + 1;
                self.container.create(&format!("unnamed-{number}"), &spec)
            }
            true => self.container.create(name, &spec),
            false => {
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(spec);
                self.container.array(name)
            }
        };
        array.ok().map(|array| TracedDataset { array, element_type })
    }

    /// Records a flush.
    pub(crate) fn flush(&self, mut call: impl FnMut() -> Herr) -> Herr {
        let mut status = 0;
        let made = || {
            status = call();
            if status < 0 { Err(Error::unsupported("flush", "libhdf5 refused")) } else { Ok(()) }
        };
        // The status says what has failed.
        let _ = with_native_call(made, || self.container.flush(Durability::Visible));
        status
    }

    /// Ends the recording.
    pub(crate) fn close(&self) {
        // What cannot be written is lost; the program goes on.
        let _ = with_native_call(|| Ok(()), || self.container.close());
    }
}

impl TracedDataset {
    /// What a transfer means, if that can be said.
    ///
    /// # Safety
    /// Inside a call of the library; the object is the open dataset, and all identifiers are open.
    pub(crate) unsafe fn plan(&self, object: &Object, one: &Transfer, writes: bool) -> Option<Plan> {
        let host = object.host;
        let handle = object.handle();
        let space = handle.identifier(host, GET_SPACE)?;
        // SAFETY: the space is open, and ours.
        let shape = unsafe {
            let shape = shape_of(host, space);
            host.H5Sclose(space);
            shape?.0
        };
        // SAFETY: the caller's.
        unsafe { Plan::new(host, &self.element_type, &shape, one, writes) }.ok()
    }

    /// Records the transfer that is under way, and makes it.
    pub(crate) fn record(&self, plan: &Plan, writes: bool) {
        let (selection, layout) = (&plan.selection, &plan.layout);
        // The caller knows the outcome.
        let _ = match writes {
            true => self.array.write(selection, MemoryView { data: &[], layout }, TransferMode::Independent),
            false => self.array.read(selection, MemoryViewMut { data: &mut [], layout }, TransferMode::Independent),
        };
    }

    /// It is closed.
    pub(crate) fn close(&self) {
        let _ = self.array.close();
    }
}

/// Type and description of a dataset.
unsafe fn described(object: &Object) -> Option<(ElementType, ArraySpec)> {
    let (host, handle) = (object.host, object.handle());
    let element_type = ElementType::take(host, handle.identifier(host, GET_TYPE)?).ok()?;
    let (space, list): (Hid, Hid) = (handle.identifier(host, GET_SPACE)?, handle.identifier(host, GET_CREATION_LIST)?);
    // SAFETY: space, list and type are open, the first two ours.
    let (shape, stored) = unsafe {
        let shape = shape_of(host, space);
        let rank = shape.as_ref().map_or(0, |(shape, _)| shape.len());
        let stored = stored(host, list, element_type.id(), rank, element_type.dtype.size() as usize);
        host.H5Sclose(space);
        host.H5Pclose(list);
        (shape?, stored?)
    };
    let spec = ArraySpec {
        dtype: element_type.dtype.clone(),
        shape: shape.0.clone(),
        max_shape: (shape.1.iter().zip(&shape.0).any(|(most, extent)| *most != Some(*extent))).then_some(shape.1),
        chunk: match stored.layout {
            Layout::Chunked(chunk) => Some(chunk),
            Layout::Contiguous => None,
        },
        filters: named_filters(&stored.filters),
        fill_value: stored.fill,
        dims: None,
    };
    Some((element_type, spec))
}

/// A format without data, whose arrays execute the program's current libhdf5 call.
#[derive(Debug)]
struct NativeFormat(Arc<Mutex<Option<ArraySpec>>>);

#[derive(Debug)]
struct NativeArray(ArraySpec);

impl Format for NativeFormat {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    fn caps(&self) -> Caps {
        Caps {
            readable: true,
            resize: true,
            chunks: true,
            compound: true,
            max_rank: hyperslab_core::MAX_RANK,
            ..Caps::default()
        }
    }

    fn extension(&self) -> &'static str {
        "h5"
    }

    fn open(&self, _: &Path, _: OpenMode, _: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(Self(self.0.clone())))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path.exists())
    }

    fn remove(&self, _: &Path) -> Result<()> {
        run_native_call()
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Ok(vec![path.to_path_buf()])
    }
}

impl Container for NativeFormat {
    fn arrays(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn create_group(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn create(&self, _: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(NativeArray(spec.clone())))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(spec) => Ok(Arc::new(NativeArray(spec))),
            None => Err(Error::unsupported("open array", "nothing is known of it").target(name)),
        }
    }

    fn set_attribute(&self, _: &str, _: &str, _: &Attribute) -> Result<()> {
        Ok(())
    }

    fn attribute(&self, _: &str, name: &str) -> Result<Attribute> {
        Err(Error::unsupported("read attribute", "attributes are not recorded").target(name))
    }

    fn attributes(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn background(&self) -> BackgroundStats {
        BackgroundStats::default()
    }

    fn write_back(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Durability) -> Result<()> {
        run_native_call()
    }

    fn close(&self) -> Result<()> {
        run_native_call()
    }
}

impl Array for NativeArray {
    fn spec(&self) -> Result<ArraySpec> {
        Ok(self.0.clone())
    }

    fn write(&self, _: &Selection, _: MemoryView<'_>, _: TransferMode) -> Result<()> {
        run_native_call()
    }

    fn read(&self, _: &Selection, _: MemoryViewMut<'_>, _: TransferMode) -> Result<()> {
        run_native_call()
    }

    fn submit_write(&self, _: &Selection, _: Bytes, _: &MemoryLayout, _: TransferMode) -> Result<Request> {
        run_native_call().map(|()| Request::done())
    }

    fn resize(&self, _: &[u64]) -> Result<()> {
        run_native_call()
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
