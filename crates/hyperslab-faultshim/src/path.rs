//! Paths without memory of their own.

use crate::config::LONGEST;
use std::ffi::{CStr, c_char, c_int};

/// Room for two paths in a row.
pub(crate) struct Buffer {
    bytes: [u8; 2 * LONGEST],
    len: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 2 * LONGEST], len: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, more: &[u8]) {
        let room = self.bytes.len() - self.len;
        let taken = more.len().min(room);
        self.bytes[self.len..self.len + taken].copy_from_slice(&more[..taken]);
        self.len += taken;
    }

    /// The path behind an open descriptor; empty if the kernel does not say.
    pub(crate) fn set_descriptor(&mut self, descriptor: c_int) {
        self.len = 0;
        let Ok(mut number) = u32::try_from(descriptor) else { return };
        let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
        let mut digits = [0; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        link[14..14 + digits.len() - first].copy_from_slice(&digits[first..]);
        // SAFETY: the link is a C string and the buffer has the length given.
        let len = unsafe {
            libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, link.as_ptr(), self.bytes.as_mut_ptr(), LONGEST)
        };
        self.len = usize::try_from(len).unwrap_or(0);
    }

    /// A path relative to a directory descriptor.
    ///
    /// # Safety
    /// `path` is null or a C string.
    pub(crate) unsafe fn set_path(&mut self, directory: c_int, path: *const c_char) {
        self.len = 0;
        if path.is_null() {
            return;
        }
        // SAFETY: not null, so a C string by contract.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        if path.first() != Some(&b'/') && directory != libc::AT_FDCWD {
            self.set_descriptor(directory);
            self.push(b"/");
        }
        self.push(path);
    }
}
