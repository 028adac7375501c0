//! Our datatypes as libhdf5's, and back.

use super::library::{Id, c_text, count, done, hid_t, truth};
use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5t::{self, H5T_class_t, H5T_cset_t, H5T_order_t, H5T_sign_t, H5T_str_t};
use hyperslab_core::{ByteOrder, Datatype, Error, Field, Result};
use std::ffi::CStr;

const DOING: &str = "read datatype";
/// How deep types in files may nest before they are refused.
const MAX_DEPTH: usize = 8;
/// How large one element may be.
const MAX_SIZE: usize = 1 << 24;
/// How many fields one compound may have.
const MAX_FIELDS: usize = 4096;

/// A type found in a file.
#[derive(Debug)]
pub(super) struct Stored {
    /// As the rest of the project knows it.
    pub(super) dtype: Datatype,
    /// How elements lie in packed memory: as in the file, but strings padded with NUL.
    pub(super) memory: Id,
    /// Whether it holds strings that must end in NUL, so that text of full length cannot be written.
    pub(super) terminated: bool,
}

/// The type as it is stored by this format. Call under the lock, as everything here.
pub(super) fn create(dtype: &Datatype) -> Result<Id> {
    const DOING: &str = "create datatype";
    let copy = |of: hid_t| Id::take(DOING, unsafe_copy(of));
    match dtype {
        Datatype::Integer { size, signed, order } => copy(integer(*size, *signed, *order)?),
        Datatype::Float { size: 4, order } => {
            copy(if *order == ByteOrder::Little { *h5t::H5T_IEEE_F32LE } else { *h5t::H5T_IEEE_F32BE })
        }
        Datatype::Float { size: 8, order } => {
            copy(if *order == ByteOrder::Little { *h5t::H5T_IEEE_F64LE } else { *h5t::H5T_IEEE_F64BE })
        }
        Datatype::Float { size: 2, order } => half(*order),
        Datatype::Float { size, .. } => Err(Error::unsupported(DOING, format!("floats of {size} bytes"))),
        Datatype::Bool => boolean(),
        Datatype::FixedString(length) => {
            let id = copy(*h5t::H5T_C_S1)?;
            // SAFETY: `id` is a live string type of our own.
            unsafe {
                done(DOING, h5t::H5Tset_size(id.raw(), *length as usize))?;
                done(DOING, h5t::H5Tset_strpad(id.raw(), H5T_str_t::H5T_STR_NULLPAD))?;
            }
            Ok(id)
        }
        Datatype::VariableString => {
            let id = copy(*h5t::H5T_C_S1)?;
            // SAFETY: `id` is a live string type of our own.
            done(DOING, unsafe { h5t::H5Tset_size(id.raw(), h5t::H5T_VARIABLE) })?;
            mark_utf8(&id)?;
            Ok(id)
        }
        // SAFETY: makes a new type.
        Datatype::Opaque(size) => Id::take(DOING, unsafe { h5t::H5Tcreate(H5T_class_t::H5T_OPAQUE, *size as usize) }),
        Datatype::Compound(compound) => {
            let members = compound
                .fields
                .iter()
                .map(|field| Ok((field.name.as_str(), field.offset, create(&field.dtype)?)))
                .collect::<Result<Vec<_>>>()?;
            self::compound(compound.size, &members)
        }
    }
}

fn unsafe_copy(of: hid_t) -> hid_t {
    // SAFETY: libhdf5 checks the identifier itself and only makes a new type.
    unsafe { h5t::H5Tcopy(of) }
}

/// A compound of `size` bytes with the members given. They must lie inside without overlap.
pub(super) fn compound<N: AsRef<str>>(size: u64, members: &[(N, u64, Id)]) -> Result<Id> {
    const DOING: &str = "create datatype";
    // SAFETY: makes a new type; libhdf5 refuses members that do not fit.
    let id = Id::take(DOING, unsafe { h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, size as usize) })?;
    for (name, offset, member) in members {
        let name = c_text(DOING, name.as_ref())?;
        // SAFETY: both types are live, the name ends in NUL.
        done(DOING, unsafe { h5t::H5Tinsert(id.raw(), name.as_ptr(), *offset as usize, member.raw()) })?;
    }
    Ok(id)
}

