//! Stand-ins for calls that give a file another name, an attribute or times.

use crate::config::Family;
use crate::fault::{Fate, fail, on_descriptor, on_path};
use crate::path::Buffer;
use crate::real::{Real, real};
use crate::record::{self, Details, Kind, Recording};
use libc::{AT_FDCWD, size_t, timespec};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Records a call with two paths. The second one is made absolute as the first is.
///
/// # Safety
/// `new` is a C string.
unsafe fn two_paths(recording: Option<Recording>, kind: Kind, to: c_int, new: *const c_char) {
    let Some(recording) = recording else { return };
    let mut second = Buffer::new();
    // SAFETY: by contract of this function.
    unsafe { second.set_path(to, new) };
    recording.done(kind, &Details { second: second.bytes(), ..Details::default() });
}

/// Calls with two paths, of which the new one decides about faults and the old one about recording.
macro_rules! two {
    ($($family:ident $name:ident $text:literal ($($argument:ident: $type:ty),*) $from:expr, $old:ident, $to:expr, $new:ident;)+) => {$(
        /// Stands in for the function of the same name.
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller passes C strings.
            if let Fate::Fail(error) = unsafe { on_path(Family::$family, $text, $to, $new) } {
                return fail(error);
            }
            // SAFETY: as above.
            let recording = unsafe { record::on_path($from, $old) };
            let done = real!($text as fn($($type),*) -> c_int, $($argument),*);
            if done == 0 {
                // SAFETY: as above.
                unsafe { two_paths(recording, Kind::$family, $to, $new) };
            }
            done
        }
    )+};
}

two! {
    Rename rename c"rename" (old: *const c_char, new: *const c_char) AT_FDCWD, old, AT_FDCWD, new;
    Rename renameat c"renameat" (from: c_int, old: *const c_char, to: c_int, new: *const c_char) from, old, to, new;
    Rename renameat2 c"renameat2" (from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint)
        from, old, to, new;
    Link link c"link" (old: *const c_char, new: *const c_char) AT_FDCWD, old, AT_FDCWD, new;
    Link linkat c"linkat" (from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_int)
        from, old, to, new;
}

/// Stands in for `fsetxattr`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsetxattr(
    file: c_int,
    name: *const c_char,
    value: *const c_void,
    len: size_t,
    flags: c_int,
) -> c_int {
    if let Fate::Fail(error) = on_descriptor(Family::Attribute, c"fsetxattr", file) {
        return fail(error);
    }
    let recording = record::on_descriptor(file);
    let done = real!(
        c"fsetxattr" as fn(c_int, *const c_char, *const c_void, size_t, c_int) -> c_int,
        file,
        name,
        value,
        len,
        flags
    );
    if let (Some(recording), 0) = (recording, done) {
        // SAFETY: the call succeeded, so these are a C string and a value of that length.
        unsafe { attribute(recording, name, value, len) };
    }
    done
}

/// Stands in for `setxattr`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setxattr(
    path: *const c_char,
    name: *const c_char,
    value: *const c_void,
    len: size_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller passes a C string.
    if let Fate::Fail(error) = unsafe { on_path(Family::Attribute, c"setxattr", AT_FDCWD, path) } {
        return fail(error);
    }
    // SAFETY: as above.
    let recording = unsafe { record::on_path(AT_FDCWD, path) };
    let done = real!(
        c"setxattr" as fn(*const c_char, *const c_char, *const c_void, size_t, c_int) -> c_int,
        path,
        name,
        value,
        len,
        flags
    );
    if let (Some(recording), 0) = (recording, done) {
        // SAFETY: the call succeeded, so these are a C string and a value of that length.
        unsafe { attribute(recording, name, value, len) };
    }
    done
}

/// Records an attribute.
///
/// # Safety
/// The name is a C string, the value has the length given.
unsafe fn attribute(recording: Recording, name: *const c_char, value: *const c_void, len: size_t) {
    // SAFETY: by contract of this function.
    let (name, value) = unsafe {
        let value = if len == 0 { &[] } else { std::slice::from_raw_parts(value.cast::<u8>(), len) };
        (CStr::from_ptr(name).to_bytes(), value)
    };
    recording.done(Kind::SetAttribute, &Details { second: name, data: &[value], ..Details::default() });
}

/// Stands in for `fremovexattr`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fremovexattr(file: c_int, name: *const c_char) -> c_int {
    if let Fate::Fail(error) = on_descriptor(Family::Attribute, c"fremovexattr", file) {
        return fail(error);
    }
    let recording = record::on_descriptor(file);
    let done = real!(c"fremovexattr" as fn(c_int, *const c_char) -> c_int, file, name);
    if let (Some(recording), 0) = (recording, done) {
        // SAFETY: the call succeeded, so this is a C string.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        recording.done(Kind::RemoveAttribute, &Details { second: name, ..Details::default() });
    }
    done
}

/// Stands in for `futimens`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn futimens(file: c_int, times: *const timespec) -> c_int {
    if let Fate::Fail(error) = on_descriptor(Family::Attribute, c"futimens", file) {
        return fail(error);
    }
    let recording = record::on_descriptor(file);
    let done = real!(c"futimens" as fn(c_int, *const timespec) -> c_int, file, times);
    if let (Some(recording), 0) = (recording, done) {
        // SAFETY: the call succeeded, so there are none or two times.
        unsafe { modified(recording, times) };
    }
    done
}

/// Stands in for `utimensat`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimensat(
    directory: c_int,
    path: *const c_char,
    times: *const timespec,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller passes a C string or null.
    if let Fate::Fail(error) = unsafe { on_path(Family::Attribute, c"utimensat", directory, path) } {
        return fail(error);
    }
    let recording = match path.is_null() {
        true => record::on_descriptor(directory),
        // SAFETY: as above.
        false => unsafe { record::on_path(directory, path) },
    };
    let done =
        real!(c"utimensat" as fn(c_int, *const c_char, *const timespec, c_int) -> c_int, directory, path, times, flags);
    if let (Some(recording), 0) = (recording, done) {
        // SAFETY: the call succeeded, so there are none or two times.
        unsafe { modified(recording, times) };
    }
    done
}

/// Records the time of modification, if it was set.
///
/// # Safety
/// `times` is null or points to two times.
unsafe fn modified(recording: Recording, times: *const timespec) {
    let time = match times.is_null() {
        true => record::now(),
        false => {
            // SAFETY: by contract of this function.
            let time = unsafe { &*times.add(1) };
            match time.tv_nsec {
                libc::UTIME_OMIT => return,
                libc::UTIME_NOW => record::now(),
                _ => record::nanoseconds(time),
            }
        }
    };
    recording.done(Kind::Times, &Details { numbers: [time, 0, 0], ..Details::default() });
}
