//! A machine that seems to have been started anew.

use crate::config::{LONGEST, Text, variable};
use libc::c_char;
use std::ffi::CStr;

const BOOT: &CStr = c"/proc/sys/kernel/random/boot_id";

static INSTEAD: Text = Text::new();

pub(crate) fn start() {
    if let Some(value) = variable(c"HYPERSLAB_RESTARTED") {
        INSTEAD.set(value);
    }
}

/// What is opened instead of a path, as a C string that may lie in `out`.
///
/// # Safety
/// `path` is a C string.
pub(crate) unsafe fn instead(path: *const c_char, out: &mut [u8; LONGEST]) -> *const c_char {
    // SAFETY: the caller passes a C string.
    if unsafe { CStr::from_ptr(path) } == BOOT && INSTEAD.copy_to(out) > 0 { out.as_ptr().cast() } else { path }
}
