//! Open datasets that use the direct path.

use super::dataset_io::DatasetIo;
use super::element_type::ElementType;
use super::eligibility::{ineligible, lists_chunks_wrongly, named_filters, shape_of, stored};
use super::file::{FileState, ObjectToken};
use super::metadata_backend::Handle;
use crate::driver::Guard;
use crate::host::Host;
use crate::host::api::{Const, Hid};
use crate::object::{DATASET, Object};
use hyperslab_core::{Array, ArraySpec, Result, lock};
use hyperslab_h5direct::{DatasetInfo, DirectDataset, Layout, Limits};
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const GET_ACCESS_LIST: c_int = 0;
const GET_CREATION_LIST: c_int = 1;
const GET_SPACE: c_int = 2;
/// `H5D_CHUNKED`; higher layouts keep elements outside the dataset.
const CHUNKED: c_int = 2;
const GET_TYPE: c_int = 5;
const GET_NAME: c_int = 1;
const GET_INFO: c_int = 3;
const BASIC: c_uint = 1;
const BY_NAME: u64 = 1;
const MOST_NAME: usize = 4096;
/// Limit of one dataset's chunk cache, in bytes.
const MOST_CACHE: u64 = 32 << 20;

/// A dataset with direct path, shared by all its handles.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) io: Arc<DatasetIo>,
    pub(crate) element_type: ElementType,
    token: ObjectToken,
    layered: Mutex<Option<Arc<dyn Array>>>,
    /// The program's last handle, closed by the program; kept open until chunks encoded in the background are stored.
    deferred_close: Mutex<Option<Handle>>,
    /// Whether its name may have changed.
    renamed: AtomicBool,
    /// Whether the object may be deleted with its last handle: it has no name, or links changed since it was opened.
    may_vanish: AtomicBool,
    /// Whether layers or the field buffer may hold writes to it.
    has_pending: AtomicBool,
    /// Bytes of the host's memory budget reserved for its chunk cache.
    memory: u64,
    /// When it was closed, counted in such events, if it is only kept for the next time; 0 if not.
    resting_since: AtomicU64,
}

/// Counts datasets that were closed and kept.
static RESTED: AtomicU64 = AtomicU64::new(0);

/// Result of [`attach`].
pub(crate) enum Attach {
    /// The dataset uses the direct path.
    Direct(Arc<Dataset>),
    /// libhdf5 transfers its elements.
    Library {
        why: String,
        /// Whether its elements are in other datasets or files.
        is_indirect: bool,
        /// Whether this rank writes its elements by itself in collective writes, as the others do.
        moves_alone: bool,
    },
}

fn indirect(why: impl Into<String>, is_indirect: bool) -> Attach {
    Attach::Library { why: why.into(), is_indirect, moves_alone: false }
}

fn library(why: impl Into<String>) -> Attach {
    indirect(why, false)
}

/// An owned identifier, closed by the function given.
struct Own<'a>(&'a Object, Hid, unsafe fn(&crate::host::api::Api, Hid) -> c_int);

impl Drop for Own<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open and ours; it ends inside a call of the library.
        unsafe { (self.2)(self.0.host, self.1) };
    }
}

