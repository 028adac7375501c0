//! A dataset whose elements go by the data plane.

use super::control::Handle;
use super::elements::Elements;
use super::file::{FileState, Token};
use super::kind::Kind;
use super::suitability::{lists_chunks_wrongly, named_filters, shape_of, stored, unsuitable};
use crate::driver::Guard;
use crate::host::Host;
use crate::host::api::{Const, Hid};
use crate::object::{DATASET, Object};
use hyperslab_core::{Array, ArraySpec, Result};
use hyperslab_plane::{Facts, Layout, Limits, Plane};
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const GET_ACCESS_LIST: c_int = 0;
const GET_CREATION_LIST: c_int = 1;
const GET_SPACE: c_int = 2;
/// The last layout that keeps elements in the file itself.
const CHUNKED: c_int = 2;
const GET_TYPE: c_int = 5;
const GET_NAME: c_int = 1;
const GET_INFO: c_int = 3;
const BASIC: c_uint = 1;
const BY_NAME: u64 = 1;
const MOST_NAME: usize = 4096;
/// Decoded chunks that are kept of one dataset at most.
const MOST_CACHE: u64 = 32 << 20;

/// A dataset. All its handles share one.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) elements: Arc<Elements>,
    pub(crate) kind: Kind,
    token: Token,
    layered: Mutex<Option<Arc<dyn Array>>>,
    /// The program has closed its last handle, and this one waits for chunks that are being coded.
    kept: Mutex<Option<Handle>>,
    /// Whether its name is no longer sure.
    renamed: AtomicBool,
    /// Whether the object may be gone with its last handle: it has no name, or links were changed since it was opened.
    passing: AtomicBool,
    /// Whether elements of it may be waiting in layers, or for others.
    waits: AtomicBool,
    /// Taken from the host's memory for the plane.
    memory: u64,
}

/// What became of a dataset.
pub(crate) enum Taken {
    /// The plane moves its elements.
    Over(Arc<Dataset>),
    /// libhdf5 does.
    Left {
        why: String,
        /// Its elements are in other datasets or files.
        elsewhere: bool,
    },
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn left(why: impl Into<String>) -> Taken {
    Taken::Left { why: why.into(), elsewhere: false }
}

/// A list, space or type of ours.
struct Own<'a>(&'a Object, Hid, unsafe fn(&crate::host::api::Api, Hid) -> c_int);

impl Drop for Own<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open and ours; it ends inside a call of the library.
        unsafe { (self.2)(self.0.host, self.1) };
    }
}

