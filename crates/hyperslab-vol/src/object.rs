//! Wrappers of the objects of the connector below, and the wrap callbacks.
//!
//! **Contract** of all functions here and in `callbacks`: libhdf5 passes objects that callbacks have returned and that
//! are not closed, and arguments as its VOL interface specifies.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated once, above")]

use crate::accel::{Attachment, CallbackScope, Dataset, FileState, Handle, Operation, Undecided, in_callback};
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Ptr, Req};
use crate::trace::{TracedAttribute, TracedDataset};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) const FILE: c_int = 1;
pub(crate) const DATASET: c_int = 5;

/// An object of the connector below, with its state.
pub(crate) struct Object {
    under: AtomicPtr<c_void>,
    /// The connector below.
    pub(crate) connector: Hid,
    pub(crate) host: &'static Host,
    /// The file it was reached through, if that is accelerated or traced.
    pub(crate) file: Option<Arc<FileState>>,
    /// Whether that file's handle permits writing.
    pub(crate) writable: bool,
    /// Who transfers a dataset's elements.
    attachment: Mutex<Attachment>,
    /// The program's chunk cache settings: slots, bytes, preemption.
    pub(crate) chunk_cache: Option<(usize, usize, f64)>,
    /// `Some` for traced datasets.
    pub(crate) traced: Option<TracedDataset>,
    /// `Some` for attributes that are made in a traced file.
    pub(crate) traced_attribute: Option<Arc<TracedAttribute>>,
    /// `Some` for requests of operations of our own; others are wrapped requests of the connector below.
    pub(crate) operation: Option<Box<Operation>>,
    /// Whether it is a file handle that libhdf5 created by wrapping.
    wrapped: bool,
}

impl Object {
    /// The object of the connector below.
    pub(crate) fn under(&self) -> Ptr {
        self.under.load(Ordering::Relaxed)
    }

    /// Has another object of the connector below in its place.
    pub(crate) fn set_under(&self, under: Ptr) {
        self.under.store(under, Ordering::Relaxed);
    }

    /// The handle of a dataset.
    pub(crate) fn handle(&self) -> Handle {
        Handle { under: self.under(), connector: self.connector }
    }

    fn held_attachment(&self) -> MutexGuard<'_, Attachment> {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who transfers its elements.
    pub(crate) fn attachment(&self) -> Attachment {
        self.held_attachment().clone()
    }

    /// Notes who transfers its elements.
    pub(crate) fn set_attachment(&self, attachment: Attachment) {
        *self.held_attachment() = attachment;
    }

    /// The dataset, if it uses the direct path.
    pub(crate) fn dataset(&self) -> Option<Arc<Dataset>> {
        match &*self.held_attachment() {
            Attachment::Direct(dataset) => Some(dataset.clone()),
            _ => None,
        }
    }

    /// What is known of a dataset that is not decided about.
    pub(crate) fn undecided(&self) -> Option<Undecided> {
        match &*self.held_attachment() {
            Attachment::Undecided(undecided) => Some(undecided.clone()),
            _ => None,
        }
    }

    /// Whether this rank of an MPI program writes its elements by itself in collective writes, as the others do, though not
    /// by the direct path.
    pub(crate) fn moves_alone(&self) -> bool {
        matches!(&*self.held_attachment(), Attachment::Library(library) if library.moves_alone)
    }

    /// Whether transfers are simply forwarded: no direct path, trace or statistics.
    pub(crate) fn passes_through(&self) -> bool {
        let forwarded = match &*self.held_attachment() {
            Attachment::Direct(_) => false,
            Attachment::Undecided(_) => true,
            Attachment::Library(library) => !library.is_indirect && !library.moves_alone,
        };
        forwarded && self.traced.is_none() && !self.host.wants_stats()
    }

    /// The dataset of a handle that is closed, if it uses the direct path.
    pub(crate) fn take_dataset(&self) -> Option<Arc<Dataset>> {
        match std::mem::take(&mut *self.held_attachment()) {
            Attachment::Direct(dataset) => Some(dataset),
            _ => None,
        }
    }

    /// A new object reached through the same file.
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
        if !host.is_native(connector) {
            host.H5Iinc_ref(connector);
        }
        Self {
            under: AtomicPtr::new(under),
            connector,
            host,
            file,
            writable,
            attachment: Mutex::default(),
            chunk_cache: None,
            traced: None,
            traced_attribute: None,
            operation: None,
            wrapped: false,
        }
    }

    /// Transfers ownership to HDF5.
    pub(crate) fn into_ptr(self) -> Ptr {
        Box::into_raw(Box::new(self)).cast()
    }

    /// A request for an operation of our own, which keeps the file known.
    pub(crate) unsafe fn requested(&self, operation: Operation) -> Ptr {
        let mut request = self.sibling(null_mut());
        request.operation = Some(Box::new(operation));
        request.into_ptr()
    }

    /// Wraps an asynchronous request of the connector below.
    pub(crate) unsafe fn wrap_request(&self, request: Req) {
        wrap_request(self.host, self.connector, request);
    }

    /// Wraps a new object of the connector below; null if `under` is.
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

/// The object behind HDF5's pointer.
pub(crate) unsafe fn object<'a>(pointer: Ptr) -> &'a Object {
    &*pointer.cast::<Object>()
}

/// Frees an object that is closed below.
pub(crate) unsafe fn free(pointer: Ptr) {
    drop(Box::from_raw(pointer.cast::<Object>()));
}

impl Drop for Object {
    fn drop(&mut self) {
        let (host, connector) = (self.host, self.connector);
        if !host.is_native(connector) {
            // SAFETY: the reference is this object's own; it ends inside a call of the library.
            host.preserving_error_stack(|| unsafe { host.H5Idec_ref(connector) });
        }
    }
}

/// The return value of a failed callback.
pub(crate) trait Failure {
    const FAILED: Self;
}

impl Failure for Herr {
    const FAILED: Self = -1;
}

impl Failure for Ptr {
    const FAILED: Self = null_mut();
}

/// Runs a callback inside a [`CallbackScope`]. A panic makes the callback fail, and never unwinds into the program.
pub(crate) fn catch_panics<T: Failure>(body: impl FnOnce() -> T) -> T {
    if !in_callback() {
        crate::terminate::stop_here_if_under_way();
    }
    let _inside = CallbackScope::enter();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(T::FAILED)
}

thread_local! {
    /// Whether libhdf5 is wrapping a file for internal use, which is never closed.
    pub(crate) static WRAPS_FOR_ITSELF: Cell<bool> = const { Cell::new(false) };
}

/// Wrap context of one call. Created and freed with every call, so it avoids library calls if the connector below has
/// no context.
struct Context {
    /// Referenced only if `under` must be freed by it; the call's object keeps it open meanwhile.
    connector: Hid,
    under: Ptr,
    file: Option<Arc<FileState>>,
    writable: bool,
    host: &'static Host,
}

pub(crate) unsafe extern "C" fn get_object(pointer: Const) -> Ptr {
    // libhdf5 keeps the identifier of an object whose close failed, with a null object.
    if pointer.is_null() {
        return null_mut();
    }
    let object = object(pointer.cast_mut());
    object.host.H5VLget_object(object.under(), object.connector)
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
    if object.host.H5VLget_wrap_ctx(object.under(), object.connector, &raw mut new.under) < 0 {
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
    let under = inner.host.H5VLunwrap_object(inner.under(), inner.connector);
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
