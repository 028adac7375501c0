//! Objects of any kind: passed on, after what waits where elements are copied or flushed.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::callbacks::{dataset, operation};
use crate::data::{acknowledged, changed, renaming, settle_all};
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{DATASET, Object, object, shielded};
use std::ffi::c_int;

const CHANGE_REFERENCES: c_int = 0;
const FLUSH: c_int = 4;
const REFRESH: c_int = 5;

pub(crate) unsafe extern "C" fn open(pointer: Ptr, place: Const, kind: *mut c_int, transfer: Hid, request: Req) -> Ptr {
    shielded(|| {
        let object = object(pointer);
        let under = object.host.H5VLobject_open(object.under, place, object.connector, kind, transfer, request);
        let kind = if under.is_null() || kind.is_null() { 0 } else { *kind };
        if kind != DATASET || under.is_null() {
            return object.child(under, request);
        }
        object.wrap_request(request);
        dataset::found(object, under, place, transfer)
    })
}

pub(crate) unsafe extern "C" fn copy(
    from: Ptr,
    from_place: Const,
    from_name: Text,
    to: Ptr,
    to_place: Const,
    to_name: Text,
    copy: Hid,
    link: Hid,
    transfer: Hid,
    request: Req,
) -> Herr {
    shielded(|| {
        let (from, to) = (object(from), object(to));
        changed(to);
        if settle_all(from.host) < 0 {
            return -1;
        }
        let (host, below) = (from.host, from.connector);
        let status = host.H5VLobject_copy(
            from.under, from_place, from_name, to.under, to_place, to_name, below, copy, link, transfer, request,
        );
        from.wrap_request(request);
        acknowledged(to, *to_place.cast::<c_int>(), status)
    })
}

on_place!(get => H5VLobject_get);

pub(crate) unsafe extern "C" fn specific(
    pointer: Ptr,
    place: Const,
    arguments: Ptr,
    transfer: Hid,
    request: Req,
) -> Herr {
    shielded(|| {
        let own: &Object = object(pointer);
        if operation(arguments) == CHANGE_REFERENCES && renaming(own) < 0 {
            return -1;
        }
        if matches!(operation(arguments), FLUSH | REFRESH) {
            changed(own);
            if settle_all(own.host) < 0 {
                return -1;
            }
        }
        let (host, below) = (own.host, own.connector);
        let status = host.H5VLobject_specific(own.under, place, below, arguments, transfer, request);
        crate::object::wrap_request(host, below, request);
        status
    })
}

on_place!(optional => H5VLobject_optional, |object: &Object, _| settle_all(object.host));