/// The plane of a dataset that was opened, shared with its other handles; or why it has none.
///
/// # Safety
/// Inside a call of the library; the object is an open dataset.
pub(crate) unsafe fn taken(object: &Object) -> Taken {
    let Some(file) = &object.file else { return left("nothing is to be accelerated") };
    let (host, handle) = (object.host, object.handle());
    // SAFETY: the object is an open dataset.
    let Some((number, token)) = (unsafe { identity(object) }) else {
        return Taken::Left { why: "it cannot be identified".into(), elsewhere: true };
    };
    if number != file.number {
        return Taken::Left { why: "it is in another file, found by a link".into(), elsewhere: true };
    }
    let bytes = match (&file.file, file.left()) {
        (Some(bytes), None) => bytes,
        // What it reads may be in a file that is not left.
        (_, why) => return Taken::Left { why: why.unwrap_or_default(), elsewhere: is_elsewhere(object) },
    };
    file.look_again();
    let mut datasets = lock(&file.datasets);
    if let Some(known) = datasets.get(&token) {
        known.add(handle);
        return Taken::Over(known.clone());
    }
    let own = |operation, close| handle.identifier(host, operation).map(|id| Own(object, id, close));
    let lists = (
        own(GET_CREATION_LIST, crate::host::api::Api::H5Pclose),
        own(GET_ACCESS_LIST, crate::host::api::Api::H5Pclose),
        own(GET_SPACE, crate::host::api::Api::H5Sclose),
    );
    let (Some(creation), Some(access), Some(space)) = lists else { return left("it cannot be asked about") };
    let kind = match handle.identifier(host, GET_TYPE).ok_or_else(String::new).and_then(|id| Kind::take(host, id)) {
        Ok(kind) => kind,
        Err(why) => {
            return Taken::Left { why, elsewhere: is_elsewhere(object) };
        }
    };
    // SAFETY: list and type are open.
    if let Some(unsuitable) = unsafe { unsuitable(host, creation.1, kind.id()) } {
        return Taken::Left { why: unsuitable.why, elsewhere: unsuitable.elsewhere };
    }
    // SAFETY: the space is open.
    let Some((shape, most)) = (unsafe { shape_of(host, space.1) }) else { return left("it has no dimensions") };
    // SAFETY: list and type are open.
    let stored = unsafe { stored(host, creation.1, kind.id(), shape.len(), kind.dtype.size() as usize) };
    let Some(stored) = stored else { return left("its creation list cannot be asked about") };
    if let Layout::Chunked(_) = stored.layout {
        let (mut slots, mut cached, mut w0) = (0, 1, 0.0);
        // SAFETY: the list is open, the dataset too.
        unsafe {
            host.H5Pget_chunk_cache(access.1, &raw mut slots, &raw mut cached, &raw mut w0);
            if cached > 0 {
                return left("it is open elsewhere in this process with a chunk cache of libhdf5");
            }
            if lists_chunks_wrongly(host, handle, &most) {
                return left("libhdf5 does not tell where chunks are that grow along another dimension than the first");
            }
        }
    }
    // SAFETY: the object is an open dataset.
    let name = unsafe { name(host, handle) };
    let spec = ArraySpec {
        dtype: kind.dtype.clone(),
        shape: shape.clone(),
        max_shape: Some(most),
        chunk: match &stored.layout {
            Layout::Chunked(chunk) => Some(chunk.clone()),
            Layout::Contiguous => None,
        },
        filters: named_filters(&stored.filters),
        fill_value: stored.fill.clone(),
    };
    let guard = (file.rollback.strong_count() > 0).then(|| Arc::new(Guard::new(file.rollback.clone())));
    let facts = Facts {
        name: name.clone(),
        file: bytes.clone(),
        dtype: kind.dtype.clone(),
        layout: stored.layout,
        filters: stored.filters,
        fill: stored.fill,
        alone: true,
        guard: guard.clone().map(|guard| guard as Arc<dyn hyperslab_plane::WriteGuard>),
    };
    let memory = if spec.filters.is_empty() { 0 } else { host.take_memory(file.settings.memory, MOST_CACHE) };
    let limits = Limits { threads: file.settings.threads, cache: memory };
    let plane = match Plane::new(facts, &shape, limits) {
        Ok(Ok(plane)) => plane,
        Ok(Err(refusal)) => {
            host.give_memory(memory);
            return left(refusal.to_string());
        }
        Err(error) => {
            host.give_memory(memory);
            return left(error.to_string());
        }
    };
    let elements = Arc::new(Elements {
        host,
        name,
        path: file.path.clone(),
        in_log: file.settings.modes.log,
        plane,
        spec,
        kind: kind.id(),
        allocation_fills: stored.allocation_fills,
        handles: Mutex::new(vec![handle]),
        finished: Mutex::default(),
        held: Mutex::default(),
        looked_into: AtomicBool::new(false),
        only_stores: AtomicBool::new(false),
        unsaved: AtomicBool::new(false),
        promised: file.promises(),
        guard,
    });
    host.stats.datasets.fetch_add(1, Ordering::Relaxed);
    let (layered, kept) = (Mutex::default(), Mutex::default());
    let (renamed, waits) = (AtomicBool::new(false), AtomicBool::new(false));
    let passing = AtomicBool::new(elements.name.is_empty());
    let dataset = Arc::new(Dataset { elements, kind, token, layered, kept, renamed, passing, waits, memory });
    datasets.insert(token, dataset.clone());
    Taken::Over(dataset)
}

/// Whether the elements of an open dataset are in other datasets or files, as far as its creation list tells.
fn is_elsewhere(object: &Object) -> bool {
    let host = object.host;
    object.handle().identifier(host, GET_CREATION_LIST).is_none_or(|list| {
        // SAFETY: the list is open, and ours.
        unsafe {
            let elsewhere = host.H5Pget_layout(list) > CHUNKED || host.H5Pget_external_count(list) > 0;
            host.H5Pclose(list);
            elsewhere
        }
    })
}

/// The file's number and the name within it that the library has for an object.
unsafe fn identity(object: &Object) -> Option<(u64, Token)> {
    // SAFETY: the object is open.
    unsafe { info_of(object.host, object.handle(), &itself()) }.map(|info| (info.file, info.token))
}

/// What the library tells of an object.
struct About {
    /// The number of its file.
    file: u64,
    token: Token,
    /// How many links lead to it.
    links: u64,
}

