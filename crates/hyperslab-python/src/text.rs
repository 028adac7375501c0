//! Text between C and Rust.

use hyperslab::{ErrorKind, Result};
use hyperslab_core::Error;
use std::ffi::{CString, c_char};

/// UTF-8 text of the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    bytes: *const u8,
    length: usize,
}

impl Text {
    /// Borrows text; used by tests.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self { bytes: text.as_ptr(), length: text.len() }
    }

    /// The text.
    ///
    /// # Safety
    /// `bytes` are `length` readable bytes for as long as the result is used.
    pub(crate) unsafe fn get<'a>(self) -> Result<&'a str> {
        if self.length == 0 {
            return Ok("");
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(self.bytes, self.length) };
        std::str::from_utf8(bytes).map_err(|_| Error::invalid("read text", "this is not UTF-8"))
    }
}

/// Text for C. What follows a NUL is left out.
pub(crate) fn into_c(text: String) -> *mut c_char {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default().into_raw()
}

/// The word by which Python chooses an exception.
pub(crate) fn kind_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "InvalidInput",
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Unsupported => "Unsupported",
        ErrorKind::Corrupt => "Corrupt",
        ErrorKind::Busy => "Busy",
        _ => "Io",
    }
}