/// The type of the member `name` of a compound.
pub(super) fn member(compound: &Id, name: &str) -> Result<Id> {
    let name = c_text(DOING, name)?;
    // SAFETY: the type is live, the name ends in NUL.
    let index = count(DOING, unsafe { h5t::H5Tget_member_index(compound.raw(), name.as_ptr()) })?;
    // SAFETY: the index was given by libhdf5.
    Id::take(DOING, unsafe { h5t::H5Tget_member_type(compound.raw(), index as u32) })
}

fn integer(size: u8, signed: bool, order: ByteOrder) -> Result<hid_t> {
    let little = order == ByteOrder::Little;
    Ok(match (size, signed, little) {
        (1, true, true) => *h5t::H5T_STD_I8LE,
        (1, true, false) => *h5t::H5T_STD_I8BE,
        (1, false, true) => *h5t::H5T_STD_U8LE,
        (1, false, false) => *h5t::H5T_STD_U8BE,
        (2, true, true) => *h5t::H5T_STD_I16LE,
        (2, true, false) => *h5t::H5T_STD_I16BE,
        (2, false, true) => *h5t::H5T_STD_U16LE,
        (2, false, false) => *h5t::H5T_STD_U16BE,
        (4, true, true) => *h5t::H5T_STD_I32LE,
        (4, true, false) => *h5t::H5T_STD_I32BE,
        (4, false, true) => *h5t::H5T_STD_U32LE,
        (4, false, false) => *h5t::H5T_STD_U32BE,
        (8, true, true) => *h5t::H5T_STD_I64LE,
        (8, true, false) => *h5t::H5T_STD_I64BE,
        (8, false, true) => *h5t::H5T_STD_U64LE,
        (8, false, false) => *h5t::H5T_STD_U64BE,
        _ => return Err(Error::unsupported("create datatype", format!("integers of {size} bytes"))),
    })
}

/// IEEE half precision: sign 1, exponent 5 (bias 15), mantissa 10. Built here because older libraries lack it.
fn half(order: ByteOrder) -> Result<Id> {
    const DOING: &str = "create datatype";
    let base = if order == ByteOrder::Little { *h5t::H5T_IEEE_F32LE } else { *h5t::H5T_IEEE_F32BE };
    let id = Id::take(DOING, unsafe_copy(base))?;
    // SAFETY: `id` is a live float type of our own.
    unsafe {
        done(DOING, h5t::H5Tset_fields(id.raw(), 15, 10, 5, 0, 10))?;
        done(DOING, h5t::H5Tset_precision(id.raw(), 16))?;
        done(DOING, h5t::H5Tset_size(id.raw(), 2))?;
        done(DOING, h5t::H5Tset_ebias(id.raw(), 15))?;
    }
    Ok(id)
}

/// The enumeration {FALSE, TRUE} of signed bytes that h5py writes and reads as bool.
fn boolean() -> Result<Id> {
    const DOING: &str = "create datatype";
    // SAFETY: the base type is libhdf5's own; each value is one byte, as the base type is.
    unsafe {
        let id = Id::take(DOING, h5t::H5Tenum_create(*h5t::H5T_STD_I8LE))?;
        for (name, value) in [(c"FALSE", 0i8), (c"TRUE", 1i8)] {
            done(DOING, h5t::H5Tenum_insert(id.raw(), name.as_ptr(), (&raw const value).cast()))?;
        }
        Ok(id)
    }
}

/// What a type from a file is. Refuses types this project does not know with `Unsupported`.
pub(super) fn read(file: &Id) -> Result<Stored> {
    read_nested(file, 0)
}