/// Finds or creates the direct path of a dataset that was opened, or the reason why it has none. libhdf5 searches the whole
/// file for the name of an object that has none: `has_name` avoids that.
///
/// # Safety
/// Inside a call of the library; the object is an open dataset.
pub(crate) unsafe fn attach(object: &Object, has_name: bool) -> Attach {
    let Some(file) = &object.file else { return library("nothing is to be accelerated") };
    let (host, handle) = (object.host, object.handle());
    // SAFETY: the object is an open dataset.
    let Some((number, token)) = (unsafe { identity(object) }) else {
        return indirect("it cannot be identified", true);
    };
    if number != file.number {
        return indirect("it is in another file, found by a link", true);
    }
    let bytes = match (&file.file, file.fallback_reason()) {
        (Some(bytes), None) => Some(bytes),
        // Its datasets are known all the same: other ranks write them alone.
        (None, _) if file.moves_alone() => None,
        // Its elements may be in a file that is accelerated.
        (_, why) => return indirect(why.unwrap_or_default(), is_indirect(object)),
    };
    file.revalidate();
    let mut datasets = lock(&file.datasets);
    if let Some(known) = datasets.get(&token) {
        known.add(handle);
        return Attach::Direct(known.clone());
    }
    let own = |operation, close| handle.identifier(host, operation).map(|id| Own(object, id, close));
    let lists = (
        own(GET_CREATION_LIST, crate::host::api::Api::H5Pclose),
        own(GET_ACCESS_LIST, crate::host::api::Api::H5Pclose),
        own(GET_SPACE, crate::host::api::Api::H5Sclose),
    );
    let (Some(creation), Some(access), Some(space)) = lists else { return library("it cannot be asked about") };
    let element_type =
        match handle.identifier(host, GET_TYPE).ok_or_else(String::new).and_then(|id| ElementType::take(host, id)) {
            Ok(element_type) => element_type,
            Err(why) => {
                return indirect(why, is_indirect(object));
            }
        };
    // SAFETY: list and type are open.
    if let Some(ineligible) = unsafe { ineligible(host, creation.1, element_type.id()) } {
        return indirect(ineligible.why, ineligible.is_indirect);
    }
    // SAFETY: the space is open.
    let Some((shape, most)) = (unsafe { shape_of(host, space.1) }) else { return library("it has no dimensions") };
    // SAFETY: list and type are open.
    let stored =
        unsafe { stored(host, creation.1, element_type.id(), shape.len(), element_type.dtype.size() as usize) };
    let Some(stored) = stored else { return library("its creation list cannot be asked about") };
    if let Layout::Chunked(_) = stored.layout {
        let (mut slots, mut cached, mut w0) = (0, 1, 0.0);
        if file.parallel.is_some_and(|parallel| parallel.reads_metadata_together) {
            return library("ranks read metadata only together, and so none looks for chunks by itself");
        }
        if file.is_shared() && !stored.filters.is_empty() {
            return library("ranks of an MPI program write its compressed chunks together");
        }
        // SAFETY: the list is open, the dataset too.
        unsafe {
            host.H5Pget_chunk_cache(access.1, &raw mut slots, &raw mut cached, &raw mut w0);
            if cached > 0 && file.parallel.is_none() {
                return library("it is open elsewhere in this process with a chunk cache of libhdf5");
            }
            if lists_chunks_wrongly(host, handle, &most) {
                return library(
                    "libhdf5 does not tell where chunks are that grow along another dimension than the first",
                );
            }
        }
    }
    // SAFETY: the object is an open dataset.
    let name = if has_name { unsafe { name(host, handle) } } else { String::new() };
    let spec = ArraySpec {
        dtype: element_type.dtype.clone(),
        shape: shape.clone(),
        max_shape: Some(most),
        chunk: match &stored.layout {
            Layout::Chunked(chunk) => Some(chunk.clone()),
            Layout::Contiguous => None,
        },
        filters: named_filters(&stored.filters),
        fill_value: stored.fill.clone(),
        dims: None,
    };
    let Some(bytes) = bytes else {
        return Attach::Library {
            why: file.fallback_reason().unwrap_or_default(),
            is_indirect: false,
            moves_alone: true,
        };
    };
    let guard = (file.rollback.strong_count() > 0).then(|| Arc::new(Guard::new(file.rollback.clone())));
    let info = DatasetInfo {
        name: name.clone(),
        file: bytes.clone(),
        dtype: element_type.dtype.clone(),
        layout: stored.layout,
        filters: stored.filters,
        fill: stored.fill,
        single_writer: !file.is_shared(),
        grows_unallocated: stored.grows_unallocated,
        guard: guard.clone().map(|guard| guard as Arc<dyn hyperslab_h5direct::WriteGuard>),
    };
    if !spec.filters.is_empty() && host.is_memory_short(file.settings.memory) {
        FileState::bound_resting(&mut datasets, true);
    }
    let memory = if spec.filters.is_empty() { 0 } else { host.take_memory(file.settings.memory, MOST_CACHE) };
    let limits = Limits { threads: file.settings.threads, cache: memory };
    let direct = match DirectDataset::new(info, &shape, limits) {
        Ok(Ok(direct)) => direct,
        Ok(Err(reason)) => {
            host.give_memory(memory);
            return library(reason.to_string());
        }
        Err(error) => {
            host.give_memory(memory);
            return library(error.to_string());
        }
    };
    let io = Arc::new(DatasetIo {
        host,
        name,
        path: file.path.clone(),
        in_log: file.settings.modes.log,
        direct,
        spec,
        type_id: element_type.id(),
        allocation_fills: stored.allocation_fills,
        handles: Mutex::new(vec![handle]),
        encoded_chunks: Mutex::default(),
        only_chunk_refused: AtomicBool::new(false),
        chunks_refused: AtomicBool::new(false),
        field_buffer: Mutex::default(),
        offset_exposed: AtomicBool::new(false),
        needs_no_reads: AtomicBool::new(false),
        metadata_dirty: AtomicBool::new(false),
        survives_kill: file.survives_kill(),
        guard,
    });
    host.stats.datasets.fetch_add(1, Ordering::Relaxed);
    host.direct_datasets.fetch_add(1, Ordering::Relaxed);
    let (layered, deferred_close) = (Mutex::default(), Mutex::default());
    let (renamed, has_pending) = (AtomicBool::new(false), AtomicBool::new(false));
    let may_vanish = AtomicBool::new(io.name.is_empty());
    let dataset = Arc::new(Dataset {
        io,
        element_type,
        token,
        layered,
        deferred_close,
        renamed,
        may_vanish,
        has_pending,
        memory,
        resting_since: AtomicU64::new(0),
    });
    datasets.insert(token, dataset.clone());
    Attach::Direct(dataset)
}

