//! The error stack of libhdf5 as our one error type.

use hdf5_metno_sys::h5e::{self, H5E_error2_t};
use hdf5_metno_sys::h5i::hid_t;
use hyperslab_core::{Error, ErrorKind};
use std::ffi::{CStr, c_uint, c_void};
use std::fmt;

/// How many levels of the error stack are kept.
const MAX_FRAMES: usize = 32;

/// One level of libhdf5's error stack.
#[derive(Debug)]
struct Frame {
    minor: hid_t,
    function: String,
    message: String,
}

/// The whole stack, innermost first: the cause attached to our errors.
#[derive(Debug)]
struct Trace(Vec<Frame>);

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("libhdf5: ")?;
        for (i, frame) in self.0.iter().enumerate() {
            write!(f, "{}{} ({})", if i == 0 { "" } else { "; " }, frame.message, frame.function)?;
        }
        Ok(())
    }
}

impl std::error::Error for Trace {}

/// The error of the libhdf5 call that has just failed; clears the stack. Call under [`super::library::with`].
pub(super) fn last(operation: &'static str) -> Error {
    let mut frames: Vec<Frame> = Vec::new();
    // SAFETY: the callback gets exactly the vector passed here, which outlives the walk.
    unsafe {
        h5e::H5Ewalk2(h5e::H5E_DEFAULT, h5e::H5E_WALK_UPWARD, Some(collect), (&raw mut frames).cast());
        h5e::H5Eclear2(h5e::H5E_DEFAULT);
    }
    classify(operation, &frames).backend(super::NAME).source(Trace(frames))
}

/// Copies one level of the stack. Must not unwind into C.
unsafe extern "C" fn collect(_n: c_uint, frame: *const H5E_error2_t, client: *mut c_void) -> i32 {
    // SAFETY: `client` is the vector of `last`; libhdf5 passes a valid frame.
    let (frames, frame) = unsafe { (&mut *client.cast::<Vec<Frame>>(), &*frame) };
    if frames.len() < MAX_FRAMES {
        let text = |p: *const std::ffi::c_char| {
            if p.is_null() {
                return String::new();
            }
            // SAFETY: libhdf5 gives NUL-terminated text where it is not null.
            unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
        };
        frames.push(Frame { minor: frame.min_num, function: text(frame.func_name), message: text(frame.desc) });
    }
    0
}

fn classify(operation: &'static str, frames: &[Frame]) -> Error {
    let says = |words: &str| frames.iter().any(|f| f.message.contains(words));
    let code = |id: hid_t| frames.iter().any(|f| f.minor == id);
    if let Some(number) = frames.iter().find_map(|f| errno(&f.message)) {
        let error = Error::io(operation, std::io::Error::from_raw_os_error(number));
        return if says("unable to lock file") {
            error.hint("another program has the file open; close it there, or use locking=no if you know it is safe")
        } else {
            error
        };
    }
    let innermost = frames.first().map_or_else(|| "libhdf5 gave no reason".to_owned(), |f| f.message.clone());
    let (kind, message) = if code(*h5e::H5E_FILEEXISTS) {
        (ErrorKind::AlreadyExists, "the file exists".to_owned())
    } else if code(*h5e::H5E_NOTHDF5) {
        (ErrorKind::InvalidInput, "this is not an HDF5 file".to_owned())
    } else if code(*h5e::H5E_TRUNCATED) || says("checksum") || code(*h5e::H5E_BADFILE) {
        (ErrorKind::Corrupt, innermost)
    } else if code(*h5e::H5E_NOFILTER) || says("required filter") {
        (ErrorKind::Unsupported, innermost)
    } else if says("MPI_ERR_NO_SPACE") || says("MPI_ERR_QUOTA") {
        (ErrorKind::NoSpace, innermost)
    } else {
        (ErrorKind::Io, innermost)
    };
    let error = Error::new(kind, operation, message);
    if says("already open") {
        return error.hint("close it first; a file that could not be written stays open until the program ends");
    }
    if says("object header message is too large") {
        return error.hint("attributes over 64 KiB need a file created with libver=v18 or later");
    }
    error
}

/// The number in "errno = 28, ..."; libhdf5 keeps the system's error only as text.
fn errno(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("errno = ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_error_is_found_in_the_text() {
        assert_eq!(errno("file write failed: file descriptor = 3, errno = 28, error message = 'No space'"), Some(28));
        assert_eq!(errno("unable to open file: name = 'x', errno = 2"), Some(2));
        assert_eq!(errno("errno = 0"), None);
        assert_eq!(errno("nothing"), None);
    }

    #[test]
    fn a_full_disk_is_a_kind_of_its_own() {
        let frame = |message: &str| Frame { minor: 0, function: "f".into(), message: message.into() };
        let error = classify("write", &[frame("file write failed: errno = 28, x"), frame("can't write data")]);
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let error = classify("open", &[frame("unable to open file: errno = 2, x")]);
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
