//! What HDF5 gets for an object below, and how it wraps such.
//!
//! Callbacks are called by libhdf5 with objects that they have returned and that are not closed, and with the arguments
//! that its connector interface promises; that is the contract all functions here and in `callbacks` rely on.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated once, above")]

use crate::accel::{CallbackScope, Dataset, FileState, Handle, in_callback};
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Ptr, Req};
use crate::trace::TracedDataset;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const FILE: c_int = 1;
pub(crate) const DATASET: c_int = 5;

/// An object of the connector below, and what is known of it.
pub(crate) struct Object {
    pub(crate) under: Ptr,
    /// The connector below.
    pub(crate) connector: Hid,
    pub(crate) host: &'static Host,
    /// The file it was reached through, if its elements may go another way.
    pub(crate) file: Option<Arc<FileState>>,
    /// Whether the handle of the file that it was reached through may write.
    pub(crate) writable: bool,
    /// Of datasets whose elements do.
    pub(crate) dataset: Mutex<Option<Arc<Dataset>>>,
    /// The chunk cache that the program has asked for: slots, bytes, preemption.
    pub(crate) chunk_cache: Option<(usize, usize, f64)>,
    /// Why libhdf5 moves the elements of a dataset.
    pub(crate) fallback_reason: Option<String>,
    /// Whether it is a virtual dataset, or elements of it are outside the file.
    pub(crate) is_indirect: bool,
    /// Of datasets whose transfers are recorded.
    pub(crate) traced: Option<TracedDataset>,
    /// Whether it is a file that libhdf5 wrapped for the program.
    wrapped: bool,
}

impl Object {
    /// What is below, if it is a dataset.
    pub(crate) fn handle(&self) -> Handle {
        Handle { under: self.under, connector: self.connector }
    }

