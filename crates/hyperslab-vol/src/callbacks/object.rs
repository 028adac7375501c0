//! Generic object callbacks: forwarded, after a write-back for copies and flushes.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{acknowledged, before_rename, drain_ranks, note_metadata_change, write_back_all};
use crate::callbacks::{dataset, operation};
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{DATASET, Object, catch_panics, object};
use std::ffi::c_int;

const CHANGE_REFERENCES: c_int = 0;
const FLUSH: c_int = 4;
const REFRESH: c_int = 5;

pub(crate) unsafe extern "C" fn open(pointer: Ptr, place: Const, kind: *mut c_int, transfer: Hid, request: Req) -> Ptr {
    catch_panics(|| {
        let object = object(pointer);
        let under = object.host.H5VLobject_open(object.under(), place, object.connector, kind, transfer, request);
        let kind = if under.is_null() || kind.is_null() { 0 } else { *kind };
        if kind != DATASET || under.is_null() {
            return object.child(under, request);
        }
        object.wrap_request(request);
        dataset::found(object, under)
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
    catch_panics(|| {
        let (from, to) = (object(from), object(to));
        note_metadata_change(to);
        if write_back_all(from.host) < 0 {
            return -1;
        }
        drain_ranks(from, *from_place.cast::<c_int>());
        let (host, below) = (from.host, from.connector);
        let status = host.H5VLobject_copy(
            from.under(),
            from_place,
            from_name,
            to.under(),
            to_place,
            to_name,
            below,
            copy,
            link,
            transfer,
            request,
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
    catch_panics(|| {
        let own: &Object = object(pointer);
        if operation(arguments) == CHANGE_REFERENCES {
            if before_rename(own) < 0 {
                return -1;
            }
            drain_ranks(own, *place.cast::<c_int>());
        }
        if matches!(operation(arguments), FLUSH | REFRESH) {
            note_metadata_change(own);
            if write_back_all(own.host) < 0 {
                return -1;
            }
        }
        let (host, below) = (own.host, own.connector);
        let status = host.H5VLobject_specific(own.under(), place, below, arguments, transfer, request);
        crate::object::wrap_request(host, below, request);
        status
    })
}

on_place!(optional => H5VLobject_optional, |object: &Object, _, _| write_back_all(object.host));
