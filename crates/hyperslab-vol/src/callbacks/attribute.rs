//! Attribute callbacks: forwarded. Attributes are never buffered.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{ATTRIBUTE, acknowledged, note_metadata_change};
use crate::callbacks::operation;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{catch_panics, object};
use std::ffi::c_int;

const RENAME: c_int = 4;

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
    catch_panics(|| {
        let object = object(pointer);
        note_metadata_change(object);
        let (host, below) = (object.host, object.connector);
        let under =
            host.H5VLattr_create(object.under, place, below, name, kind, space, create, access, transfer, request);
        object.child(under, request)
    })
}

opening!(open => H5VLattr_open);

pub(crate) unsafe extern "C" fn read(pointer: Ptr, kind: Hid, data: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let object = object(pointer);
        let status = object.host.H5VLattr_read(object.under, object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        status
    })
}

pub(crate) unsafe extern "C" fn write(pointer: Ptr, kind: Hid, data: Const, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let object = object(pointer);
        note_metadata_change(object);
        let status = object.host.H5VLattr_write(object.under, object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        acknowledged(object, ATTRIBUTE, status)
    })
}

on_object!(get => H5VLattr_get);

/// A program that replaces an attribute may write it under another name first.
pub(crate) unsafe extern "C" fn specific(
    pointer: Ptr,
    place: Const,
    arguments: Ptr,
    transfer: Hid,
    request: Req,
) -> Herr {
    catch_panics(|| {
        let object = object(pointer);
        note_metadata_change(object);
        let (host, below, under) = (object.host, object.connector, object.under);
        let status = host.H5VLattr_specific(under, place, below, arguments, transfer, request);
        object.wrap_request(request);
        match operation(arguments) {
            RENAME => acknowledged(object, *place.cast::<c_int>(), status),
            _ => status,
        }
    })
}

on_object!(optional => H5VLattr_optional);
closing!(close => H5VLattr_close);
