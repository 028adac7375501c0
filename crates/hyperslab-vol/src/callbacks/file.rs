//! File callbacks: open prepares acceleration, flush and close write buffered data back.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of callbacks is stated in `object`")]

use crate::accel::{FileOpen, FileState, write_back_all};
use crate::callbacks::operation;
use crate::driver;
use crate::host::api::{Herr, Hid, Ptr, Req, Text};
use crate::host::{Host, of_slot, text};
use crate::info::Info;
use crate::object::{FILE, Object, WRAPS_FOR_ITSELF, catch_panics, free, object, wrap_request};
use hyperslab_core::Result;
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;

const GET_ACCESS_LIST: c_int = 1;
const FLUSH: c_int = 0;
const REOPEN: c_int = 1;
const IS_ACCESSIBLE: c_int = 2;
const DELETE: c_int = 3;
const START_SWMR: c_int = 13;
/// `H5Fset_mpi_atomicity`.
const SET_ATOMIC: c_int = 27;
/// After opening, libhdf5 wraps the file for its own use.
const POST_OPEN: c_int = 28;

/// A file access list for the connector below, closed at the end without touching the program's error stack.
struct Below {
    host: &'static Host,
    list: Hid,
    info: Box<Info>,
}

impl Below {
    unsafe fn new(host: &'static Host, list: Hid) -> Option<Self> {
        let info = Info::of_list(host, list)?;
        let list = host.H5Pcopy(list);
        if list < 0 {
            return None;
        }
        let below = Self { host, list, info };
        (host.H5Pset_vol(below.list, below.info.connector, below.info.under) >= 0).then_some(below)
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        // SAFETY: the list is this one's own; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Pclose(self.list) });
    }
}

/// Opens or creates a file below with `body`.
unsafe fn opened(
    slot: usize,
    name: Text,
    flags: c_uint,
    access: Hid,
    request: Req,
    body: impl FnOnce(&'static Host, Hid) -> Ptr,
) -> Ptr {
    catch_panics(|| {
        let Some(host) = of_slot(slot) else { return null_mut() };
        let Some(below) = Below::new(host, access) else { return null_mut() };
        let mut opening = FileOpen::new(host, &below.info, below.list, &text(name), flags);
        let writable = opening.is_writable();
        // Before libhdf5 may cut the file off.
        if let Err(error) = opening.notice() {
            host.report(&error);
            return null_mut();
        }
        let under = match opening.open(|| body(host, below.list)) {
            Ok(under) => under,
            Err(error) => {
                host.report(&error);
                return null_mut();
            }
        };
        if under.is_null() {
            return null_mut();
        }
        let connector = below.info.connector;
        wrap_request(host, connector, request);
        let attached = host.preserving_error_stack(|| {
            if opening.is_new() {
                commit(host, under, connector)?;
            }
            opening.attach(under)
        });
        match attached {
            Ok(file) => Object::new(host, under, connector, file, writable).into_ptr(),
            Err(error) => {
                host.preserving_error_stack(|| {
                    host.H5VLfile_close(under, connector, host.default_transfer(), null_mut())
                });
                host.report(&error);
                null_mut()
            }
        }
    })
}

pub(crate) unsafe extern "C" fn create<const SLOT: usize>(
    name: Text,
    flags: c_uint,
    create: Hid,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    opened(SLOT, name, flags, access, request, |host, access| {
        host.H5VLfile_create(name, flags, create, access, transfer, request)
    })
}

pub(crate) unsafe extern "C" fn open<const SLOT: usize>(
    name: Text,
    flags: c_uint,
    access: Hid,
    transfer: Hid,
    request: Req,
) -> Ptr {
    opened(SLOT, name, flags, access, request, |host, access| {
        host.H5VLfile_open(name, flags, access, transfer, request)
    })
}

/// Has libhdf5 write all it holds of an open file, and makes that the state which survives a kill.
unsafe fn commit(host: &'static Host, under: Ptr, connector: Hid) -> Result<()> {
    #[repr(C)]
    struct Flush {
        operation: c_int,
        /// The rest may hold pointers, and begins where these may.
        _until: c_int,
        kind: c_int,
        scope: c_int,
    }
    let mut flush = Flush { operation: FLUSH, _until: 0, kind: FILE, scope: 0 };
    let arguments = (&raw mut flush).cast();
    let call = || host.H5VLfile_specific(under, connector, arguments, host.default_transfer(), null_mut());
    if driver::flushing(host, call)? < 0 { Err(host.failed("flush")) } else { Ok(()) }
}

/// Arguments that ask for a list.
#[repr(C)]
struct List {
    operation: c_int,
    list: Hid,
}

pub(crate) unsafe extern "C" fn get(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let file = object(pointer);
        let status = file.host.H5VLfile_get(file.under(), file.connector, arguments, transfer, request);
        file.wrap_request(request);
        if let (GET_ACCESS_LIST, Some(state), true) = (operation(arguments), &file.file, status >= 0) {
            state.restore((*arguments.cast::<List>()).list);
        }
        status
    })
}

/// Arguments about a file by its name.
#[repr(C)]
#[derive(Clone, Copy)]
struct ByName {
    operation: c_int,
    name: Text,
    list: Hid,
    accessible: *mut bool,
}

