//! Attributes: passed on. They never hold elements that wait.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::data::{ATTRIBUTE, acknowledged, changed};
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{object, shielded};

pub(crate) unsafe extern "C" fn create(
    pointer: Ptr,
    place: Const,
    name: Text,
    kind: Hid,
    space: Hid,
    create: Hid,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    shielded(|| {
        let object = object(pointer);
        changed(object);
        let (host, below) = (object.host, object.connector);
        let under =
            host.H5VLattr_create(object.under, place, below, name, kind, space, create, access, transfer, request);
        object.child(under, request)
    })
}

opening!(open => H5VLattr_open);

pub(crate) unsafe extern "C" fn read(pointer: Ptr, kind: Hid, data: Ptr, transfer: Hid, request: Req) -> Herr {
    shielded(|| {
        let object = object(pointer);
        let status = object.host.H5VLattr_read(object.under, object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        status
    })
}

pub(crate) unsafe extern "C" fn write(pointer: Ptr, kind: Hid, data: Const, transfer: Hid, request: Req) -> Herr {
    shielded(|| {
        let object = object(pointer);
        changed(object);
        let status = object.host.H5VLattr_write(object.under, object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        acknowledged(object, ATTRIBUTE, status)
    })
}

on_object!(get => H5VLattr_get);
on_place!(specific => H5VLattr_specific, |object, _| {
    changed(object);
    0
});
on_object!(optional => H5VLattr_optional);
closing!(close => H5VLattr_close);