    pub(crate) fn dataset(&self) -> Option<Arc<Dataset>> {
        self.dataset.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether transfers of a dataset are libhdf5's alone, and nobody wants to know of them.
    pub(crate) fn passes_through(&self) -> bool {
        let taken = self.dataset.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        !taken && !self.is_indirect && self.traced.is_none() && !self.host.wants_stats()
    }

    pub(crate) fn take_dataset(&self) -> Option<Arc<Dataset>> {
        self.dataset.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A new object beside this one.
    pub(crate) unsafe fn sibling(&self, under: Ptr) -> Self {
        Self::new(self.host, under, self.connector, self.file.clone(), self.writable)
    }

    pub(crate) unsafe fn new(
        host: &'static Host,
        under: Ptr,
        connector: Hid,
        file: Option<Arc<FileState>>,
        writable: bool,
    ) -> Self {
        host.H5Iinc_ref(connector);
        Self {
            under,
            connector,
            host,
            file,
            writable,
            dataset: Mutex::new(None),
            chunk_cache: None,
            fallback_reason: None,
            is_indirect: false,
            traced: None,
            wrapped: false,
        }
    }

    /// For HDF5 to keep.
    pub(crate) fn into_ptr(self) -> Ptr {
        Box::into_raw(Box::new(self)).cast()
    }

    /// Wraps a request of the connector below.
    pub(crate) unsafe fn wrap_request(&self, request: Req) {
        wrap_request(self.host, self.connector, request);
    }

    /// The object for HDF5 that stands for a new one below.
    pub(crate) unsafe fn child(&self, under: Ptr, request: Req) -> Ptr {
        if under.is_null() {
            return null_mut();
        }
        self.wrap_request(request);
        self.sibling(under).into_ptr()
    }
}

pub(crate) unsafe fn wrap_request(host: &'static Host, connector: Hid, request: Req) {
    if !request.is_null() && !(*request).is_null() {
        *request = Object::new(host, *request, connector, None, false).into_ptr();
    }
}

/// The object behind what HDF5 has.
pub(crate) unsafe fn object<'a>(pointer: Ptr) -> &'a Object {
    &*pointer.cast::<Object>()
}

/// Ends an object that is closed below.
pub(crate) unsafe fn free(pointer: Ptr) {
    let object = Box::from_raw(pointer.cast::<Object>());
    object.host.preserving_error_stack(|| object.host.H5Idec_ref(object.connector));
}

/// What HDF5 gets if a callback fails.
pub(crate) trait Failure {
    const FAILED: Self;
}

impl Failure for Herr {
    const FAILED: Self = -1;
}

impl Failure for Ptr {
    const FAILED: Self = null_mut();
}

/// Runs a callback. A panic is a failure of this call, never of the program.
pub(crate) fn catch_panics<T: Failure>(body: impl FnOnce() -> T) -> T {
    if !in_callback() {
        crate::terminate::stop_here_if_under_way();
    }
    let _inside = CallbackScope::enter();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(T::FAILED)
}

thread_local! {
    /// Whether libhdf5 wraps a file that nobody closes.
    pub(crate) static WRAPS_FOR_ITSELF: Cell<bool> = const { Cell::new(false) };
}

/// What HDF5 needs to wrap further objects, for the time of one call: it is made and freed with every one, so that this should take
/// no calls of the library where nothing is below.
struct Context {
    /// Counted as in use only if there is something to be freed by it: the object of the call holds it meanwhile.
    connector: Hid,
    under: Ptr,
    file: Option<Arc<FileState>>,
    writable: bool,
    host: &'static Host,
}

pub(crate) unsafe extern "C" fn get_object(pointer: Const) -> Ptr {
    // Of an object whose closing failed libhdf5 keeps the identifier, with nothing behind it.
    if pointer.is_null() {
        return null_mut();
    }
    let object = object(pointer.cast_mut());
    object.host.H5VLget_object(object.under, object.connector)
}

pub(crate) unsafe extern "C" fn get_context(pointer: Const, context: *mut Ptr) -> Herr {
    if pointer.is_null() {
        return -1;
    }
    let object = object(pointer.cast_mut());
    let mut new = Context {
        connector: object.connector,
        under: null_mut(),
        file: object.file.clone(),
        writable: object.writable,
        host: object.host,
    };
    if object.host.H5VLget_wrap_ctx(object.under, object.connector, &raw mut new.under) < 0 {
        return -1;
    }
    if !new.under.is_null() {
        object.host.H5Iinc_ref(object.connector);
    }
    *context = Box::into_raw(Box::new(new)).cast();
    0
}

pub(crate) unsafe extern "C" fn wrap(pointer: Ptr, kind: c_int, context: Ptr) -> Ptr {
    let context = &*context.cast::<Context>();
    let under = context.host.H5VLwrap_object(pointer, kind, context.connector, context.under);
    if under.is_null() {
        return null_mut();
    }
    let mut wrapped = Object::new(context.host, under, context.connector, context.file.clone(), context.writable);
    if let (FILE, Some(file), false) = (kind, &context.file, WRAPS_FOR_ITSELF.get()) {
        file.opened();
        wrapped.wrapped = true;
    }
    wrapped.into_ptr()
}

pub(crate) unsafe extern "C" fn unwrap(pointer: Ptr) -> Ptr {
    let inner = object(pointer);
    let under = inner.host.H5VLunwrap_object(inner.under, inner.connector);
    if !under.is_null() {
        if let (true, Some(file)) = (inner.wrapped, &inner.file) {
            file.unwrapped();
        }
        free(pointer);
    }
    under
}

pub(crate) unsafe extern "C" fn free_context(context: Ptr) -> Herr {
    let context = Box::from_raw(context.cast::<Context>());
    if context.under.is_null() {
        return 0;
    }
    let host = context.host;
    host.preserving_error_stack(|| {
        let status = host.H5VLfree_wrap_ctx(context.under, context.connector);
        host.H5Idec_ref(context.connector);
        status
    })
}