/// What is at a place seen from a dataset.
unsafe fn info_of(host: &Host, dataset: Handle, place: &[u64; 16]) -> Option<About> {
    // As many bytes as `H5O_info2_t` may have, and more.
    let mut info = [0u64; 64];
    #[repr(C)]
    struct Whole {
        operation: c_int,
        arguments: Inner,
    }
    #[repr(C)]
    struct Inner {
        fields: c_uint,
        info: *mut u64,
        _more: [u64; 4],
    }
    let mut get =
        Whole { operation: GET_INFO, arguments: Inner { fields: BASIC, info: info.as_mut_ptr(), _more: [0; 4] } };
    // SAFETY: the object is open, and the arguments are those of the operation.
    let status = unsafe {
        host.H5VLobject_get(
            dataset.under,
            place.as_ptr().cast(),
            dataset.connector,
            (&raw mut get).cast(),
            host.default_transfer(),
            null_mut(),
        )
    };
    if status < 0 {
        return None;
    }
    let mut token = [0; 16];
    token[..8].copy_from_slice(&info[1].to_ne_bytes());
    token[8..].copy_from_slice(&info[2].to_ne_bytes());
    // Behind the token: the kind of object, and the number of links.
    Some(About { file: info[0], token, links: info[3] >> 32 })
}

/// The token of what has this path in the file of a dataset.
///
/// # Safety
/// Inside a call of the library; the dataset is open.
unsafe fn token_of(host: &Host, dataset: Handle, name: &str) -> Option<Token> {
    let path = std::ffi::CString::new(format!("/{name}")).ok()?;
    let mut place = itself();
    // By its name, which the path and an access list follow.
    place[0] |= BY_NAME << 32;
    place[1] = path.as_ptr() as u64;
    // SAFETY: the object is open, and the path outlives the call.
    unsafe { info_of(host, dataset, &place) }.map(|info| info.token)
}

/// Whether nothing in the file leads to an open dataset. Inside a call of the library.
pub(super) fn is_unlinked(host: &Host, dataset: Handle) -> bool {
    // SAFETY: the dataset is open.
    host.keeping_errors(|| unsafe { info_of(host, dataset, &itself()) }).is_some_and(|info| info.links == 0)
}

/// A place that is the dataset itself, as `H5VL_loc_params_t` says it.
fn itself() -> [u64; 16] {
    let mut place = [0; 16];
    // The kind of object, and below it "by itself", which is 0.
    place[0] = DATASET as u64;
    place
}

/// The path of a dataset within its file, without the first slash; empty if it has none.
///
/// # Safety
/// Inside a call of the library; the dataset is open.
pub(crate) unsafe fn name(host: &Host, dataset: Handle) -> String {
    #[repr(C)]
    struct Whole {
        operation: c_int,
        arguments: Inner,
    }
    #[repr(C)]
    struct Inner {
        room: usize,
        text: *mut u8,
        length: *mut usize,
        _more: [u64; 4],
    }
    let (mut text, mut length) = (vec![0u8; MOST_NAME], 0usize);
    let inner = Inner { room: MOST_NAME, text: text.as_mut_ptr(), length: &raw mut length, _more: [0; 4] };
    let mut get = Whole { operation: GET_NAME, arguments: inner };
    let place = itself();
    // SAFETY: the object is open, the arguments are those of the operation, and the text has the room stated.
    let status = unsafe {
        host.H5VLobject_get(
            dataset.under,
            place.as_ptr().cast::<u8>() as Const,
            dataset.connector,
            (&raw mut get).cast(),
            host.default_transfer(),
            null_mut(),
        )
    };
    if status < 0 || length == 0 || length >= MOST_NAME {
        return String::new();
    }
    // SAFETY: the library ends it with NUL.
    unsafe { crate::host::text(text.as_ptr().cast()) }.trim_start_matches('/').to_owned()
}

impl Dataset {
    fn add(&self, handle: Handle) {
        lock(&self.elements.handles).push(handle);
    }

    /// Whether the program has it open.
    pub(crate) fn is_open(&self) -> bool {
        !lock(&self.elements.handles).is_empty()
    }

    pub(crate) fn handle(&self) -> Option<Handle> {
        lock(&self.elements.handles).last().copied()
    }

    /// Its elements seen through the layers of the file; `None` if they go straight to the plane.
    pub(crate) fn layered(&self, file: &FileState) -> Result<Option<Arc<dyn Array>>> {
        let Some(layers) = file.layers()? else { return Ok(None) };
        // A recovery needs a name, and the same type.
        if self.renamed.load(Ordering::Relaxed) && self.has_its_name() {
            self.renamed.store(false, Ordering::Relaxed);
        }
        let named = !self.elements.name.is_empty() && !self.renamed.load(Ordering::Relaxed);
        if !named || (file.settings.modes.log && !(self.kind.recoverable && self.stays_readable(file))) {
            return Ok(None);
        }
        let mut layered = lock(&self.layered);
        if layered.is_none() {
            *layered = Some(layers.array(&self.elements, file.objects.number(self.token))?);
        }
        self.waits.store(true, Ordering::Relaxed);
        Ok(layered.clone())
    }

