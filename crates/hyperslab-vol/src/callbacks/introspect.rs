//! Start and end of the connector, its class and capabilities, and operations without an object class.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Const, H5P_DEFAULT, Herr, Hid, Ptr, Req};
use crate::host::of_slot;
use crate::info::Info;
use crate::object::{catch_panics, object};
use std::ffi::c_int;
use std::ptr::null;

pub(crate) unsafe extern "C" fn initialize<const SLOT: usize>(_list: Hid) -> Herr {
    if of_slot(SLOT).is_some() { 0 } else { -1 }
}

pub(crate) unsafe extern "C" fn terminate<const SLOT: usize>() -> Herr {
    catch_panics(|| {
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
    object.host.H5VLintrospect_get_conn_cls(object.under(), object.connector, level, class)
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
    object.host.H5VLintrospect_opt_query(object.under(), object.connector, class, operation, flags)
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    let object = object(pointer);
    let status = object.host.H5VLoptional(object.under(), object.connector, arguments, transfer, request);
    object.wrap_request(request);
    status
}