/// Whether the elements of an open dataset are in other datasets or files, according to its creation list.
fn is_indirect(object: &Object) -> bool {
    let host = object.host;
    object.handle().identifier(host, GET_CREATION_LIST).is_none_or(|list| {
        // SAFETY: the list is open, and ours.
        unsafe {
            let is_indirect = host.H5Pget_layout(list) > CHUNKED || host.H5Pget_external_count(list) > 0;
            host.H5Pclose(list);
            is_indirect
        }
    })
}

/// File number and object token of an object.
pub(super) unsafe fn identity(object: &Object) -> Option<(u64, ObjectToken)> {
    // SAFETY: the object is open.
    unsafe { info_of(object.host, object.handle(), &itself()) }.map(|info| (info.file, info.token))
}

/// The token of an open dataset of the connector below.
///
/// # Safety
/// Inside a call of the library; the dataset is open.
pub(super) unsafe fn token_of_object(host: &Host, dataset: Handle) -> Option<ObjectToken> {
    // SAFETY: the caller's.
    unsafe { info_of(host, dataset, &itself()) }.map(|info| info.token)
}

/// Object information of libhdf5.
struct ObjectInfo {
    /// File number.
    file: u64,
    token: ObjectToken,
    /// Number of hard links.
    links: u64,
}

/// Information of the object at a location relative to a dataset.
unsafe fn info_of(host: &Host, dataset: Handle, place: &[u64; 16]) -> Option<ObjectInfo> {
    // Larger than `H5O_info2_t`.
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
    // After the token: object type (lower half) and reference count (upper half).
    Some(ObjectInfo { file: info[0], token, links: info[3] >> 32 })
}

/// The token of the object with this path in a dataset's file.
///
/// # Safety
/// Inside a call of the library; the dataset is open.
unsafe fn token_of(host: &Host, dataset: Handle, name: &str) -> Option<ObjectToken> {
    let path = std::ffi::CString::new(format!("/{name}")).ok()?;
    let mut place = itself();
    // By its name, which the path and an access list follow.
    place[0] |= BY_NAME << 32;
    place[1] = path.as_ptr() as u64;
    // SAFETY: the object is open, and the path outlives the call.
    unsafe { info_of(host, dataset, &place) }.map(|info| info.token)
}

/// Whether no link leads to an open dataset. Inside a callback.
pub(super) fn is_unlinked(host: &Host, dataset: Handle) -> bool {
    // SAFETY: the dataset is open.
    host.preserving_error_stack(|| unsafe { info_of(host, dataset, &itself()) }).is_some_and(|info| info.links == 0)
}

/// `H5VL_loc_params_t` of the object itself.
fn itself() -> [u64; 16] {
    let mut place = [0; 16];
    // The kind of object, and below it "by itself", which is 0.
    place[0] = DATASET as u64;
    place
}

