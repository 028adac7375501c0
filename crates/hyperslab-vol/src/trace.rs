//! Records the program's HDF5 calls as workloads.
//!
//! The layer `trace` records calls to the format below it. Here that is a format without data, whose arrays execute the
//! program's current libhdf5 call, so that the layer times it.

use crate::accel::{ElementType, Plan, Transfer, named_filters, run_native_call, shape_of, stored, with_native_call};
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Text};
use crate::object::Object;
use crate::settings::Settings;
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Bytes, Caps, Communicator, Container, DataModel, Datatype, Dims, Durability, Error,
    Format, Hierarchy, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, StackElement,
    TransferMode, lock,
};
use hyperslab_h5direct::Layout;
use hyperslab_layers::LateNames;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const GET_CREATION_LIST: c_int = 1;
const GET_SPACE: c_int = 2;
const GET_TYPE: c_int = 5;
/// Larger values of attributes are not recorded.
const MOST_ATTRIBUTE_BYTES: u64 = 1 << 20;

/// Number of files that this process has recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

/// A traced file.
#[derive(Debug)]
pub(crate) struct TracedFile {
    container: Arc<dyn Container>,
    next: Arc<Mutex<Option<ArraySpec>>>,
    /// Datasets that had no name when they were made.
    unnamed: AtomicU64,
    names: LateNames,
    /// Names of groups and datasets that a replay has: only these get attributes.
    known: Mutex<BTreeSet<String>>,
    /// Attributes that are not closed: their names may still change.
    attributes: Mutex<Vec<Arc<TracedAttribute>>>,
}

/// A traced dataset.
pub(crate) struct TracedDataset {
    array: Arc<dyn Array>,
    element_type: ElementType,
    /// The name that it has in the recording before the end.
    recorded: String,
    /// Whether it had no name when it was made.
    unnamed: bool,
}

