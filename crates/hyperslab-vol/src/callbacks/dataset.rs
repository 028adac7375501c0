//! Dataset callbacks: transfers may bypass libhdf5.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{
    Attach, Transfer, attach, drain_ranks, ineligible, name, note_metadata_change, publish_dataset, shape_of, transfer,
    write_back_all,
};
use crate::callbacks::operation;
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{DATASET, Object, catch_panics, free, object};
use crate::overrides::Lists;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

const GET_ACCESS_LIST: c_int = 0;
const GET_CREATION_LIST: c_int = 1;
const CHUNKED: c_int = 2;
pub(super) const BY_ITSELF: c_int = 0;
pub(super) const BY_NAME: c_int = 1;
const GET_SPACE: c_int = 2;
const GET_SPACE_STATUS: c_int = 3;
const GET_STORAGE_SIZE: c_int = 4;
const SET_EXTENT: c_int = 0;
const REFRESH: c_int = 2;
const CHUNK_WRITE: c_int = 7;

/// A dataset access list with a chunk cache that is said, where the list of the program leaves that to the file's.
struct AccessList {
    host: &'static Host,
    list: Hid,
    /// Slots, bytes and preemption that the program wants.
    wanted: (usize, usize, f64),
}

impl AccessList {
    /// With the chunk cache that the program wants, or with none; `None` if the file's lists are left as they are.
    unsafe fn new(parent: &Object, given: Hid, keeps: bool) -> Option<Self> {
        let (host, buffers) = (parent.host, parent.file.as_ref()?.buffers?);
        let list = if given == 0 { host.H5Pcreate(host.dataset_access_class()) } else { host.H5Pcopy(given) };
        if list < 0 {
            return None;
        }
        let mut this = Self { host, list, wanted: buffers.chunks };
        let mut bytes = usize::MAX;
        let asked = host.H5Pget(list, c"rdcc_nbytes".as_ptr(), (&raw mut bytes).cast()) >= 0;
        if asked && bytes != usize::MAX {
            let (slots, bytes, w0) = &mut this.wanted;
            host.H5Pget_chunk_cache(list, slots, bytes, w0);
        }
        let (slots, bytes, w0) = this.wanted;
        let set = host.H5Pset_chunk_cache(list, slots, if keeps { bytes } else { 0 }, w0);
        (set >= 0).then_some(this)
    }
}

impl Drop for AccessList {
    fn drop(&mut self) {
        // SAFETY: the list is this one's own; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Pclose(self.list) });
    }
}

/// Wraps a dataset of the connector below, attached to its direct path if it is eligible.
unsafe fn attach_dataset(parent: &Object, under: Ptr, wanted: Option<(usize, usize, f64)>, has_name: bool) -> Object {
    let mut new = parent.sibling(under);
    new.chunk_cache = wanted;
    match parent.host.preserving_error_stack(|| attach(&new, has_name)) {
        Attach::Direct(dataset) => new.dataset = std::sync::Mutex::new(Some(dataset)),
        Attach::Library { why, is_indirect, moves_alone } => {
            (new.fallback_reason, new.is_indirect, new.moves_alone) = (Some(why), is_indirect, moves_alone);
        }
    }
    new
}

/// Transfers ownership to HDF5; starts tracing if the file is traced.
unsafe fn publish(mut object: Object, created: bool) -> Ptr {
    if let Some(trace) = object.file.clone().and_then(|file| file.trace.clone()) {
        let handle = object.handle();
        object.traced =
            object.host.preserving_error_stack(|| trace.dataset(&object, &name(object.host, handle), created));
    }
    object.into_ptr()
}

/// Closes and frees an object that HDF5 never received.
unsafe fn discard(object: Object, transfer: Hid) {
    let host = object.host;
    host.preserving_error_stack(|| {
        host.H5VLdataset_close(object.under, object.connector, transfer, null_mut());
        host.H5Idec_ref(object.connector);
    });
}

