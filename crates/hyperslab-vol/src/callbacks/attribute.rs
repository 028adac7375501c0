//! Attribute callbacks: forwarded, and noted in traced files. Attributes are never buffered.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{ATTRIBUTE, acknowledged, note_metadata_change, object_name};
use crate::callbacks::dataset::{BY_ITSELF, BY_NAME, Place};
use crate::callbacks::operation;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{Object, catch_panics, free, object};
use crate::trace::attribute_shape;
use std::ffi::c_int;
use std::ptr::null_mut;

const RENAME: c_int = 4;
/// Arguments of a renaming.
#[repr(C)]
struct Rename {
    operation: c_int,
    from: Text,
    to: Text,
}

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
            host.H5VLattr_create(object.under(), place, below, name, kind, space, create, access, transfer, request);
        if under.is_null() {
            return null_mut();
        }
        object.wrap_request(request);
        let mut new = object.sibling(under);
        if let Some(trace) = object.file.as_ref().and_then(|file| file.trace.as_ref()) {
            new.traced_attribute = host.preserving_error_stack(|| {
                let (of, shape) = (recorded_name(object, place)?, attribute_shape(host, space)?);
                trace.attribute(&of, &crate::host::text(name), shape)
            });
        }
        new.into_ptr()
    })
}

opening!(open => H5VLattr_open);

pub(crate) unsafe extern "C" fn read(pointer: Ptr, kind: Hid, data: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let object = object(pointer);
        let status = object.host.H5VLattr_read(object.under(), object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        status
    })
}

pub(crate) unsafe extern "C" fn write(pointer: Ptr, kind: Hid, data: Const, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let object = object(pointer);
        note_metadata_change(object);
        let status = object.host.H5VLattr_write(object.under(), object.connector, kind, data, transfer, request);
        object.wrap_request(request);
        if let Some(attribute) = object.traced_attribute.as_ref().filter(|_| status >= 0) {
            object.host.preserving_error_stack(|| attribute.written(object.host, kind, data));
        }
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
        let (host, below, under) = (object.host, object.connector, object.under());
        let status = host.H5VLattr_specific(under, place, below, arguments, transfer, request);
        object.wrap_request(request);
        if operation(arguments) == RENAME
            && status >= 0
            && let Some(trace) = object.file.as_ref().and_then(|file| file.trace.as_ref())
            && let Some(of) = host.preserving_error_stack(|| recorded_name(object, place))
        {
            let names = &*arguments.cast::<Rename>();
            trace.renamed_attribute(&of, &crate::host::text(names.from), &crate::host::text(names.to));
        }
        match operation(arguments) {
            RENAME => acknowledged(object, *place.cast::<c_int>(), status),
            _ => status,
        }
    })
}

on_object!(optional => H5VLattr_optional);

/// The name of the object that an attribute is made for, as the recording has it: of the object itself, not of others by a path.
unsafe fn recorded_name(object: &Object, place: Const) -> Option<String> {
    let Place { kind, how, name, .. } = &*place.cast::<Place>();
    match &object.traced {
        // h5py's path is ".".
        _ if *how != BY_ITSELF && !(*how == BY_NAME && crate::host::text(*name) == ".") => None,
        Some(dataset) => Some(dataset.recorded_name().to_owned()),
        None => object_name(object.host, object.handle(), *kind),
    }
}

pub(crate) unsafe extern "C" fn close(pointer: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let closed = object(pointer);
        let traced = closed.traced_attribute.as_ref();
        if let (Some(attribute), Some(trace)) = (traced, closed.file.as_ref().and_then(|file| file.trace.as_ref())) {
            trace.closed_attribute(attribute);
        }
        let status = closed.host.H5VLattr_close(closed.under(), closed.connector, transfer, request);
        closed.wrap_request(request);
        if status >= 0 {
            free(pointer);
        }
        status
    })
}
