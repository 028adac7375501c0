//! The functions that stand in for those of the C library.

use crate::config::{Family, LONGEST};
use crate::fault::{Fate, fail, on_descriptor, on_path};
use crate::real::{Real, real};
use crate::record::{self, Details, Kind};
use crate::restart;
use crate::slow;
use libc::{AT_FDCWD, iovec, mode_t, off_t, off64_t, size_t, ssize_t};
use std::ffi::{c_char, c_int, c_void};

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
            let recording = if $family == Family::Write { record::on_descriptor(file) } else { None };
            let done = real!($text as fn(c_int, $pointer, size_t $(, $type)?) -> ssize_t, file, data, len $(, $offset)?);
            if let Some(recording) = recording {
                // SAFETY: the buffer has the length given, and no more than that was written.
                unsafe { recording.wrote(file, [$($offset)?].first().copied(), &[record::part(data, len)], done) };
            }
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
            let recording = if $family == Family::Write { record::on_descriptor(file) } else { None };
            let done = real!($text as fn(c_int, *const iovec, c_int $(, $type)*) -> ssize_t, file, parts, count $(, $more)*);
            if let (Some(recording), Ok(count)) = (recording, usize::try_from(count)) {
                // SAFETY: the call succeeded or wrote nothing, so there are as many parts as said.
                let parts = if done > 0 { unsafe { std::slice::from_raw_parts(parts, count) } } else { &[] };
                // SAFETY: the parts hold what was written.
                unsafe { recording.wrote(file, [$(i64::from($more)),*].first().copied(), parts, done) };
            }
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
    ($family:expr, $kind:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*) [$($number:expr),*]),+ $(,)?) => {$(
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
            let recording = record::on_descriptor(file);
            let done = real!($text as fn(c_int $(, $type)*) -> c_int, file $(, $more)*);
            if let (Some(recording), 0) = (recording, done) {
                recording.done($kind, &Details { numbers: [$($number),*], ..Details::default() });
            }
            slow::wait(due);
            done
        }
    )+};
}

plain!(Family::Sync, Kind::Sync,
    fsync c"fsync" () [0, 0, 0],
    fdatasync c"fdatasync" () [1, 0, 0],
    syncfs c"syncfs" () [2, 0, 0],
);
plain!(Family::Truncate, Kind::Truncate,
    ftruncate c"ftruncate" (len: off_t) [len, 0, 0],
    ftruncate64 c"ftruncate64" (len: off64_t) [len, 0, 0],
);
plain!(Family::Truncate, Kind::Allocate,
    fallocate c"fallocate" (mode: c_int, offset: off_t, len: off_t) [offset, len, i64::from(mode)],
    fallocate64 c"fallocate64" (mode: c_int, offset: off64_t, len: off64_t) [offset, len, i64::from(mode)],
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
            let recording = match flags & (libc::O_CREAT | libc::O_TRUNC) {
                0 => None,
                // SAFETY: the caller passes a C string.
                _ => unsafe { record::on_path(AT_FDCWD, path) },
            };
            let mut other = [0; LONGEST];
            // SAFETY: the caller passes a C string.
            let path = unsafe { restart::instead(path, &mut other) };
            let file = real!($text as fn(*const c_char, c_int, mode_t) -> c_int, path, flags, mode);
            if let (Some(recording), 0..) = (recording, file) {
                recording.done(Kind::Open, &Details { numbers: [i64::from(flags), 0, 0], ..Details::default() });
            }
            file
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
            let recording = match flags & (libc::O_CREAT | libc::O_TRUNC) {
                0 => None,
                // SAFETY: the caller passes a C string.
                _ => unsafe { record::on_path(directory, path) },
            };
            let file = real!($text as fn(c_int, *const c_char, c_int, mode_t) -> c_int, directory, path, flags, mode);
            if let (Some(recording), 0..) = (recording, file) {
                recording.done(Kind::Open, &Details { numbers: [i64::from(flags), 0, 0], ..Details::default() });
            }
            file
        }
    )+};
}
open_at!(openat c"openat", openat64 c"openat64");

/// Calls that name one path.
macro_rules! named {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*) $kind:ident [$number:expr]),+ $(,)?) => {$(
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
            // SAFETY: the caller passes a C string.
            let recording = unsafe { record::on_path(AT_FDCWD, path) };
            let done = real!($text as fn(*const c_char $(, $type)*) -> c_int, path $(, $more)*);
            if let (Some(recording), 0) = (recording, done) {
                recording.done(Kind::$kind, &Details { numbers: [$number, 0, 0], ..Details::default() });
            }
            done
        }
    )+};
}
named!(Family::Unlink, unlink c"unlink" () Unlink [0], rmdir c"rmdir" () Rmdir [0]);
named!(Family::Mkdir, mkdir c"mkdir" (mode: mode_t) Mkdir [0]);
named!(Family::Truncate,
    truncate c"truncate" (len: off_t) Truncate [len],
    truncate64 c"truncate64" (len: off64_t) Truncate [len],
);

/// Calls that name one path relative to a directory.
macro_rules! named_at {
    ($family:expr, $($name:ident $text:literal ($($more:ident: $type:ty),*) [$kind:expr]),+ $(,)?) => {$(
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
            // SAFETY: the caller passes a C string.
            let recording = unsafe { record::on_path(directory, path) };
            let done = real!($text as fn(c_int, *const c_char $(, $type)*) -> c_int, directory, path $(, $more)*);
            if let (Some(recording), 0) = (recording, done) {
                recording.done($kind, &Details::default());
            }
            done
        }
    )+};
}
named_at!(Family::Unlink,
    unlinkat c"unlinkat" (flags: c_int) [if flags & libc::AT_REMOVEDIR == 0 { Kind::Unlink } else { Kind::Rmdir }],
);
named_at!(Family::Mkdir, mkdirat c"mkdirat" (mode: mode_t) [Kind::Mkdir]);
