//! Requests of asynchronous operations: our own, and forwarded those of the connector below. `free` frees either, which event
//! sets call after every end.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{Operation, Progress};
use crate::callbacks::operation as operation_of;
use crate::host::Host;
use crate::host::api::{Herr, Hid, Ptr};
use crate::object::{catch_panics, free as free_object, object};
use std::ffi::c_int;
use std::time::Duration;

/// `H5VL_request_status_t`.
const IN_PROGRESS: c_int = 0;
const SUCCEEDED: c_int = 1;
const FAILED: c_int = 2;
const CANNOT_CANCEL: c_int = 3;
/// `H5ES_WAIT_FOREVER`, in nanoseconds.
const FOREVER: u64 = u64::MAX;
const GET_ERROR_STACK: c_int = 0;
const GET_TIME: c_int = 1;

/// Called with what it was registered with and the status at the end.
type Notified = unsafe extern "C" fn(Ptr, c_int) -> Herr;

fn status_of(progress: Progress) -> c_int {
    match progress {
        Progress::InFlight => IN_PROGRESS,
        Progress::Done => SUCCEEDED,
        Progress::Failed => FAILED,
    }
}

pub(crate) unsafe extern "C" fn wait(pointer: Ptr, timeout: u64, status: *mut c_int) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        match &request.operation {
            Some(operation) => {
                let limit = (timeout != FOREVER).then(|| Duration::from_nanos(timeout));
                *status = status_of(operation.wait(limit));
                0
            }
            None => request.host.H5VLrequest_wait(request.under(), request.connector, timeout, status),
        }
    })
}

pub(crate) unsafe extern "C" fn notify(pointer: Ptr, function: Ptr, context: Ptr) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        match &request.operation {
            Some(_) if function.is_null() => -1,
            Some(operation) => {
                let status = status_of(operation.wait(None));
                // SAFETY: the library hands over a function of this type.
                std::mem::transmute::<Ptr, Notified>(function)(context, status)
            }
            None => request.host.H5VLrequest_notify(request.under(), request.connector, function, context),
        }
    })
}

/// What has begun comes to its end.
pub(crate) unsafe extern "C" fn cancel(pointer: Ptr, status: *mut c_int) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        match &request.operation {
            Some(operation) => {
                *status = match operation.wait(Some(Duration::ZERO)) {
                    Progress::InFlight => CANNOT_CANCEL,
                    ended => status_of(ended),
                };
                0
            }
            None => request.host.H5VLrequest_cancel(request.under(), request.connector, status),
        }
    })
}

/// Arguments that ask for the errors of an operation.
#[repr(C)]
struct ErrorStack {
    operation: c_int,
    stack: Hid,
}

/// Arguments that ask when an operation ran, in microseconds, and for how long.
#[repr(C)]
struct Times {
    operation: c_int,
    begun: *mut u64,
    took: *mut u64,
}

pub(crate) unsafe extern "C" fn specific(pointer: Ptr, arguments: Ptr) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        match (&request.operation, operation_of(arguments)) {
            (Some(operation), GET_ERROR_STACK) => {
                (*arguments.cast::<ErrorStack>()).stack = error_stack(request.host, operation);
                0
            }
            (Some(operation), GET_TIME) => {
                let times = &*arguments.cast::<Times>();
                if let (Some(took), false) = (operation.took(), times.took.is_null()) {
                    *times.took = took.as_micros() as u64;
                }
                0
            }
            (Some(_), _) => -1,
            (None, _) => request.host.H5VLrequest_specific(request.under(), request.connector, arguments),
        }
    })
}

/// A new stack of the library with the error of an operation, empty if it has none. The program's is left as it is.
unsafe fn error_stack(host: &'static Host, operation: &Operation) -> Hid {
    let before = host.H5Eget_current_stack();
    operation.tell_error(|error| host.report(error));
    let stack = host.H5Eget_current_stack();
    host.H5Eset_current_stack(before);
    stack
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        match &request.operation {
            Some(_) => -1,
            None => request.host.H5VLrequest_optional(request.under(), request.connector, arguments),
        }
    })
}

pub(crate) unsafe extern "C" fn free(pointer: Ptr) -> Herr {
    catch_panics(|| {
        let request = object(pointer);
        let result = match &request.operation {
            // An error that nobody has seen is told by the next flush.
            Some(_) => 0,
            None => request.host.H5VLrequest_free(request.under(), request.connector),
        };
        if result >= 0 {
            free_object(pointer);
        }
        result
    })
}
