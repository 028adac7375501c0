//! Dataset callbacks: transfers may bypass libhdf5.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{
    Attachment, Transfer, Undecided, decide, decide_if_known, drain_ranks, expose_offset, ineligible, name,
    note_metadata_change, publish_dataset, shape_of, transfer, write_back_all,
};
use crate::callbacks::operation;
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{DATASET, Object, catch_panics, free, object};
use crate::overrides::Lists;
use std::ffi::c_int;
use std::ptr::null_mut;

const GET_ACCESS_LIST: c_int = 0;
const GET_CREATION_LIST: c_int = 1;
const COMPACT: c_int = 0;
const CHUNKED: c_int = 2;
pub(crate) const BY_ITSELF: c_int = 0;
pub(crate) const BY_NAME: c_int = 1;
const GET_SPACE: c_int = 2;
const GET_SPACE_STATUS: c_int = 3;
const GET_STORAGE_SIZE: c_int = 4;
const SET_EXTENT: c_int = 0;
const REFRESH: c_int = 2;
const CHUNK_WRITE: c_int = 7;

/// A chunk cache: slots, bytes and preemption.
type ChunkCache = (usize, usize, f64);

/// A dataset access list with a chunk cache that is said.
pub(crate) struct AccessList {
    host: &'static Host,
    pub(crate) list: Hid,
}

impl AccessList {
    /// A copy of the list given with this chunk cache.
    pub(crate) unsafe fn with(host: &'static Host, given: Hid, cache: ChunkCache) -> Option<Self> {
        let list = if given == 0 { host.H5Pcreate(host.dataset_access_class()) } else { host.H5Pcopy(given) };
        if list < 0 {
            return None;
        }
        let this = Self { host, list };
        let (slots, bytes, w0) = cache;
        (host.H5Pset_chunk_cache(list, slots, bytes, w0) >= 0).then_some(this)
    }

    /// The chunk cache that the program wants by the list given or by the file's; `None` if those are left as they are.
    /// And a list with no cache, if the one given has one.
    unsafe fn without_cache(parent: &Object, given: Hid) -> (Option<ChunkCache>, Option<Self>) {
        let Some(buffers) = parent.file.as_ref().and_then(|file| file.buffers) else { return (None, None) };
        let (host, mut own) = (parent.host, usize::MAX);
        if given == 0 || host.H5Pget(given, c"rdcc_nbytes".as_ptr(), (&raw mut own).cast()) < 0 || own == usize::MAX {
            return (Some(buffers.chunks), None);
        }
        let (mut slots, mut bytes, mut w0) = buffers.chunks;
        host.H5Pget_chunk_cache(given, &raw mut slots, &raw mut bytes, &raw mut w0);
        (Some((slots, bytes, w0)), Self::with(host, given, (slots, 0, w0)))
    }
}

impl Drop for AccessList {
    fn drop(&mut self) {
        // SAFETY: the list is this one's own; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Pclose(self.list) });
    }
}

/// What is known of a dataset when it is opened.
struct Opened {
    wanted: Option<ChunkCache>,
    has_name: bool,
    /// Whether its elements are certainly in its own file.
    is_own: bool,
}

/// Wraps a dataset of the connector below. Who transfers its elements is decided later, except where all ranks or a recording
/// must know.
unsafe fn opened(parent: &Object, under: Ptr, opened: &Opened) -> Object {
    let mut new = parent.sibling(under);
    new.chunk_cache = opened.wanted;
    if let Some(file) = &parent.file {
        file.revalidate();
        let undecided = Undecided::new(file, opened.has_name, opened.is_own);
        new.set_attachment(Attachment::Undecided(undecided));
        if file.parallel.is_some() || file.trace.is_some() {
            decide(&new);
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

/// Whether the dataset is chunked and the program wants a chunk cache.
pub(crate) unsafe fn wants_cache(object: &Object, wanted: ChunkCache) -> bool {
    let host = object.host;
    wanted.1 > 0
        && object.handle().identifier(host, GET_CREATION_LIST).is_some_and(|list| {
            let layout = host.H5Pget_layout(list);
            host.H5Pclose(list);
            layout == CHUNKED
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
        let layout = host.H5Pget_layout(create);
        let changes = layout == CHUNKED
            && parent.file.as_ref().is_some_and(|file| file.buffers.is_some() && !file.is_library_only());
        let (wanted, other) = match changes {
            true => host.preserving_error_stack(|| {
                let (wanted, without) = AccessList::without_cache(parent, access);
                match wanted.filter(|_| ineligible(host, create, kind).is_some()) {
                    Some(kept) => (None, AccessList::with(host, access, kept)),
                    None => (wanted, without),
                }
            }),
            false => (None, None),
        };
        let list = other.as_ref().map_or(access, |other| other.list);
        let under = host.H5VLdataset_create(
            parent.under(),
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
        let is_own = (COMPACT..=CHUNKED).contains(&layout) && host.H5Pget_external_count(create) == 0;
        let made = opened(parent, under, &Opened { wanted, has_name: !name.is_null(), is_own });
        if parent.file.as_ref().is_some_and(|file| file.settings.modes.log) {
            host.preserving_error_stack(|| publish_dataset(&made));
        }
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
        let (wanted, other) = AccessList::without_cache(parent, access);
        let list = other.as_ref().map_or(access, |other| other.list);
        let under = host.H5VLdataset_open(parent.under(), place, below, name, list, transfer, request);
        if under.is_null() {
            return null_mut();
        }
        parent.wrap_request(request);
        publish(opened(parent, under, &Opened { wanted, has_name: true, is_own: false }), false)
    })
}

/// The object of a dataset that was opened without an access list of its own.
pub(crate) unsafe fn found(parent: &Object, under: Ptr) -> Ptr {
    let wanted = parent.file.as_ref().and_then(|file| file.buffers).map(|buffers| buffers.chunks);
    publish(opened(parent, under, &Opened { wanted, has_name: true, is_own: false }), false)
}

/// The beginning of a place that HDF5 gives.
#[repr(C)]
pub(crate) struct Place {
    pub(crate) kind: c_int,
    pub(crate) how: c_int,
    pub(crate) name: Text,
    pub(crate) _more: [u64; 6],
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
            return transfer::read(object(*pointers), &one, *data, request);
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
            return transfer::write(object(*pointers), &one, *data, request);
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
    objects.iter().for_each(|object| decide(object));
    if write_back_all(first.host) < 0 {
        return -1;
    }
    let mut under: Vec<Ptr> = objects.iter().map(|object| object.under()).collect();
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
        let status = dataset.host.H5VLdataset_get(dataset.under(), dataset.connector, arguments, transfer, request);
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
        decide_if_known(dataset);
        let shape = (operation(arguments) == SET_EXTENT).then(|| new_extents(dataset, arguments)).flatten();
        let stays = shape.is_some_and(|shape| transfer::stays_on_resize(dataset, shape));
        if !stays && write_back_all(dataset.host) < 0 {
            return -1;
        }
        if operation(arguments) == SET_EXTENT && shrinks(dataset, arguments) {
            drain_ranks(dataset, DATASET);
        }
        let (host, below, under) = (dataset.host, dataset.connector, dataset.under());
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
        decide_if_known(dataset);
        expose_offset(dataset);
        let (host, below, under) = (dataset.host, dataset.connector, dataset.under());
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
        let status = closed.host.H5VLdataset_close(closed.under(), closed.connector, transfer, request);
        closed.wrap_request(request);
        if status >= 0 {
            free(pointer);
        }
        status
    })
}