fn read_nested(file: &Id, depth: usize) -> Result<Stored> {
    let unknown = |what: String| Err(Error::unsupported(DOING, format!("{what} cannot be read here")));
    // SAFETY: `file` is a live datatype throughout.
    let (class, size) = unsafe { (h5t::H5Tget_class(file.raw()), h5t::H5Tget_size(file.raw())) };
    if size == 0 || size > MAX_SIZE || depth > MAX_DEPTH {
        return unknown(format!("a type of {size} bytes, {depth} levels deep,"));
    }
    let plain =
        |dtype: Datatype| Ok(Stored { dtype, memory: Id::take(DOING, unsafe_copy(file.raw()))?, terminated: false });
    match class {
        H5T_class_t::H5T_INTEGER => match read_integer(file, size) {
            Some(dtype) => plain(dtype),
            None => unknown(format!("an integer of {size} bytes with unusual bits")),
        },
        H5T_class_t::H5T_FLOAT => match read_float(file, size)? {
            Some(dtype) => plain(dtype),
            None => unknown(format!("a float of {size} bytes that is not IEEE half, single or double")),
        },
        H5T_class_t::H5T_ENUM if is_boolean(file, size)? => plain(Datatype::Bool),
        H5T_class_t::H5T_ENUM => unknown("an enumeration other than {FALSE, TRUE}".into()),
        H5T_class_t::H5T_STRING if is_variable_string(file)? => match depth {
            0 => plain(Datatype::VariableString),
            _ => unknown("a field of variable-length text".into()),
        },
        H5T_class_t::H5T_STRING => read_string(file, size),
        H5T_class_t::H5T_OPAQUE => plain(Datatype::Opaque(size as u32)),
        H5T_class_t::H5T_COMPOUND => read_compound(file, size, depth),
        H5T_class_t::H5T_VLEN => unknown("variable-length data".into()),
        H5T_class_t::H5T_REFERENCE => unknown("a reference".into()),
        H5T_class_t::H5T_TIME => unknown("HDF5's time type".into()),
        H5T_class_t::H5T_BITFIELD => unknown("a bit field".into()),
        H5T_class_t::H5T_ARRAY if depth > 0 && is_characters(file)? => plain(Datatype::FixedString(size as u32)),
        H5T_class_t::H5T_ARRAY => unknown("an array as element type".into()),
        _ => unknown("an element type of another kind".into()),
    }
}

fn read_integer(file: &Id, size: usize) -> Option<Datatype> {
    // SAFETY: `file` is a live integer type.
    let (precision, offset, order, sign) = unsafe {
        (
            h5t::H5Tget_precision(file.raw()),
            h5t::H5Tget_offset(file.raw()),
            h5t::H5Tget_order(file.raw()),
            h5t::H5Tget_sign(file.raw()),
        )
    };
    if !matches!(size, 1 | 2 | 4 | 8) || precision != size * 8 || offset != 0 {
        return None;
    }
    let order = match order {
        _ if size == 1 => ByteOrder::NATIVE,
        H5T_order_t::H5T_ORDER_LE => ByteOrder::Little,
        H5T_order_t::H5T_ORDER_BE => ByteOrder::Big,
        _ => return None,
    };
    Some(Datatype::Integer { size: size as u8, signed: sign == H5T_sign_t::H5T_SGN_2, order })
}

fn read_float(file: &Id, size: usize) -> Result<Option<Datatype>> {
    if !matches!(size, 2 | 4 | 8) {
        return Ok(None);
    }
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let dtype = Datatype::Float { size: size as u8, order };
        let known = create(&dtype)?;
        // SAFETY: both types are live.
        if truth(DOING, unsafe { h5t::H5Tequal(file.raw(), known.raw()) })? {
            return Ok(Some(dtype));
        }
    }
    Ok(None)
}

