//! Groups and arrays by name: paths, kinds, and the list of all arrays.

use super::errors;
use super::library::{Id, c_text, done, truth};
use hdf5_metno_sys::h5::{H5_INDEX_NAME, H5_ITER_INC};
use hdf5_metno_sys::h5o::{self, H5O_INFO_BASIC, H5O_info2_t, H5O_type_t};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5i::hid_t, h5l};
use hyperslab_core::{Error, ErrorKind, Result};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Group,
    Array,
    Other,
}

/// The path of an object as libhdf5 wants it; the root is `/`. Refuses names that would mean something else there.
pub(super) fn path(operation: &'static str, name: &str) -> Result<CString> {
    if name.is_empty() {
        return Ok(c"/".to_owned());
    }
    if name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err(Error::invalid(operation, format!("{name:?} is not a path such as a/b/c")).backend(super::NAME));
    }
    c_text(operation, name)
}

/// Looks along `name`, following soft links. Says in words when something on the way is not a group.
/// Call under the lock, as everything here.
pub(super) fn probe(operation: &'static str, file: &Id, name: &str) -> Result<Found> {
    let mut found = Found::Group;
    let ends = name.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at).chain([name.len()]);
    for end in ends.filter(|&end| end > 0) {
        if found != Found::Group {
            let above = &name[..name[..end].rfind('/').unwrap_or(0)];
            return Err(Error::invalid(operation, format!("{above:?} is not a group")).backend(super::NAME));
        }
        let part = c_text(operation, &name[..end])?;
        // SAFETY: the file is live, the name ends in NUL, and libhdf5 fills the structure when it succeeds.
        found = unsafe {
            if !truth(operation, h5l::H5Lexists(file.raw(), part.as_ptr(), H5P_DEFAULT))?
                || !truth(operation, h5o::H5Oexists_by_name(file.raw(), part.as_ptr(), H5P_DEFAULT))?
            {
                return Ok(Found::Nothing);
            }
            let mut info = MaybeUninit::<H5O_info2_t>::zeroed();
            let status =
                h5o::H5Oget_info_by_name3(file.raw(), part.as_ptr(), info.as_mut_ptr(), H5O_INFO_BASIC, H5P_DEFAULT);
            done(operation, status)?;
            kind(info.assume_init_ref())
        };
    }
    Ok(found)
}

fn kind(info: &H5O_info2_t) -> Found {
    match info.type_ {
        H5O_type_t::H5O_TYPE_GROUP => Found::Group,
        H5O_type_t::H5O_TYPE_DATASET => Found::Array,
        _ => Found::Other,
    }
}

/// Turns the failure to open `name` into the reason: not there, or something else.
pub(super) fn why_not(operation: &'static str, file: &Id, name: &str, wanted: Found, failure: Error) -> Error {
    match probe(operation, file, name) {
        Ok(Found::Nothing) => Error::new(ErrorKind::NotFound, operation, "there is no such object in the file"),
        Ok(found) if wanted == Found::Array && found != wanted => Error::invalid(
            operation,
            if found == Found::Group { "this is a group, not an array" } else { "this is not an array" },
        ),
        Ok(_) => failure,
        Err(on_the_way) => on_the_way,
    }
    .backend(super::NAME)
    .target(name)
}

/// Opens the root, a group or an array, with an access list.
pub(super) fn open(operation: &'static str, file: &Id, name: &str, access: hid_t) -> Result<Id> {
    let text = path(operation, name)?;
    // SAFETY: the file is live, the name ends in NUL.
    Id::take(operation, unsafe { h5o::H5Oopen(file.raw(), text.as_ptr(), access) })
        .map_err(|failure| why_not(operation, file, name, Found::Other, failure))
}

/// The names of all arrays, sorted. Soft and external links are not followed; every array is named once.
pub(super) fn arrays(file: &Id) -> Result<Vec<String>> {
    list("list arrays", file, Found::Array)
}

/// The names of all groups but the root, as of arrays.
pub(super) fn groups(file: &Id) -> Result<Vec<String>> {
    let mut names = list("list groups", file, Found::Group)?;
    names.retain(|name| name != ".");
    Ok(names)
}

/// What a walk looks for, and what it found.
struct Walk {
    wanted: Found,
    names: Vec<String>,
}

fn list(operation: &'static str, file: &Id, wanted: Found) -> Result<Vec<String>> {
    let mut walk = Walk { wanted, names: Vec::new() };
    // SAFETY: the callback gets exactly the structure passed here, which outlives the walk.
    let status = unsafe {
        h5o::H5Ovisit3(file.raw(), H5_INDEX_NAME, H5_ITER_INC, Some(visit), (&raw mut walk).cast(), H5O_INFO_BASIC)
    };
    if status < 0 {
        return Err(errors::last(operation));
    }
    walk.names.sort_unstable();
    Ok(walk.names)
}

/// Keeps the name of one object. Must not unwind into C.
extern "C" fn visit(_at: hid_t, name: *const c_char, info: *const H5O_info2_t, client: *mut c_void) -> i32 {
    // SAFETY: `client` is the walk of `list`; libhdf5 passes a valid structure and NUL-terminated text.
    let (walk, info, name) = unsafe { (&mut *client.cast::<Walk>(), &*info, CStr::from_ptr(name)) };
    if kind(info) == walk.wanted {
        walk.names.push(name.to_string_lossy().into_owned());
    }
    0
}