/// Whether libhdf5 executes the dataset's transfers and the program wants a chunk cache.
unsafe fn wants_cache(object: &Object, wanted: (usize, usize, f64)) -> bool {
    let handle = object.handle();
    let host = object.host;
    object.fallback_reason.is_some()
        && wanted.1 > 0
        && host.preserving_error_stack(|| {
            handle.identifier(host, GET_CREATION_LIST).is_some_and(|list| {
                let layout = host.H5Pget_layout(list);
                host.H5Pclose(list);
                layout == CHUNKED
            })
        })
}

pub(crate) unsafe extern "C" fn create(
    pointer: Ptr,
    place: Const,
    name: Text,
    link: Hid,
    kind: Hid,
    space: Hid,
    create: Hid,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    catch_panics(|| {
        let parent = object(pointer);
        note_metadata_change(parent);
        let (host, below) = (parent.host, parent.connector);
        let overridden = Lists::of(parent, (place, name), Some(create), access);
        let (create, access) = overridden.as_ref().map_or((create, access), |lists| lists.or(create, access));
        let changes = parent.file.as_ref().is_some_and(|file| file.buffers.is_some() && !file.is_library_only());
        let other = host.preserving_error_stack(|| match changes {
            true => AccessList::new(parent, access, ineligible(host, create, kind).is_some()),
            false => None,
        });
        let list = other.as_ref().map_or(access, |other| other.list);
        let under = host.H5VLdataset_create(
            parent.under,
            place,
            below,
            name,
            link,
            kind,
            space,
            create,
            list,
            transfer,
            request,
        );
        if under.is_null() {
            return null_mut();
        }
        parent.wrap_request(request);
        let made = attach_dataset(parent, under, other.map(|other| other.wanted), !name.is_null());
        host.preserving_error_stack(|| publish_dataset(&made));
        publish(made, true)
    })
}

pub(crate) unsafe extern "C" fn open(
    pointer: Ptr,
    place: Const,
    name: Text,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    catch_panics(|| {
        let parent = object(pointer);
        let (host, below) = (parent.host, parent.connector);
        let overridden = Lists::of(parent, (place, name), None, access);
        let access = overridden.as_ref().map_or(access, |lists| lists.or(0, access).1);
        let other = host.preserving_error_stack(|| AccessList::new(parent, access, false));
        let list = other.as_ref().map_or(access, |other| other.list);
        let under = host.H5VLdataset_open(parent.under, place, below, name, list, transfer, request);
        if under.is_null() {
            return null_mut();
        }
        parent.wrap_request(request);
        let wanted = other.map(|other| other.wanted);
        let found = attach_dataset(parent, under, wanted, true);
        publish(with_cache(parent, found, place, name, access, transfer), false)
    })
}

/// The object of a dataset that was opened without an access list of its own, at a place seen from the parent.
pub(crate) unsafe fn found(parent: &Object, under: Ptr, place: Const, transfer: Hid) -> Ptr {
    let wanted = parent.file.as_ref().and_then(|file| file.buffers).map(|buffers| buffers.chunks);
    let mut found = attach_dataset(parent, under, wanted, true);
    let place = &*place.cast::<Place>();
    if place.how == BY_NAME {
        let itself = Place { kind: place.kind, how: BY_ITSELF, name: std::ptr::null(), _more: [0; 6] };
        found = with_cache(parent, found, (&raw const itself).cast(), place.name, 0, transfer);
    }
    publish(found, false)
}

/// The beginning of a place that HDF5 gives.
#[repr(C)]
pub(super) struct Place {
    pub(super) kind: c_int,
    pub(super) how: c_int,
    pub(super) name: Text,
    _more: [u64; 6],
}

