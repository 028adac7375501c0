//! Group callbacks: forwarded, after a write-back for mounts and flushes.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{Handle, note_metadata_change, object_name, write_back_all};
use crate::callbacks::operation;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{catch_panics, object};
use std::ffi::c_int;

const MOUNT: c_int = 0;
/// The kind of object, of identifiers.
const GROUP: c_int = 2;

/// Arguments of a mount.
#[repr(C)]
struct Mount {
    operation: c_int,
    name: Text,
    child: Ptr,
    list: Hid,
}

pub(crate) unsafe extern "C" fn create(
    pointer: Ptr,
    place: Const,
    name: Text,
    link: Hid,
    create: Hid,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    catch_panics(|| {
        let object = object(pointer);
        note_metadata_change(object);
        let (host, below) = (object.host, object.connector);
        let under = host.H5VLgroup_create(object.under(), place, below, name, link, create, access, transfer, request);
        if let Some(trace) = object.file.as_ref().and_then(|file| file.trace.as_ref()).filter(|_| !under.is_null()) {
            let group = Handle { under, connector: below };
            if let Some(name) = host.preserving_error_stack(|| object_name(host, group, GROUP)) {
                trace.group(&name);
            }
        }
        object.child(under, request)
    })
}

opening!(open => H5VLgroup_open);
on_object!(get => H5VLgroup_get);

pub(crate) unsafe extern "C" fn specific(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let (host, below, under) = {
            let group = object(pointer);
            if write_back_all(group.host) < 0 {
                return -1;
            }
            (group.host, group.connector, group.under())
        };
        let mut mount;
        let arguments = if operation(arguments) == MOUNT {
            let given = &*arguments.cast::<Mount>();
            let child = object(given.child).under();
            mount = Mount { operation: MOUNT, name: given.name, child, list: given.list };
            (&raw mut mount).cast()
        } else {
            arguments
        };
        let status = host.H5VLgroup_specific(under, below, arguments, transfer, request);
        crate::object::wrap_request(host, below, request);
        status
    })
}

on_object!(optional => H5VLgroup_optional);
closing!(close => H5VLgroup_close);
