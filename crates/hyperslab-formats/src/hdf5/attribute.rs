//! Attributes of an open object. Call everything here under the lock.

use super::dataspace;
use super::datatype;
use super::errors;
use super::library::{Id, c_text, done, hid_t, truth};
use super::properties;
use super::strings::{self, Pointers};
use hdf5_metno_sys::h5::{H5_INDEX_CRT_ORDER, H5_INDEX_NAME, H5_ITER_INC, H5_index_t};
use hdf5_metno_sys::h5a::{self, H5A_info_t};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hyperslab_core::{Attribute, Datatype, Dims, Error, ErrorKind, Result, Strings, dims};
use std::ffi::{CStr, c_char, c_void};

const SETTING: &str = "set attribute";
const READING: &str = "read attribute";
/// Most bytes of one attribute that are read.
const MAX_BYTES: u64 = 256 << 20;
/// Name of the new value while the old one is still there.
const BESIDE: &str = ".new";

/// Refuses names and values that contradict themselves.
pub(super) fn check(name: &str, value: &Attribute) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid(SETTING, "an attribute needs a name"));
    }
    value.check()?;
    c_text(SETTING, name).map(|_| ())
}

/// Sets the attribute `name`, replacing an earlier value only once the new one is written. Both have passed [`check`].
pub(super) fn set(object: &Id, name: &str, value: &Attribute) -> Result<()> {
    let kind = datatype::create(&value.dtype)?;
    if matches!(value.dtype, Datatype::FixedString(_)) && !value.data.is_ascii() {
        datatype::mark_utf8(&kind)?;
    }
    let space = dataspace::simple(&value.shape, None)?;
    if let (Datatype::VariableString, Some(texts)) = (&value.dtype, value.texts()) {
        let pointers = Pointers::new(texts);
        // SAFETY: there is one pointer to text for each element ([`check`]).
        return unsafe { replace(object, name, &kind, &space, pointers.as_ptr().cast()) };
    }
    // SAFETY: the data has the bytes that type and space say ([`check`]).
    unsafe { replace(object, name, &kind, &space, value.data.as_ptr().cast()) }
}

/// Sets the attribute `name`, replacing an earlier value only once the new one is written.
///
/// # Safety
/// `data` points to the elements that `kind` and `space` say.
pub(super) unsafe fn replace(object: &Id, name: &str, kind: &Id, space: &Id, data: *const c_void) -> Result<()> {
    let text = c_text(SETTING, name)?;
    let beside = c_text(SETTING, &format!("{name}{BESIDE}"))?;
    // SAFETY: the object is live and the names end in NUL; the caller vouches for the data.
    unsafe {
        let replaces = truth(SETTING, h5a::H5Aexists(object.raw(), text.as_ptr()))?;
        let target = if replaces { &beside } else { &text };
        if replaces && truth(SETTING, h5a::H5Aexists(object.raw(), beside.as_ptr()))? {
            done(SETTING, h5a::H5Adelete(object.raw(), beside.as_ptr()))?;
        }
        let creation = properties::attribute_creation()?;
        let made = h5a::H5Acreate2(object.raw(), target.as_ptr(), kind.raw(), space.raw(), creation.raw(), H5P_DEFAULT);
        let attribute = Id::take(SETTING, made)?;
        done(SETTING, h5a::H5Awrite(attribute.raw(), kind.raw(), data))?;
        attribute.close(SETTING)?;
        if replaces {
            done(SETTING, h5a::H5Adelete(object.raw(), text.as_ptr()))?;
            done(SETTING, h5a::H5Arename(object.raw(), beside.as_ptr(), text.as_ptr()))?;
        }
    }
    Ok(())
}

