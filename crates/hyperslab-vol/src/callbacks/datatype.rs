//! Callbacks of named datatypes: forwarded.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::note_metadata_change;
use crate::host::api::{Const, Herr, Hid, Ptr, Req, Text};
use crate::object::{catch_panics, object};

pub(crate) unsafe extern "C" fn commit(
    pointer: Ptr,
    place: Const,
    name: Text,
    kind: Hid,
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
        let under =
            host.H5VLdatatype_commit(object.under(), place, below, name, kind, link, create, access, transfer, request);
        object.child(under, request)
    })
}

opening!(open => H5VLdatatype_open);
on_object!(get => H5VLdatatype_get);
on_object!(specific => H5VLdatatype_specific);
on_object!(optional => H5VLdatatype_optional);
closing!(close => H5VLdatatype_close);
