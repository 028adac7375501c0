//! Blobs, forwarded to the connector below.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::host::api::{Const, Herr, Ptr};
use crate::object::object;

pub(crate) unsafe extern "C" fn put(pointer: Ptr, data: Const, size: usize, id: Ptr, context: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_put(object.under(), object.connector, data, size, id, context)
}

pub(crate) unsafe extern "C" fn get(pointer: Ptr, id: Const, data: Ptr, size: usize, context: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_get(object.under(), object.connector, id, data, size, context)
}

pub(crate) unsafe extern "C" fn specific(pointer: Ptr, id: Ptr, arguments: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_specific(object.under(), object.connector, id, arguments)
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, id: Ptr, arguments: Ptr) -> Herr {
    let object = object(pointer);
    object.host.H5VLblob_optional(object.under(), object.connector, id, arguments)
}