fn is_boolean(file: &Id, size: usize) -> Result<bool> {
    // SAFETY: `file` is a live enumeration; values have its size, which is 1.
    unsafe {
        if size != 1 || h5t::H5Tget_nmembers(file.raw()) != 2 {
            return Ok(false);
        }
        for (name, wanted) in [(c"FALSE", 0u8), (c"TRUE", 1u8)] {
            let index = h5t::H5Tget_member_index(file.raw(), name.as_ptr());
            let mut value = 255u8;
            if index < 0 || h5t::H5Tget_member_value(file.raw(), index as u32, (&raw mut value).cast()) < 0 {
                hdf5_metno_sys::h5e::H5Eclear2(hdf5_metno_sys::h5e::H5E_DEFAULT);
                return Ok(false);
            }
            if value != wanted {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn read_string(file: &Id, size: usize) -> Result<Stored> {
    let memory = Id::take(DOING, unsafe_copy(file.raw()))?;
    if size == 1 {
        // A character: the end of a text has no place in it.
        return Ok(Stored { dtype: Datatype::FixedString(1), memory, terminated: false });
    }
    // SAFETY: both are live string types, `memory` our own copy.
    let terminated = unsafe {
        done(DOING, h5t::H5Tset_strpad(memory.raw(), H5T_str_t::H5T_STR_NULLPAD))?;
        h5t::H5Tget_strpad(file.raw()) == H5T_str_t::H5T_STR_NULLTERM
    };
    Ok(Stored { dtype: Datatype::FixedString(size as u32), memory, terminated })
}

/// Whether it is an array of characters, as NetCDF has text within compounds.
fn is_characters(array: &Id) -> Result<bool> {
    // SAFETY: `array` is a live array type; its base is closed by `Id`.
    unsafe {
        let base = Id::take(DOING, h5t::H5Tget_super(array.raw()))?;
        let text = h5t::H5Tget_class(base.raw()) == H5T_class_t::H5T_STRING;
        Ok(text && h5t::H5Tget_size(base.raw()) == 1 && h5t::H5Tget_array_ndims(array.raw()) == 1)
    }
}

/// An array of characters.
pub(super) fn characters(length: u32) -> Result<Id> {
    const DOING: &str = "create datatype";
    let one = create(&Datatype::FixedString(1))?;
    let length = u64::from(length);
    // SAFETY: the base is live and there is one extent.
    Id::take(DOING, unsafe { h5t::H5Tarray_create2(one.raw(), 1, &raw const length) })
}

/// Whether it is text whose elements have each their own length.
pub(super) fn is_variable_string(file: &Id) -> Result<bool> {
    // SAFETY: `file` is a live datatype.
    unsafe {
        Ok(h5t::H5Tget_class(file.raw()) == H5T_class_t::H5T_STRING
            && truth(DOING, h5t::H5Tis_variable_str(file.raw()))?)
    }
}

/// Marks text as UTF-8 instead of ASCII.
pub(super) fn mark_utf8(text: &Id) -> Result<()> {
    // SAFETY: `text` is a live string type of our own.
    done("create datatype", unsafe { h5t::H5Tset_cset(text.raw(), H5T_cset_t::H5T_CSET_UTF8) })
}

fn read_compound(file: &Id, size: usize, depth: usize) -> Result<Stored> {
    // SAFETY: `file` is a live compound type.
    let number = count(DOING, unsafe { h5t::H5Tget_nmembers(file.raw()) })?;
    if number > MAX_FIELDS {
        return Err(Error::unsupported(DOING, format!("a compound of {number} fields cannot be read here")));
    }
    let mut fields = Vec::with_capacity(number);
    let mut members = Vec::with_capacity(number);
    let mut terminated = false;
    for index in 0..number as u32 {
        let name = member_name(file, index)?;
        // SAFETY: the index is below the number of members.
        let (offset, id) = unsafe {
            let offset = h5t::H5Tget_member_offset(file.raw(), index) as u64;
            (offset, Id::take(DOING, h5t::H5Tget_member_type(file.raw(), index))?)
        };
        let inner = read_nested(&id, depth + 1)?;
        terminated |= inner.terminated;
        fields.push(Field { name: name.clone(), offset, dtype: inner.dtype });
        members.push((name, offset, inner.memory));
    }
    let dtype = Datatype::compound(size as u64, fields)
        .map_err(|e| Error::unsupported(DOING, "a compound of this form cannot be read here").source(e))?;
    Ok(Stored { dtype, memory: compound(size as u64, &members)?, terminated })
}

fn member_name(file: &Id, index: u32) -> Result<String> {
    // SAFETY: libhdf5 returns NUL-terminated text of its own allocation, or null; it is freed once, after copying.
    unsafe {
        let text = h5t::H5Tget_member_name(file.raw(), index);
        if text.is_null() {
            return Err(super::errors::last(DOING));
        }
        let name = CStr::from_ptr(text).to_str().map(str::to_owned);
        H5free_memory(text.cast());
        name.map_err(|_| Error::unsupported(DOING, "a field name is not UTF-8"))
    }
}