impl TracedFile {
    /// Starts a trace; `None` if it cannot be created, which is reported to the user.
    pub(crate) fn open(host: &'static Host, settings: &Settings, path: &Path, how: OpenMode) -> Option<Self> {
        let number = RECORDED.fetch_add(1, Ordering::Relaxed) + 1;
        let file = settings.trace.display().to_string();
        let file = file.replace("%p", &std::process::id().to_string()).replace("%n", &number.to_string());
        let layer = StackElement { name: "trace".into(), options: vec![("file".to_owned(), file)] };
        let next = Arc::new(Mutex::new(None));
        let below: Arc<dyn Format> = Arc::new(NativeFormat(next.clone()));
        let comm: Arc<dyn Communicator> = Arc::new(Solo);
        let names = LateNames::default();
        let opened =
            hyperslab_layers::traced(&layer, below, names.clone()).and_then(|format| format.open(path, how, &comm));
        match opened {
            Ok(container) => Some(Self {
                container,
                next,
                unnamed: AtomicU64::new(0),
                names,
                known: Mutex::new(BTreeSet::from([String::new()])),
                attributes: Mutex::default(),
            }),
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
        // Programs may write elements first and link the dataset to a name later (h5py: `file[name] = data`).
        let unnamed = created && name.is_empty();
        let recorded = match unnamed {
            true => format!("unnamed-{}", self.unnamed.fetch_add(1, Ordering::Relaxed) + 1),
            false => name.to_owned(),
        };
        let array = match created {
            true => self.container.create(&recorded, &spec),
            false => {
                *lock(&self.next) = Some(spec);
                self.container.array(&recorded)
            }
        };
        let array = array.ok()?;
        self.note(&recorded);
        Some(TracedDataset { array, element_type, recorded, unnamed })
    }

    /// A replay has this object, and the groups that it is in.
    fn note(&self, name: &str) -> bool {
        let mut known = lock(&self.known);
        known.extend(name.match_indices('/').map(|(end, _)| name[..end].to_owned()));
        known.insert(name.to_owned())
    }

    /// A link to the dataset was made: one that had no name has this one now.
    pub(crate) fn linked(&self, dataset: &TracedDataset, name: &str) {
        // A name that was taken before, and freed since, would stand twice in the recording.
        if dataset.unnamed && !name.is_empty() && self.note(name) {
            self.names.name(&dataset.recorded, name);
        }
    }

    /// Records the making of a group.
    pub(crate) fn group(&self, name: &str) {
        if self.note(name) {
            let _ = with_native_call(|| Ok(()), || self.container.create_group(name));
        }
    }

    /// An attribute of an object was made; `None` if a replay has no such object.
    pub(crate) fn attribute(&self, object: &str, name: &str, shape: Dims) -> Option<Arc<TracedAttribute>> {
        lock(&self.known).contains(object).then(|| {
            let value = Mutex::new((name.to_owned(), None));
            let attribute = Arc::new(TracedAttribute { object: object.to_owned(), shape, value });
            lock(&self.attributes).push(attribute.clone());
            attribute
        })
    }

    /// An attribute got another name. h5py writes one that replaces another under a name of its own first.
    pub(crate) fn renamed_attribute(&self, object: &str, from: &str, to: &str) {
        for attribute in lock(&self.attributes).iter().filter(|one| one.object == object) {
            let mut value = lock(&attribute.value);
            if value.0 == from {
                to.clone_into(&mut value.0);
            }
        }
    }

    /// An attribute was closed: its name and value are recorded.
    pub(crate) fn closed_attribute(&self, attribute: &Arc<TracedAttribute>) {
        lock(&self.attributes).retain(|one| !Arc::ptr_eq(one, attribute));
        self.record_attribute(attribute);
    }

    fn record_attribute(&self, attribute: &TracedAttribute) {
        let (name, value) = std::mem::take(&mut *lock(&attribute.value));
        if let Some(value) = value {
            let _ = with_native_call(|| Ok(()), || self.container.set_attribute(&attribute.object, &name, &value));
        }
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
        let open = std::mem::take(&mut *lock(&self.attributes));
        open.iter().for_each(|attribute| self.record_attribute(attribute));
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

    /// The name that it has in the recording before the end.
    pub(crate) fn recorded_name(&self) -> &str {
        &self.recorded
    }

    /// Records a change of its shape, which `call` makes.
    ///
    /// # Safety
    /// The extents are as many as the dataset has dimensions.
    pub(crate) unsafe fn resize(&self, object: &Object, extents: *const u64, mut call: impl FnMut() -> Herr) -> Herr {
        let Some(rank) = self.rank(object).filter(|_| !extents.is_null()) else { return call() };
        // SAFETY: the caller's.
        let shape = unsafe { std::slice::from_raw_parts(extents, rank) }.to_vec();
        let mut status = 0;
        let made = || {
            status = call();
            if status < 0 { Err(Error::unsupported("resize", "libhdf5 refused")) } else { Ok(()) }
        };
        // The status says what has failed.
        let _ = with_native_call(made, || self.array.resize(&shape));
        status
    }

    fn rank(&self, object: &Object) -> Option<usize> {
        let (host, handle) = (object.host, object.handle());
        host.preserving_error_stack(|| {
            let space = handle.identifier(host, GET_SPACE)?;
            // SAFETY: the space is open, and ours.
            unsafe {
                let shape = shape_of(host, space);
                host.H5Sclose(space);
                Some(shape?.0.len())
            }
        })
    }

    /// It is closed.
    pub(crate) fn close(&self) {
        let _ = self.array.close();
    }
}

/// An attribute that is made in a traced file.
#[derive(Debug)]
pub(crate) struct TracedAttribute {
    object: String,
    shape: Dims,
    /// Its name, and what was written.
    value: Mutex<(String, Option<Attribute>)>,
}

impl TracedAttribute {
    /// Keeps what the program writes; text of variable length becomes text of the longest length. Types without an equivalent
    /// are not recorded.
    ///
    /// # Safety
    /// Inside a call of the library; the data are elements of this type in memory, as many as the attribute has.
    pub(crate) unsafe fn written(&self, host: &'static Host, kind: Hid, data: Const) {
        let elements = hyperslab_core::dims::element_count(&self.shape).unwrap_or(u64::MAX);
        if data.is_null() || elements > MOST_ATTRIBUTE_BYTES {
            return;
        }
        // SAFETY: the caller's.
        let value = unsafe {
            match host.H5Tis_variable_str(kind) > 0 {
                true => self.texts(data.cast(), elements as usize),
                false => self.elements(host, kind, data, elements),
            }
        };
        lock(&self.value).1 = value;
    }

    unsafe fn elements(&self, host: &'static Host, kind: Hid, data: Const, elements: u64) -> Option<Attribute> {
        // SAFETY: the type is open.
        let dtype = ElementType::take(host, unsafe { host.H5Tcopy(kind) }).ok()?.dtype;
        let bytes = elements.checked_mul(dtype.size()).filter(|bytes| *bytes <= MOST_ATTRIBUTE_BYTES)?;
        // SAFETY: the caller's: there are so many elements of this size.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes as usize) }.to_vec();
        Some(Attribute { dtype, shape: self.shape.clone(), data })
    }

    unsafe fn texts(&self, pointers: *const Text, elements: usize) -> Option<Attribute> {
        // SAFETY: the caller's: there is a pointer for each element.
        let pointers = unsafe { std::slice::from_raw_parts(pointers, elements) };
        let text = |text: &Text| match text.is_null() {
            true => &[][..],
            // SAFETY: the caller's: what is not null is text that ends in NUL.
            false => unsafe { CStr::from_ptr(*text) }.to_bytes(),
        };
        let texts: Vec<&[u8]> = pointers.iter().map(text).collect();
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0).max(1);
        let bytes = longest.checked_mul(elements).filter(|bytes| *bytes as u64 <= MOST_ATTRIBUTE_BYTES)?;
        let mut data = vec![0; bytes];
        for (slot, text) in data.chunks_exact_mut(longest).zip(texts) {
            slot[..text.len()].copy_from_slice(text);
        }
        Some(Attribute { dtype: Datatype::FixedString(longest as u32), shape: self.shape.clone(), data })
    }
}

/// The extents of an attribute's space; empty for a scalar, `None` for one without elements.
///
/// # Safety
/// Inside a call of the library; the space is open.
pub(crate) unsafe fn attribute_shape(host: &Host, space: Hid) -> Option<Dims> {
    // SAFETY: the caller's.
    unsafe {
        let has_elements = host.H5Sget_select_npoints(space) > 0;
        has_elements.then(|| shape_of(host, space).map_or_else(Dims::new, |(shape, _)| shape))
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
            data: DataModel {
                readable: true,
                resize: true,
                chunks: true,
                compound: true,
                strings: false,
                max_rank: hyperslab_core::MAX_RANK,
                ..DataModel::default()
            },
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
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        match lock(&self.0).take() {
            Some(spec) => Ok(Arc::new(NativeArray(spec))),
            None => Err(Error::unsupported("open array", "nothing is known of it").target(name)),
        }
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

impl Hierarchy for NativeFormat {
    fn arrays(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn create_group(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn create(&self, _: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(NativeArray(spec.clone())))
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