/// The path of a dataset without the leading slash; empty if it has none.
///
/// # Safety
/// Inside a call of the library; the dataset is open.
pub(crate) unsafe fn name(host: &Host, dataset: Handle) -> String {
    // SAFETY: the caller's.
    unsafe { object_name(host, dataset, DATASET) }.unwrap_or_default()
}

/// The path of an object of a kind without the leading slash; `None` if it has none.
///
/// # Safety
/// Inside a call of the library; the object is open.
pub(crate) unsafe fn object_name(host: &Host, dataset: Handle, kind: c_int) -> Option<String> {
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
    let mut place = itself();
    place[0] = kind as u64;
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
        return None;
    }
    // SAFETY: the library ends it with NUL.
    Some(unsafe { crate::host::text(text.as_ptr().cast()) }.trim_start_matches('/').to_owned())
}

impl Dataset {
    fn add(&self, handle: Handle) {
        self.resting_since.store(0, Ordering::Relaxed);
        lock(&self.io.handles).push(handle);
    }

    /// When it was closed, if it is only kept for the next time: nothing of it waits.
    pub(super) fn resting_since(&self) -> Option<u64> {
        Some(self.resting_since.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    pub(super) fn rests(&self) -> bool {
        self.resting_since().is_some()
    }

    /// Whether what is known of it stays true while it is closed.
    fn may_rest(&self, file: &FileState) -> bool {
        file.keeps_closed_datasets()
            && !self.may_vanish.load(Ordering::Relaxed)
            && !self.renamed.load(Ordering::Relaxed)
            && !self.io.has_buffered_fields()
            && self.element_type.is_transient()
    }

    /// Whether the program has it open.
    pub(crate) fn is_open(&self) -> bool {
        !lock(&self.io.handles).is_empty()
    }

    pub(crate) fn handle(&self) -> Option<Handle> {
        lock(&self.io.handles).last().copied()
    }

    /// Its array on top of the file's layers; `None` if transfers use the direct path immediately.
    pub(crate) fn layered(&self, file: &FileState) -> Result<Option<Arc<dyn Array>>> {
        let Some(layers) = file.layers()? else { return Ok(None) };
        // A recovery finds the dataset by its name, and needs the same type.
        if self.renamed.load(Ordering::Relaxed) && self.has_its_name() {
            self.renamed.store(false, Ordering::Relaxed);
        }
        let named = !self.io.name.is_empty() && !self.renamed.load(Ordering::Relaxed);
        if !named || (file.settings.modes.log && !(self.element_type.recoverable && self.stays_readable(file))) {
            return Ok(None);
        }
        let mut layered = lock(&self.layered);
        if layered.is_none() {
            *layered = Some(layers.array(&self.io, file.objects.number(self.token))?);
        }
        self.has_pending.store(true, Ordering::Relaxed);
        Ok(layered.clone())
    }

    /// Whether a crash preserves its previous content. libhdf5 may overwrite a filtered chunk by one of another size
    /// before it updates the metadata; a redo log cannot repair that, but a rollback journal can.
    fn stays_readable(&self, file: &FileState) -> bool {
        self.io.spec.filters.is_empty() || file.rolls_back()
    }

    /// Whether no link leads to it.
    pub(crate) fn is_unlinked(&self) -> bool {
        if !self.may_vanish.load(Ordering::Relaxed) {
            return false;
        }
        self.handle().is_some_and(|handle| is_unlinked(self.io.host, handle))
    }

    /// Whether the name that layers know still leads to it.
    fn has_its_name(&self) -> bool {
        let host = self.io.host;
        // SAFETY: inside a call of the library; the handle is open.
        let found = |handle| host.preserving_error_stack(|| unsafe { token_of(host, handle, &self.io.name) });
        self.handle().and_then(found) == Some(self.token)
    }

    /// Records that its name may have changed, and that it may be deleted with its last handle. Requires that nothing
    /// is buffered.
    pub(crate) fn mark_renamed(&self) {
        self.renamed.store(true, Ordering::Relaxed);
        self.may_vanish.store(true, Ordering::Relaxed);
    }

    /// Drops what layers cache of it. Requires that nothing is buffered.
    pub(crate) fn drop_layers(&self) {
        if let Some(array) = lock(&self.layered).take() {
            let _ = array.close();
        }
    }

    /// Prepares the close of a handle: before the last one, whatever needs libhdf5 is written back. `true`: the close
    /// is deferred until chunks encoded in the background are stored.
    pub(crate) fn close_handle(&self, file: &FileState, handle: Handle) -> Result<bool> {
        file.complete_reads();
        let mut result = Ok(());
        let last = lock(&self.io.handles).len() == 1;
        if last && self.may_vanish.load(Ordering::Relaxed) {
            // Its space may be reused by another object, so nothing may be written later.
            let array = lock(&self.layered).clone();
            result = array.map_or(Ok(()), |array| array.write_back()).and(self.io.flush());
            self.has_pending.store(false, Ordering::Relaxed);
        }
        if last
            && !self.may_vanish.load(Ordering::Relaxed)
            && !file.is_library_only()
            && !self.io.direct.has_full_index()
        {
            if lock(&self.layered).is_some() && file.settings.modes.copies() && !file.is_inherited() {
                *lock(&self.deferred_close) = Some(handle);
                // SAFETY: inside a call of the library; the connector is that of an open dataset.
                unsafe { self.io.host.H5Iinc_ref(handle.connector) };
                return file.limit_deferred_closes().map(|()| true);
            }
            let array = lock(&self.layered).clone();
            let written_back = array.map_or(Ok(()), |array| array.write_back());
            let flushed = self.io.flush();
            if let Err(error) = &flushed {
                self.io.note_unwritten(error);
            }
            result = written_back.and(flushed);
        }
        let mut handles = lock(&self.io.handles);
        if let Some(at) = handles.iter().position(|known| *known == handle) {
            handles.swap_remove(at);
        }
        let closed = handles.is_empty();
        drop(handles);
        if closed {
            // The next handle may write the missing fields.
            if self.io.has_buffered_fields() {
                self.has_pending.store(true, Ordering::Relaxed);
            }
            let array = lock(&self.layered).take();
            if let Some(array) = &array {
                let _ = array.close();
            }
            // Data buffered in layers must be visible to the next handle, whatever name opens it.
            if !self.has_pending.load(Ordering::Relaxed) {
                let mut datasets = lock(&file.datasets);
                if result.is_ok() && self.may_rest(file) && datasets.contains_key(&self.token) {
                    self.resting_since.store(RESTED.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    FileState::bound_resting(&mut datasets, false);
                } else {
                    datasets.remove(&self.token);
                }
            } else {
                result = result.and(file.limit_deferred_closes());
            }
        }
        result.map(|()| false)
    }

    /// Executes a deferred close. Requires that nothing is buffered.
    pub(crate) fn run_deferred_close(&self) -> Result<()> {
        let Some(handle) = lock(&self.deferred_close).take() else { return Ok(()) };
        lock(&self.io.handles).retain(|known| *known != handle);
        if let Some(array) = lock(&self.layered).take_if(|_| !self.is_open()) {
            let _ = array.close();
        }
        let host = self.io.host;
        // SAFETY: inside a call of the library; the handle is open, and its reference to the connector ours.
        let status = unsafe {
            // May fail while HDF5 shuts down, which is harmless: everything is in the file.
            let close = || host.H5VLdataset_close(handle.under, handle.connector, host.default_transfer(), null_mut());
            let status = host.quietly(close);
            host.preserving_error_stack(|| host.H5Idec_ref(handle.connector));
            status
        };
        if status < 0 { Err(host.failed("close dataset")) } else { Ok(()) }
    }

    /// Whether layers or the field buffer may hold writes to it.
    pub(crate) fn has_pending(&self) -> bool {
        self.has_pending.load(Ordering::Relaxed)
    }

    /// Records that nothing of it is buffered.
    pub(crate) fn mark_clean(&self) {
        self.has_pending.store(false, Ordering::Relaxed);
    }

    /// Whether the program has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        let handles = lock(&self.io.handles).len();
        handles == 0 || (handles == 1 && lock(&self.deferred_close).is_some())
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        self.io.host.give_memory(self.memory);
        self.io.host.direct_datasets.fetch_sub(1, Ordering::Relaxed);
    }
}
