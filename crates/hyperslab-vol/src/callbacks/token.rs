//! Object tokens, forwarded to the connector below.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Const, Herr, Ptr, Text};
use crate::object::object;
use std::ffi::{c_char, c_int};

pub(crate) unsafe extern "C" fn compare(pointer: Ptr, one: Const, other: Const, result: *mut c_int) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_cmp(object.under(), object.connector, one, other, result)
}

pub(crate) unsafe extern "C" fn to_text(pointer: Ptr, kind: c_int, token: Const, text: *mut *mut c_char) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_to_str(object.under(), kind, object.connector, token, text)
}

pub(crate) unsafe extern "C" fn from_text(pointer: Ptr, kind: c_int, text: Text, token: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLtoken_from_str(object.under(), kind, object.connector, text, token)
}