/// A dataset that was opened without a chunk cache, opened again with one if libhdf5 moves its elements.
unsafe fn with_cache(parent: &Object, found: Object, place: Const, name: Text, access: Hid, transfer: Hid) -> Object {
    let host = parent.host;
    let Some(wanted) = found.chunk_cache.filter(|wanted| wants_cache(&found, *wanted)) else { return found };
    let Some(other) = host.preserving_error_stack(|| AccessList::new(parent, access, true)) else { return found };
    let (fallback_reason, is_indirect) = (found.fallback_reason.clone(), found.is_indirect);
    let again = |list| {
        host.preserving_error_stack(|| {
            host.H5VLdataset_open(parent.under, place, parent.connector, name, list, transfer, null_mut())
        })
    };
    // Only without the first handle is the cache made anew; until the second is there the first stays.
    let second = again(access);
    if second.is_null() {
        return found;
    }
    discard(found, transfer);
    let mut object = parent.sibling(second);
    object.host.preserving_error_stack(|| host.H5VLdataset_close(second, parent.connector, transfer, null_mut()));
    object.under = again(other.list);
    if object.under.is_null() {
        object.under = again(access);
    }
    (object.fallback_reason, object.is_indirect, object.chunk_cache) = (fallback_reason, is_indirect, Some(wanted));
    object
}

pub(crate) unsafe extern "C" fn read(
    count: usize,
    pointers: *mut Ptr,
    kinds: *mut Hid,
    memory: *mut Hid,
    files: *mut Hid,
    list: Hid,
    data: *mut Ptr,
    request: Req,
) -> Herr {
    catch_panics(|| {
        if count == 1 {
            let one = Transfer { mem_type_id: *kinds, mem_space_id: *memory, file_space_id: *files, dxpl_id: list };
            return transfer::read(object(*pointers), &one, *data);
        }
        let first = object(*pointers);
        many(
            count,
            pointers,
            &mut |under| {
                first.host.H5VLdataset_read(count, under, first.connector, kinds, memory, files, list, data, request)
            },
            false,
            request,
        )
    })
}

pub(crate) unsafe extern "C" fn write(
    count: usize,
    pointers: *mut Ptr,
    kinds: *mut Hid,
    memory: *mut Hid,
    files: *mut Hid,
    list: Hid,
    data: *mut Const,
    request: Req,
) -> Herr {
    catch_panics(|| {
        if count == 1 {
            let one = Transfer { mem_type_id: *kinds, mem_space_id: *memory, file_space_id: *files, dxpl_id: list };
            return transfer::write(object(*pointers), &one, *data);
        }
        let first = object(*pointers);
        many(
            count,
            pointers,
            &mut |under| {
                first.host.H5VLdataset_write(count, under, first.connector, kinds, memory, files, list, data, request)
            },
            true,
            request,
        )
    })
}

/// Several datasets in one call: libhdf5's own.
unsafe fn many(
    count: usize,
    pointers: *mut Ptr,
    body: &mut dyn FnMut(*mut Ptr) -> Herr,
    writes: bool,
    request: Req,
) -> Herr {
    let objects: Vec<&Object> = (0..count).map(|at| object(*pointers.add(at))).collect();
    let Some(first) = objects.first() else { return body(null_mut()) };
    if write_back_all(first.host) < 0 {
        return -1;
    }
    let mut under: Vec<Ptr> = objects.iter().map(|object| object.under).collect();
    let status = transfer::with_coherent_datasets(&objects, writes, || body(under.as_mut_ptr()));
    first.wrap_request(request);
    if writes { transfer::acknowledge_all(&objects, status) } else { status }
}

/// Arguments that ask for a list.
#[repr(C)]
struct List {
    operation: c_int,
    list: Hid,
}

pub(crate) unsafe extern "C" fn get(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let dataset = object(pointer);
        let asked = operation(arguments);
        if matches!(asked, GET_SPACE_STATUS | GET_STORAGE_SIZE) && write_back_all(dataset.host) < 0 {
            return -1;
        }
        let status = dataset.host.H5VLdataset_get(dataset.under, dataset.connector, arguments, transfer, request);
        dataset.wrap_request(request);
        if let (GET_ACCESS_LIST, Some((slots, bytes, w0)), true) = (asked, dataset.chunk_cache, status >= 0) {
            dataset.host.H5Pset_chunk_cache((*arguments.cast::<List>()).list, slots, bytes, w0);
        }
        status
    })
}

