//! Beginning and end, questions about the connector, requests, blobs and tokens: passed on.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Const, H5P_DEFAULT, Herr, Hid, Ptr, Req, Text};
use crate::host::of_slot;
use crate::info::Info;
use crate::object::{free, object, shielded};
use std::ffi::{c_char, c_int};
use std::ptr::null;

pub(crate) unsafe extern "C" fn initialize<const SLOT: usize>(_list: Hid) -> Herr {
    if of_slot(SLOT).is_some() { 0 } else { -1 }
}

pub(crate) unsafe extern "C" fn terminate<const SLOT: usize>() -> Herr {
    shielded(|| {
        if let Some(host) = of_slot(SLOT) {
            host.end();
        }
        0
    })
}

pub(crate) unsafe extern "C" fn get_class<const SLOT: usize>(pointer: Ptr, level: c_int, class: *mut Const) -> Herr {
    if level == 0 {
        *class = crate::class::as_ptr(crate::class::make(SLOT));
        return 0;
    }
    let object = object(pointer);
    object.host.H5VLintrospect_get_conn_cls(object.under, object.connector, level, class)
}

pub(crate) unsafe extern "C" fn get_capabilities<const SLOT: usize>(info: Const, flags: *mut u64) -> Herr {
    if !info.is_null() {
        let info = &*info.cast::<Info>();
        return info.host.H5VLintrospect_get_cap_flags(info.under, info.connector, flags);
    }
    let Some(host) = of_slot(SLOT) else { return -1 };
    let native = host.H5VLregister_connector_by_value(0, H5P_DEFAULT);
    if native < 0 {
        return -1;
    }
    let status = host.H5VLintrospect_get_cap_flags(null(), native, flags);
    host.H5Idec_ref(native);
    status
}

pub(crate) unsafe extern "C" fn query_optional(pointer: Ptr, class: c_int, operation: c_int, flags: *mut u64) -> Herr {
    let object = object(pointer);
    object.host.H5VLintrospect_opt_query(object.under, object.connector, class, operation, flags)
}

pub(crate) unsafe extern "C" fn request_wait(pointer: Ptr, timeout: u64, status: *mut c_int) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_wait(request.under, request.connector, timeout, status);
    // 0: still in progress.
    if result >= 0 && *status != 0 {
        free(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn request_notify(pointer: Ptr, function: Ptr, context: Ptr) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_notify(request.under, request.connector, function, context);
    if result >= 0 {
        free(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn request_cancel(pointer: Ptr, status: *mut c_int) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_cancel(request.under, request.connector, status);
    if result >= 0 && *status != 0 {
        free(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn request_specific(pointer: Ptr, arguments: Ptr) -> Herr {
    let request = object(pointer);
    request.host.H5VLrequest_specific(request.under, request.connector, arguments)
}

pub(crate) unsafe extern "C" fn request_optional(pointer: Ptr, arguments: Ptr) -> Herr {
    let request = object(pointer);
    request.host.H5VLrequest_optional(request.under, request.connector, arguments)
}

pub(crate) unsafe extern "C" fn request_free(pointer: Ptr) -> Herr {
    let request = object(pointer);
    let result = request.host.H5VLrequest_free(request.under, request.connector);
    if result >= 0 {
        free(pointer);
    }
    result
}

pub(crate) unsafe extern "C" fn blob_put(pointer: Ptr, data: Const, size: usize, id: Ptr, context: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_put(object.under, object.connector, data, size, id, context)
}

pub(crate) unsafe extern "C" fn blob_get(pointer: Ptr, id: Const, data: Ptr, size: usize, context: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_get(object.under, object.connector, id, data, size, context)
}

pub(crate) unsafe extern "C" fn blob_specific(pointer: Ptr, id: Ptr, arguments: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_specific(object.under, object.connector, id, arguments)
}

pub(crate) unsafe extern "C" fn blob_optional(pointer: Ptr, id: Ptr, arguments: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_optional(object.under, object.connector, id, arguments)
}

pub(crate) unsafe extern "C" fn token_compare(pointer: Ptr, one: Const, other: Const, result: *mut c_int) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_cmp(object.under, object.connector, one, other, result)
}

pub(crate) unsafe extern "C" fn token_to_text(pointer: Ptr, kind: c_int, token: Const, text: *mut *mut c_char) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_to_str(object.under, kind, object.connector, token, text)
}

pub(crate) unsafe extern "C" fn token_from_text(pointer: Ptr, kind: c_int, text: Text, token: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_from_str(object.under, kind, object.connector, text, token)
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    let object = object(pointer);
    let status = object.host.H5VLoptional(object.under, object.connector, arguments, transfer, request);
    object.wrap_request(request);
    status
}
