//! What MPI says went wrong, as the workspace's error.

use hyperslab_core::{Error, ErrorKind, Result};
use mpi_sys as ffi;
use std::ffi::{c_char, c_int};
use std::io;

/// Calls MPI and turns its answer into a result. MPI must run.
pub(super) fn call(operation: &'static str, work: impl FnOnce() -> c_int) -> Result<()> {
    // SAFETY: the address is that of this thread's own `errno`.
    unsafe { *libc::__errno_location() = 0 };
    let code = work();
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(error(operation, code, io::Error::last_os_error())) }
}

fn error(operation: &'static str, code: c_int, cause: io::Error) -> Error {
    let mut class = 0;
    let mut text = vec![0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: MPI runs, the code came from it, and the buffer has the length it asks for, and one more.
    unsafe {
        ffi::MPI_Error_class(code, &raw mut class);
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut len);
    }
    let text: Vec<u8> = text.iter().take(usize::try_from(len).unwrap_or(0)).map(|c| *c as u8).collect();
    let text = String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned();
    let (kind, hint) = match class as u32 {
        ffi::MPI_ERR_NO_SPACE | ffi::MPI_ERR_QUOTA => {
            (ErrorKind::NoSpace, Some("free some space or choose another directory"))
        }
        ffi::MPI_ERR_NO_SUCH_FILE => (ErrorKind::NotFound, None),
        ffi::MPI_ERR_FILE_EXISTS => (ErrorKind::AlreadyExists, None),
        ffi::MPI_ERR_ACCESS | ffi::MPI_ERR_READ_ONLY => (ErrorKind::Io, Some("check the permissions of the directory")),
        ffi::MPI_ERR_UNSUPPORTED_OPERATION | ffi::MPI_ERR_UNSUPPORTED_DATAREP => (ErrorKind::Unsupported, None),
        // Libraries often say no more than that something failed; the system said what, just before.
        _ if cause.raw_os_error() != Some(0) => {
            let system = Error::io(operation, cause);
            let hint = (system.kind() == ErrorKind::NoSpace).then_some("free some space or choose another directory");
            let message = format!("{text} (the system's last word: {})", message_of(&system));
            return with_hint(Error::new(system.kind(), operation, message), hint).source(system);
        }
        _ => (ErrorKind::Io, None),
    };
    with_hint(Error::new(kind, operation, text), hint)
}

fn message_of(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn with_hint(error: Error, hint: Option<&'static str>) -> Error {
    hint.into_iter().fold(error, Error::hint)
}
