//! Requests of asynchronous operations, forwarded to the connector below.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Herr, Ptr};
use crate::object::{free as free_object, object};
use std::ffi::c_int;

pub(crate) unsafe extern "C" fn wait(pointer: Ptr, timeout: u64, status: *mut c_int) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_wait(request.under(), request.connector, timeout, status);
    // 0: still in progress.
    if result >= 0 && *status != 0 {
        free_object(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn notify(pointer: Ptr, function: Ptr, context: Ptr) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_notify(request.under(), request.connector, function, context);
    if result >= 0 {
        free_object(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn cancel(pointer: Ptr, status: *mut c_int) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_cancel(request.under(), request.connector, status);
    if result >= 0 && *status != 0 {
        free_object(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn specific(pointer: Ptr, arguments: Ptr) -> Herr {
    let request = object(pointer);
    request.host.H5VLrequest_specific(request.under(), request.connector, arguments)
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr) -> Herr {
    let request = object(pointer);
    request.host.H5VLrequest_optional(request.under(), request.connector, arguments)
}

pub(crate) unsafe extern "C" fn free(pointer: Ptr) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_free(request.under(), request.connector);
    if result >= 0 {
        free_object(pointer);
    }
    result
}
