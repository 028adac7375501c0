//! The functions that stand in for those of the C library.

use crate::config::Family;
use crate::fault::{Fate, fail, on_descriptor, on_path};
use crate::real::Real;
use crate::slow;
use libc::{AT_FDCWD, iovec, mode_t, off_t, off64_t, size_t, ssize_t};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Calls the real function behind a stand-in, or fails as the kernel does for calls it does not know.
macro_rules! real {
    ($name:literal as fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        static REAL: Real = Real::new($name);
        let address = REAL.address();
        if address.is_null() {
            return fail(libc::ENOSYS) as $result;
        }
        // SAFETY: the C library declares the function of this name with this type; the arguments are the caller's.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> $result = std::mem::transmute(address);
            function($($argument),*)
        }
    }};
}

/// Transfers of one buffer: the middle arguments are the same, an offset may follow.
macro_rules! transfer {
    ($family:expr, $pointer:ty, $($name:ident $text:literal ($($offset:ident: $type:ty)?)),+ $(,)?) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int, data: $pointer, len: size_t $(, $offset: $type)?) -> ssize_t {
            let len = match on_descriptor($family, $text, file) {
                Fate::Fail(error) => return fail(error) as ssize_t,
                Fate::Half if len > 1 => len / 2,
                _ => len,
            };
            let due = slow::request(file, len);
            let done = real!($text as fn(c_int, $pointer, size_t $(, $type)?) -> ssize_t, file, data, len $(, $offset)?);
            slow::wait(due);
            done
        }
    )+};
}

transfer!(Family::Write, *const c_void,
    write c"write" (),
    pwrite c"pwrite" (offset: off_t),
    pwrite64 c"pwrite64" (offset: off64_t),
);
transfer!(Family::Read, *mut c_void,
    read c"read" (),
    pread c"pread" (offset: off_t),
    pread64 c"pread64" (offset: off64_t),
);

/// Transfers of several buffers. Half of them is half of the first.
macro_rules! vectored {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*)),+ $(,)?) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int, parts: *const iovec, count: c_int $(, $more: $type)*) -> ssize_t {
            let mut half;
            let (parts, count) = match on_descriptor($family, $text, file) {
                Fate::Fail(error) => return fail(error) as ssize_t,
                Fate::Half if count > 0 && !parts.is_null() => {
                    // SAFETY: the caller hands over `count` parts.
                    half = unsafe { *parts };
                    half.iov_len = half.iov_len.div_ceil(2);
                    (&raw const half, 1)
                }
                _ => (parts, count),
            };
            // SAFETY: the caller hands over `count` parts.
            let due = slow::request(file, unsafe { slow::lengths(parts, count) });
            let done = real!($text as fn(c_int, *const iovec, c_int $(, $type)*) -> ssize_t, file, parts, count $(, $more)*);
            slow::wait(due);
            done
        }
    )+};
}

vectored!(Family::Write,
    writev c"writev" (),
    pwritev c"pwritev" (offset: off_t),
    pwritev64 c"pwritev64" (offset: off64_t),
    pwritev2 c"pwritev2" (offset: off_t, flags: c_int),
    pwritev64v2 c"pwritev64v2" (offset: off64_t, flags: c_int),
);
vectored!(Family::Read,
    readv c"readv" (),
    preadv c"preadv" (offset: off_t),
    preadv64 c"preadv64" (offset: off64_t),
    preadv2 c"preadv2" (offset: off_t, flags: c_int),
    preadv64v2 c"preadv64v2" (offset: off64_t, flags: c_int),
);

/// Calls on a descriptor that transfer nothing.
macro_rules! plain {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*)),+ $(,)?) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(file: c_int $(, $more: $type)*) -> c_int {
            if let Fate::Fail(error) = on_descriptor($family, $text, file) {
                return fail(error);
            }
            let due = slow::request(file, 0);
            let done = real!($text as fn(c_int $(, $type)*) -> c_int, file $(, $more)*);
            slow::wait(due);
            done
        }
    )+};
}

plain!(Family::Sync, fsync c"fsync" (), fdatasync c"fdatasync" (), syncfs c"syncfs" ());
plain!(Family::Truncate,
    ftruncate c"ftruncate" (len: off_t),
    ftruncate64 c"ftruncate64" (len: off64_t),
    fallocate c"fallocate" (mode: c_int, offset: off_t, len: off_t),
    fallocate64 c"fallocate64" (mode: c_int, offset: off64_t, len: off64_t),
);

