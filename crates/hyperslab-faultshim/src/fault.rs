//! Whether this call fails.

use crate::config::{self, Family, KILL, LONGEST, SHORT};
use crate::path::Buffer;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static CALLS: AtomicU64 = AtomicU64::new(0);
static MARKED: AtomicBool = AtomicBool::new(false);

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes through.
    Pass,
    /// It transfers half of what was asked.
    Half,
    /// It fails with this error number.
    Fail(c_int),
}

/// The fate of a call on an open descriptor.
pub(crate) fn on_descriptor(family: Family, name: &'static CStr, descriptor: c_int) -> Fate {
    if !config::active() || !config::concerns(family) {
        return Fate::Pass;
    }
    let mut path = Buffer::new();
    path.set_descriptor(descriptor);
    decide(name, path.bytes())
}

/// The fate of a call that names a path.
///
/// # Safety
/// `path` is null or a C string.
pub(crate) unsafe fn on_path(family: Family, name: &'static CStr, directory: c_int, path: *const c_char) -> Fate {
    if !config::active() || !config::concerns(family) {
        return Fate::Pass;
    }
    let mut buffer = Buffer::new();
    // SAFETY: by contract of this function.
    unsafe { buffer.set_path(directory, path) };
    decide(name, buffer.bytes())
}

fn decide(name: &'static CStr, path: &[u8]) -> Fate {
    if !config::matches(path) {
        return Fate::Pass;
    }
    match config::fault_at(CALLS.fetch_add(1, Relaxed) + 1) {
        0 => Fate::Pass,
        fault => {
            mark(name);
            match fault {
                SHORT => Fate::Half,
                KILL => die(),
                fault => Fate::Fail(fault),
            }
        }
    }
}

/// Ends this process as `kill -9` does.
fn die() -> Fate {
    // SAFETY: the process signals itself; the signal cannot be caught.
    unsafe { libc::syscall(libc::SYS_kill, libc::getpid(), libc::SIGKILL) };
    Fate::Pass
}

/// Leaves word that a fault was injected, by system calls alone.
fn mark(name: &'static CStr) {
    let mut path = [0; LONGEST];
    if MARKED.swap(true, Relaxed) || !config::mark(&mut path) {
        return;
    }
    let text = name.to_bytes();
    // SAFETY: the path is a C string, since its last byte is never set; the text has the length given; the descriptor
    // is one just opened.
    unsafe {
        let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644);
        if file >= 0 {
            libc::syscall(libc::SYS_write, file, text.as_ptr(), text.len());
            libc::syscall(libc::SYS_close, file);
        }
    }
}

/// Sets the error number and returns -1.
pub(crate) fn fail(error: c_int) -> c_int {
    // SAFETY: the C library hands out the address of this thread's error number.
    unsafe { *libc::__errno_location() = error };
    -1
}