/// Arguments of a change of the shape.
#[repr(C)]
struct Extents {
    operation: c_int,
    extents: *const u64,
}

/// The extents that a dataset is to have, if its elements go another way.
unsafe fn new_extents<'a>(dataset: &Object, arguments: Ptr) -> Option<&'a [u64]> {
    let rank = dataset.dataset().map_or(0, |dataset| dataset.io.direct.shape().len());
    let extents = (*arguments.cast::<Extents>()).extents;
    (rank > 0 && !extents.is_null()).then(|| std::slice::from_raw_parts(extents, rank))
}

/// Whether a change of the shape may free space, according to libhdf5, which says the same to all ranks.
unsafe fn shrinks(dataset: &Object, arguments: Ptr) -> bool {
    let (host, extents) = (dataset.host, (*arguments.cast::<Extents>()).extents);
    let Some(space) = dataset.handle().identifier(host, GET_SPACE) else { return false };
    let shape = shape_of(host, space).map(|(shape, _)| shape);
    host.H5Sclose(space);
    shape.is_some_and(|shape| !extents.is_null() && (0..shape.len()).any(|at| *extents.add(at) < shape[at]))
}

pub(crate) unsafe extern "C" fn specific(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let dataset = object(pointer);
        note_metadata_change(dataset);
        let shape = (operation(arguments) == SET_EXTENT).then(|| new_extents(dataset, arguments)).flatten();
        let stays = shape.is_some_and(|shape| transfer::stays_on_resize(dataset, shape));
        if !stays && write_back_all(dataset.host) < 0 {
            return -1;
        }
        if operation(arguments) == SET_EXTENT && shrinks(dataset, arguments) {
            drain_ranks(dataset, DATASET);
        }
        let (host, below, under) = (dataset.host, dataset.connector, dataset.under);
        let call = || host.H5VLdataset_specific(under, below, arguments, transfer, request);
        let status = match operation(arguments) {
            SET_EXTENT => {
                let status = match &dataset.traced {
                    Some(traced) => traced.resize(dataset, (*arguments.cast::<Extents>()).extents, call),
                    None => transfer::resize(dataset, shape, call),
                };
                publish_dataset(dataset);
                status
            }
            REFRESH => transfer::with_coherent_datasets(&[dataset], true, call),
            _ => call(),
        };
        crate::object::wrap_request(host, below, request);
        status
    })
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr, list: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let dataset = object(pointer);
        if write_back_all(dataset.host) < 0 {
            return -1;
        }
        if let Some(dataset) = dataset.dataset() {
            dataset.io.offset_exposed.store(true, Ordering::Relaxed);
        }
        let (host, below, under) = (dataset.host, dataset.connector, dataset.under);
        let status = transfer::with_coherent_datasets(&[dataset], true, || {
            host.H5VLdataset_optional(under, below, arguments, list, request)
        });
        dataset.wrap_request(request);
        if operation(arguments) == CHUNK_WRITE { transfer::acknowledge_all(&[dataset], status) } else { status }
    })
}

/// An error of what had waited is told by the next flush of the file, or by its close.
pub(crate) unsafe extern "C" fn close(pointer: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let closed = object(pointer);
        if let (Some(dataset), Some(file)) = (closed.take_dataset(), &closed.file) {
            let handle = closed.handle();
            match dataset.close_handle(file, handle) {
                Ok(false) => {}
                Ok(true) => {
                    if let Some(traced) = &closed.traced {
                        traced.close();
                    }
                    free(pointer);
                    return 0;
                }
                // HDF5 would have a dataset that is neither open nor closed.
                Err(error) => file.defer_error(error),
            }
        }
        if let Some(traced) = &closed.traced {
            traced.close();
        }
        let status = closed.host.H5VLdataset_close(closed.under, closed.connector, transfer, request);
        closed.wrap_request(request);
        if status >= 0 {
            free(pointer);
        }
        status
    })
}
