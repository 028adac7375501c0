//! Link callbacks: forwarded, after a write-back if objects may be deleted or renamed.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{acknowledged_link, before_rename, drain_ranks, name, note_metadata_change};
use crate::callbacks::operation;
use crate::host::api::{Const, Herr, Hid, Ptr, Req};
use crate::object::{Object, catch_panics, object};
use std::ffi::c_int;
use std::ptr::null_mut;

const HARD: c_int = 0;
const DELETE: c_int = 0;

/// Arguments for a new link, as far as those of hard ones go.
#[repr(C)]
struct New {
    operation: c_int,
    target: Ptr,
}

pub(crate) unsafe extern "C" fn create(
    arguments: Ptr,
    pointer: Ptr,
    place: Const,
    create: Hid,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Herr {
    catch_panics(|| {
        let given = &mut *arguments.cast::<New>();
        let own = (!pointer.is_null()).then(|| object(pointer));
        let target = (given.operation == HARD && !given.target.is_null()).then(|| object(given.target));
        let Some(known) = own.or(target) else { return -1 };
        note_metadata_change(known);
        let under = own.map_or(null_mut(), |object| object.under());
        let before = given.target;
        if let Some(target) = target {
            given.target = target.under();
        }
        let (host, below) = (known.host, known.connector);
        let status = host.H5VLlink_create(arguments, under, place, below, create, access, transfer, request);
        if target.is_some() {
            given.target = before;
        }
        known.wrap_request(request);
        if let Some(target) = target.filter(|_| status >= 0)
            && let (Some(dataset), Some(trace)) =
                (&target.traced, target.file.as_ref().and_then(|file| file.trace.as_ref()))
        {
            let name = host.preserving_error_stack(|| name(host, target.handle()));
            trace.linked(dataset, &name);
        }
        match (own, given.operation) {
            (Some(own), HARD) => acknowledged_link(own, *place.cast::<c_int>(), status),
            _ => status,
        }
    })
}

macro_rules! from_to {
    ($name:ident => $below:ident) => {
        pub(crate) unsafe extern "C" fn $name(
            from: Ptr,
            from_place: Const,
            to: Ptr,
            to_place: Const,
            create: Hid,
            access: Hid,
            transfer: Hid,
            request: Req,
        ) -> Herr {
            catch_panics(|| {
                let known = if from.is_null() { object(to) } else { object(from) };
                if before_rename(known) < 0 {
                    return -1;
                }
                let under = |pointer: Ptr| if pointer.is_null() { null_mut() } else { object(pointer).under() };
                let (host, below) = (known.host, known.connector);
                let (from, to) = (under(from), under(to));
                let status = host.$below(from, from_place, to, to_place, below, create, access, transfer, request);
                known.wrap_request(request);
                status
            })
        }
    };
}

from_to!(copy => H5VLlink_copy);
from_to!(rename => H5VLlink_move);
on_place!(get => H5VLlink_get);

/// What is deleted gives its place in the file to others.
unsafe fn before_specific(object: &Object, place: Const, arguments: Ptr) -> Herr {
    if operation(arguments) != DELETE {
        return 0;
    }
    let status = before_rename(object);
    drain_ranks(object, *place.cast::<c_int>());
    status
}

on_place!(specific => H5VLlink_specific, before_specific);
on_place!(optional => H5VLlink_optional, |object, _, _| {
    note_metadata_change(object);
    0
});