    /// Whether a crash leaves what was in it before. libhdf5 may put a filtered chunk of another size where the old one was, and
    /// say so in the file only later; no log of writes mends that, but a rollback journal does.
    fn stays_readable(&self, file: &FileState) -> bool {
        self.elements.spec.filters.is_empty() || file.rolls_back()
    }

    /// Whether nothing in the file leads to it.
    pub(crate) fn is_unlinked(&self) -> bool {
        if !self.passing.load(Ordering::Relaxed) {
            return false;
        }
        self.handle().is_some_and(|handle| is_unlinked(self.elements.host, handle))
    }

    /// Whether it can still be found by the name that layers know.
    fn has_its_name(&self) -> bool {
        let host = self.elements.host;
        // SAFETY: inside a call of the library; the handle is open.
        let found = |handle| host.keeping_errors(|| unsafe { token_of(host, handle, &self.elements.name) });
        self.handle().and_then(found) == Some(self.token)
    }

    /// Its name may be another's, or it may be gone with its last handle. Nothing may be waiting.
    pub(crate) fn forget_name(&self) {
        self.renamed.store(true, Ordering::Relaxed);
        self.passing.store(true, Ordering::Relaxed);
    }

    /// What layers keep of it is no longer so. Nothing may be waiting.
    pub(crate) fn forget_layers(&self) {
        if let Some(array) = lock(&self.layered).take() {
            let _ = array.close();
        }
    }

    /// A handle is about to be closed below. With the last one goes what needs libhdf5; `true`: it is closed when that is
    /// done, and not now.
    pub(crate) fn close_handle(&self, file: &FileState, handle: Handle) -> Result<bool> {
        let mut result = Ok(());
        let last = lock(&self.elements.handles).len() == 1;
        if last && self.passing.load(Ordering::Relaxed) {
            // Nothing may be written to what another object may have next.
            let array = lock(&self.layered).clone();
            result = array.map_or(Ok(()), |array| array.write_back()).and(self.elements.flush());
            self.waits.store(false, Ordering::Relaxed);
        }
        if last && !self.passing.load(Ordering::Relaxed) && !file.is_left() && !self.elements.plane.is_independent() {
            if lock(&self.layered).is_some() && file.settings.modes.copies() && !file.is_inherited() {
                *lock(&self.kept) = Some(handle);
                // SAFETY: inside a call of the library; the connector is that of an open dataset.
                unsafe { self.elements.host.H5Iinc_ref(handle.connector) };
                return file.bound_closed().map(|()| true);
            }
            let array = lock(&self.layered).clone();
            let settled = array.map_or(Ok(()), |array| array.write_back());
            let flushed = self.elements.flush();
            if let Err(error) = &flushed {
                self.elements.note_unwritten(error);
            }
            result = settled.and(flushed);
        }
        let mut handles = lock(&self.elements.handles);
        if let Some(at) = handles.iter().position(|known| *known == handle) {
            handles.swap_remove(at);
        }
        let closed = handles.is_empty();
        drop(handles);
        if closed {
            // The next handle may bring the rest.
            if self.elements.holds() {
                self.waits.store(true, Ordering::Relaxed);
            }
            let array = lock(&self.layered).take();
            if let Some(array) = &array {
                let _ = array.close();
            }
            // What waits in layers must be found by the next handle, under whatever name that opens it.
            if !self.waits.load(Ordering::Relaxed) {
                lock(&file.datasets).remove(&self.token);
            } else {
                result = result.and(file.bound_closed());
            }
        }
        result.map(|()| false)
    }

    /// Closes what the program has closed. Nothing may be waiting.
    pub(crate) fn close_kept(&self) -> Result<()> {
        let Some(handle) = lock(&self.kept).take() else { return Ok(()) };
        lock(&self.elements.handles).retain(|known| *known != handle);
        if let Some(array) = lock(&self.layered).take_if(|_| !self.is_open()) {
            let _ = array.close();
        }
        let host = self.elements.host;
        // SAFETY: inside a call of the library; the handle is open, and its reference to the connector ours.
        let status = unsafe {
            // When HDF5 closes down, it may be too late for that: everything is in the file then.
            let close = || host.H5VLdataset_close(handle.under, handle.connector, host.default_transfer(), null_mut());
            let status = host.quietly(close);
            host.keeping_errors(|| host.H5Idec_ref(handle.connector));
            status
        };
        if status < 0 { Err(host.failed("close dataset")) } else { Ok(()) }
    }

    /// Whether elements of it may be waiting in layers.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// Nothing of it waits in layers.
    pub(crate) fn settled(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Whether the program has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        let handles = lock(&self.elements.handles).len();
        handles == 0 || (handles == 1 && lock(&self.kept).is_some())
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        self.elements.host.give_memory(self.memory);
    }
}