/// Reads the attribute `name`.
pub(super) fn get(object: &Id, name: &str) -> Result<Attribute> {
    let text = c_text(READING, name)?;
    // SAFETY: the object is live, the name ends in NUL.
    let (attribute, kind, space) = unsafe {
        if !truth(READING, h5a::H5Aexists(object.raw(), text.as_ptr()))? {
            return Err(Error::new(ErrorKind::NotFound, READING, "there is no such attribute"));
        }
        let attribute = Id::take(READING, h5a::H5Aopen(object.raw(), text.as_ptr(), H5P_DEFAULT))?;
        let kind = Id::take(READING, h5a::H5Aget_type(attribute.raw()))?;
        let space = Id::take(READING, h5a::H5Aget_space(attribute.raw()))?;
        (attribute, kind, space)
    };
    let extents = dataspace::extents(&space)?;
    let empty = extents.is_none();
    let shape = extents.map_or_else(|| Dims::from_slice(&[0]), |e| e.shape);
    if datatype::is_variable_string(&kind)? {
        return if empty {
            Ok(Attribute::strings(&shape, &Strings::new()))
        } else {
            variable_text(&attribute, &kind, &space, &shape)
        };
    }
    let stored = datatype::read(&kind)?;
    let bytes = bounded(dims::byte_count(&shape, stored.dtype.size())?)?;
    let mut data = vec![0u8; bytes];
    if bytes > 0 {
        // SAFETY: the buffer has the bytes that the attribute's shape and the memory type say.
        done(READING, unsafe { h5a::H5Aread(attribute.raw(), stored.memory.raw(), data.as_mut_ptr().cast()) })?;
    }
    Ok(Attribute { dtype: stored.dtype, shape, data })
}

fn bounded(bytes: u64) -> Result<usize> {
    if bytes > MAX_BYTES {
        return Err(Error::unsupported(READING, format!("{bytes} bytes are too many for an attribute")));
    }
    Ok(bytes as usize)
}

fn variable_text(attribute: &Id, kind: &Id, space: &Id, shape: &[u64]) -> Result<Attribute> {
    let elements = dims::element_count(shape)?;
    bounded(elements.saturating_mul(size_of::<*mut c_char>() as u64))?;
    let mut pointers: Vec<*mut c_char> = vec![std::ptr::null_mut(); elements as usize];
    if pointers.is_empty() {
        return Ok(Attribute::strings(shape, &Strings::new()));
    }
    // SAFETY: there is one pointer per element; libhdf5 fills them with NUL-terminated text of its own (or null),
    // which is copied before it is given back.
    unsafe {
        done(READING, h5a::H5Aread(attribute.raw(), kind.raw(), pointers.as_mut_ptr().cast()))?;
        let texts = strings::copied(&pointers);
        strings::reclaim(kind, space, &mut pointers)?;
        bounded(texts.bytes())?;
        Ok(Attribute::strings(shape, &texts))
    }
}

/// Names of the attributes of an object, sorted.
pub(super) fn names(object: &Id) -> Result<Vec<String>> {
    let mut names = walk(object, H5_INDEX_NAME)?;
    names.sort_unstable();
    Ok(names)
}

/// The same in the order in which they were made, if the object keeps it.
pub(super) fn names_in_order(object: &Id) -> Result<Vec<String>> {
    walk(object, H5_INDEX_CRT_ORDER).or_else(|_| names(object))
}

fn walk(object: &Id, index: H5_index_t) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let into = (&raw mut names).cast();
    // SAFETY: the callback gets exactly the vector passed here, which outlives the walk.
    let status = unsafe { h5a::H5Aiterate2(object.raw(), index, H5_ITER_INC, std::ptr::null_mut(), Some(visit), into) };
    if status < 0 { Err(errors::last("list attributes")) } else { Ok(names) }
}

/// Keeps the name of one attribute. Must not unwind into C.
unsafe extern "C" fn visit(_at: hid_t, name: *const c_char, _info: *const H5A_info_t, client: *mut c_void) -> i32 {
    // SAFETY: `client` is the vector of `names`; libhdf5 passes NUL-terminated text.
    let (names, name) = unsafe { (&mut *client.cast::<Vec<String>>(), CStr::from_ptr(name)) };
    names.push(name.to_string_lossy().into_owned());
    0
}