/// Arguments of a flush or of reopening.
#[repr(C)]
struct Reopen {
    operation: c_int,
    file: *mut Ptr,
}

pub(crate) unsafe extern "C" fn specific<const SLOT: usize>(
    pointer: Ptr,
    arguments: Ptr,
    transfer: Hid,
    request: Req,
) -> Herr {
    catch_panics(|| {
        let Some(host) = of_slot(SLOT) else { return -1 };
        let doing = operation(arguments);
        if let IS_ACCESSIBLE | DELETE = doing {
            if write_back_all(host) < 0 {
                return -1;
            }
            // As many bytes as the structure has: that of the other operation is shorter.
            let mut given = ByName { operation: doing, name: std::ptr::null(), list: 0, accessible: null_mut() };
            let fields = arguments.cast::<ByName>();
            (given.name, given.list) = ((*fields).name, (*fields).list);
            if doing == IS_ACCESSIBLE {
                given.accessible = (*fields).accessible;
            }
            let Some(below) = Below::new(host, given.list) else { return -1 };
            // As the files are opened, so that libhdf5 knows those that are open.
            drop(FileOpen::new(host, &below.info, below.list, &text(given.name), 0));
            given.list = below.list;
            let connector = below.info.connector;
            let status = host.H5VLfile_specific(null_mut(), connector, (&raw mut given).cast(), transfer, request);
            wrap_request(host, connector, request);
            return status;
        }
        let file = object(pointer);
        if doing == FLUSH && write_back_all(host) < 0 {
            return -1;
        }
        let call = || host.H5VLfile_specific(file.under(), file.connector, arguments, transfer, request);
        let status = match file.file.as_ref().and_then(|state| state.trace.as_ref()) {
            _ if doing != FLUSH => call(),
            Some(trace) => flushed(host, || trace.flush(call)),
            None => flushed(host, call),
        };
        file.wrap_request(request);
        if doing == FLUSH
            && let Some(state) = file.file.as_ref().filter(|state| state.parallel.is_some())
            && let Err(error) = state.take_deferred_error()
        {
            host.report(&error);
            return -1;
        }
        if doing == FLUSH {
            // What is safe should be on record too.
            host.refresh_stats(false);
        }
        if doing == REOPEN && status >= 0 {
            let again = (*arguments.cast::<Reopen>()).file;
            if !again.is_null() && !(*again).is_null() {
                if let Some(state) = &file.file {
                    state.opened();
                }
                *again = file.sibling(*again).into_ptr();
            }
        }
        status
    })
}

/// Runs a flush, and commits the files that libhdf5 has written.
fn flushed(host: &'static Host, flush: impl FnOnce() -> Herr) -> Herr {
    driver::flushing(host, flush).unwrap_or_else(|error| {
        host.report(&error);
        -1
    })
}

pub(crate) unsafe extern "C" fn optional(pointer: Ptr, arguments: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let file = object(pointer);
        if write_back_all(file.host) < 0 {
            return -1;
        }
        if let (SET_ATOMIC, Some(state)) = (operation(arguments), &file.file) {
            // Other ranks see a write at once from now on.
            state.leave_to_library("the file is in MPI-IO's atomic mode");
        }
        if let (START_SWMR, Some(state)) = (operation(arguments), &file.file) {
            state.leave_to_library("the file is written for readers that follow (SWMR)");
            state.end_rollback("it is shared with readers that follow its writer (SWMR)");
        }
        WRAPS_FOR_ITSELF.set(operation(arguments) == POST_OPEN);
        let status = file.host.H5VLfile_optional(file.under(), file.connector, arguments, transfer, request);
        WRAPS_FOR_ITSELF.set(false);
        file.wrap_request(request);
        status
    })
}

/// An error of what had waited is told once, and the file stays open; closing it again closes it.
pub(crate) unsafe extern "C" fn close(pointer: Ptr, transfer: Hid, request: Req) -> Herr {
    catch_panics(|| {
        let file = object(pointer);
        if file.under().is_null() {
            // Closed below already, by a close that told of an error.
            free(pointer);
            return 0;
        }
        let mut unwritten = None;
        if let Some(state) = &file.file {
            let guarded = file.writable && state.is_last_with_journal();
            match state.close_handle() {
                // The other ranks close it too.
                Err(error) if state.parallel.is_some() => unwritten = Some(error),
                Err(error) => {
                    file.host.report(&error);
                    return -1;
                }
                Ok(()) => {}
            }
            // Closing writes next to nothing after this, so that a failure of closing costs nothing of what was there. What
            // fails once may be made below, and then the close would succeed and commit nothing; what fails twice fails
            // again below, and is told then.
            if guarded {
                let commit = || commit(file.host, file.under(), file.connector);
                let _ = file.host.preserving_error_stack(|| commit().or_else(|_| commit()));
            }
        }
        let status = file.host.H5VLfile_close(file.under(), file.connector, transfer, request);
        file.wrap_request(request);
        if let Some(error) = unwritten {
            file.host.report(&error);
            if status >= 0 {
                file.set_under(null_mut());
            }
            return -1;
        }
        if status >= 0 {
            free(pointer);
        } else if let Some(state) = &file.file {
            FileState::opened(state);
        }
        status
    })
}
