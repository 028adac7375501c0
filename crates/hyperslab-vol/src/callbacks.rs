//! VOL callbacks. Most forward to the connector below; those that may read or move buffered data write it back first
//! (`crate::accel`).

/// Defines a callback with arguments, on the object itself.
macro_rules! on_object {
    ($(#[$doc:meta])* $name:ident => $below:ident $(, $before:expr)?) => {
        $(#[$doc])*
        pub(crate) unsafe extern "C" fn $name(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
            catch_panics(|| {
                let object = object(pointer);
                $(if $before(object, arguments) < 0 { return -1; })?
                let status = object.host.$below(object.under(), object.connector, arguments, transfer, request);
                object.wrap_request(request);
                status
            })
        }
    };
}

/// Defines a callback with arguments, on a location relative to the object.
macro_rules! on_place {
    ($(#[$doc:meta])* $name:ident => $below:ident $(, $before:expr)?) => {
        $(#[$doc])*
        pub(crate) unsafe extern "C" fn $name(
            pointer: Ptr,
            place: Const,
            arguments: Ptr,
            transfer: Hid,
            request: Req,
        ) -> Herr {
            catch_panics(|| {
                let object = object(pointer);
                $(if $before(object, place, arguments) < 0 { return -1; })?
                let status = object.host.$below(object.under(), place, object.connector, arguments, transfer, request);
                object.wrap_request(request);
                status
            })
        }
    };
}

/// Defines a callback that opens an object by name.
macro_rules! opening {
    ($name:ident => $below:ident) => {
        pub(crate) unsafe extern "C" fn $name(
            pointer: Ptr,
            place: Const,
            name: Text,
            access: Hid,
            transfer: Hid,
            request: Req,
        ) -> Ptr {
            catch_panics(|| {
                let object = object(pointer);
                let (host, below) = (object.host, object.connector);
                let under = host.$below(object.under(), place, below, name, access, transfer, request);
                object.child(under, request)
            })
        }
    };
}

/// Defines a callback that closes an object.
macro_rules! closing {
    ($name:ident => $below:ident) => {
        pub(crate) unsafe extern "C" fn $name(pointer: Ptr, transfer: Hid, request: Req) -> Herr {
            catch_panics(|| {
                let closed = object(pointer);
                let status = closed.host.$below(closed.under(), closed.connector, transfer, request);
                closed.wrap_request(request);
                if status >= 0 {
                    crate::object::free(pointer);
                }
                status
            })
        }
    };
}

pub(crate) mod attribute;
pub(crate) mod blob;
pub(crate) mod dataset;
pub(crate) mod datatype;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod introspect;
pub(crate) mod link;
pub(crate) mod object;
pub(crate) mod request;
pub(crate) mod token;

/// The operation code at the start of arguments.
///
/// # Safety
/// They are arguments of a `get`, `specific` or `optional` callback.
pub(crate) unsafe fn operation(arguments: crate::host::api::Ptr) -> std::ffi::c_int {
    // SAFETY: all of them begin with their number.
    unsafe { *arguments.cast::<std::ffi::c_int>() }
}