/// Stands in for `close`. The descriptor is closed even if the call reports a failure, as Linux does.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(file: c_int) -> c_int {
    let fate = on_descriptor(Family::Close, c"close", file);
    let result = real!(c"close" as fn(c_int) -> c_int, file);
    match fate {
        Fate::Fail(error) => fail(error),
        _ => result,
    }
}

/// Opening. The mode is variadic in C; on the machines supported here it travels in a register all the same, and
/// whatever is in that register is ignored unless a file is created.
macro_rules! open {
    ($($name:ident $text:literal),+) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller passes a C string.
            if let Fate::Fail(error) = unsafe { on_path(Family::Open, $text, AT_FDCWD, path) } {
                return fail(error);
            }
            real!($text as fn(*const c_char, c_int, mode_t) -> c_int, path, flags, mode)
        }
    )+};
}
open!(open c"open", open64 c"open64");

/// Like `open!`, relative to a directory.
macro_rules! open_at {
    ($($name:ident $text:literal),+) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller passes a C string.
            if let Fate::Fail(error) = unsafe { on_path(Family::Open, $text, directory, path) } {
                return fail(error);
            }
            real!($text as fn(c_int, *const c_char, c_int, mode_t) -> c_int, directory, path, flags, mode)
        }
    )+};
}
open_at!(openat c"openat", openat64 c"openat64");

/// Calls that name one path.
macro_rules! named {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*)),+ $(,)?) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char $(, $more: $type)*) -> c_int {
            // SAFETY: the caller passes a C string.
            if let Fate::Fail(error) = unsafe { on_path($family, $text, AT_FDCWD, path) } {
                return fail(error);
            }
            real!($text as fn(*const c_char $(, $type)*) -> c_int, path $(, $more)*)
        }
    )+};
}
named!(Family::Unlink, unlink c"unlink" (), rmdir c"rmdir" ());
named!(Family::Mkdir, mkdir c"mkdir" (mode: mode_t));
named!(Family::Truncate, truncate c"truncate" (len: off_t), truncate64 c"truncate64" (len: off64_t));

/// Calls that name one path relative to a directory.
macro_rules! named_at {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*)),+ $(,)?) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(directory: c_int, path: *const c_char $(, $more: $type)*) -> c_int {
            // SAFETY: the caller passes a C string.
            if let Fate::Fail(error) = unsafe { on_path($family, $text, directory, path) } {
                return fail(error);
            }
            real!($text as fn(c_int, *const c_char $(, $type)*) -> c_int, directory, path $(, $more)*)
        }
    )+};
}
named_at!(Family::Unlink, unlinkat c"unlinkat" (flags: c_int));
named_at!(Family::Mkdir, mkdirat c"mkdirat" (mode: mode_t));

/// Stands in for `rename`; the new path counts.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(old: *const c_char, new: *const c_char) -> c_int {
    // SAFETY: the caller passes C strings.
    if let Fate::Fail(error) = unsafe { on_path(Family::Rename, c"rename", AT_FDCWD, new) } {
        return fail(error);
    }
    real!(c"rename" as fn(*const c_char, *const c_char) -> c_int, old, new)
}

/// Stands in for `renameat`; the new path counts.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(from: c_int, old: *const c_char, to: c_int, new: *const c_char) -> c_int {
    // SAFETY: the caller passes C strings.
    if let Fate::Fail(error) = unsafe { on_path(Family::Rename, c"renameat", to, new) } {
        return fail(error);
    }
    real!(c"renameat" as fn(c_int, *const c_char, c_int, *const c_char) -> c_int, from, old, to, new)
}

/// Stands in for `renameat2`; the new path counts.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from: c_int,
    old: *const c_char,
    to: c_int,
    new: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller passes C strings.
    if let Fate::Fail(error) = unsafe { on_path(Family::Rename, c"renameat2", to, new) } {
        return fail(error);
    }
    real!(c"renameat2" as fn(c_int, *const c_char, c_int, *const c_char, c_uint) -> c_int, from, old, to, new, flags)
}
