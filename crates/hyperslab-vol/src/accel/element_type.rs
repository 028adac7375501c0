//! Element types: libhdf5 datatypes as `Datatype`s.

use super::conversion_check::{Numbers, converts_alike};
use crate::host::api::Hid;
use crate::host::{self, Host};
use hyperslab_core::{ByteOrder, Datatype, Field, MemoryLayout, StructField, StructLayout};
use hyperslab_h5direct::Conversion;
use std::ffi::c_int;

const INTEGER: c_int = 0;
const FLOAT: c_int = 1;
const STRING: c_int = 3;
const OPAQUE: c_int = 5;
const COMPOUND: c_int = 6;
const REFERENCE: c_int = 7;
const ENUM: c_int = 8;
const VARIABLE_LENGTH: c_int = 9;
const ARRAY: c_int = 10;
const LITTLE: c_int = 0;
const BIG: c_int = 1;
const PADDED_WITH_NUL: c_int = 1;
const MOST_BYTES: usize = 1 << 24;
const MOST_FIELDS: c_int = 4096;
const DEEPEST: usize = 8;

/// An owned datatype identifier.
#[derive(Debug)]
pub(crate) struct OwnedType {
    host: &'static Host,
    id: Hid,
}

impl OwnedType {
    /// `None` if the identifier is negative, which means an error.
    pub(crate) fn new(host: &'static Host, id: Hid) -> Option<Self> {
        (id >= 0).then_some(Self { host, id })
    }
}

impl Drop for OwnedType {
    fn drop(&mut self) {
        // SAFETY: it is open and ours; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe { self.host.H5Tclose(self.id) });
    }
}

/// The element type of a dataset.
#[derive(Debug)]
pub(crate) struct ElementType {
    own: OwnedType,
    /// Its equivalent; opaque bytes if there is none.
    pub(crate) dtype: Datatype,
    /// Whether a recovery would read the same type from the file.
    pub(crate) recoverable: bool,
}

/// Relation of the element type in memory to that of the dataset.
pub(crate) enum InMemory {
    /// Equal.
    Same,
    /// Another numeric type.
    Numbers(Datatype),
    /// A structure with some of the fields.
    Fields(StructLayout),
}

impl ElementType {
    /// Whether it is no object of the file.
    pub(super) fn is_transient(&self) -> bool {
        // SAFETY: the type is open; inside a call of the library.
        unsafe { self.own.host.H5Tcommitted(self.own.id) == 0 }
    }

    /// Takes over a type identifier. The error is the reason for a fallback to libhdf5.
    pub(crate) fn take(host: &'static Host, given: Hid) -> Result<Self, String> {
        let given = OwnedType::new(host, given).ok_or("its type cannot be asked for")?;
        // SAFETY: the type is open. A copy is no object of the file, as a named type is.
        let own = OwnedType::new(host, unsafe { host.H5Tcopy(given.id) }).ok_or("its type cannot be copied")?;
        let described = describe(host, own.id, 0)?;
        Ok(Self { own, dtype: described.dtype, recoverable: described.recoverable })
    }

    pub(crate) fn id(&self) -> Hid {
        self.own.id
    }

    /// Compares a type in memory, for a transfer of so many elements. The error is the reason why libhdf5 must convert.
    ///
    /// # Safety
    /// Inside a call of the library; `memory` is open.
    pub(crate) unsafe fn in_memory(
        &self,
        host: &'static Host,
        memory: Hid,
        writes: bool,
        elements: u64,
    ) -> Result<InMemory, String> {
        // SAFETY: both types are open.
        if unsafe { host.H5Tequal(memory, self.id()) } > 0 {
            return Ok(InMemory::Same);
        }
        // SAFETY: as above.
        if unsafe { host.H5Tget_class(memory) } == COMPOUND && matches!(self.dtype, Datatype::Compound(_)) {
            // SAFETY: as above.
            return host.quietly(|| unsafe { self.fields(host, memory) });
        }
        let dtype = describe(host, memory, 0)?.dtype;
        let number = |dtype: &Datatype| matches!(dtype, Datatype::Integer { .. } | Datatype::Float { .. });
        if !number(&dtype) || !number(&self.dtype) {
            return Err("the type in memory is another one".into());
        }
        let (theirs, ours) = (Numbers { dtype: &dtype, id: memory }, Numbers { dtype: &self.dtype, id: self.id() });
        let (from, to) = if writes { (theirs, ours) } else { (ours, theirs) };
        // SAFETY: both types are open.
        let alike = |conversion: &Conversion| unsafe { converts_alike(host, conversion, from, to, elements) };
        let (from, to) = (from.dtype, to.dtype);
        match Conversion::new(from, to) {
            Ok(None) => Ok(InMemory::Same),
            Ok(Some(conversion)) if !conversion.depends_on_library() || alike(&conversion) => {
                Ok(InMemory::Numbers(dtype))
            }
            _ => Err(format!("{from} becomes {to} by rules of libhdf5")),
        }
    }

    /// A structure in memory of which every member is a field of the same type.
    unsafe fn fields(&self, host: &'static Host, memory: Hid) -> Result<InMemory, String> {
        // SAFETY: the type is an open compound.
        let (size, number) = unsafe { (host.H5Tget_size(memory), host.H5Tget_nmembers(memory)) };
        if size == 0 || !(1..=MOST_FIELDS).contains(&number) {
            return Err("the structure in memory is of an unusual kind".into());
        }
        let mut members = Vec::with_capacity(number as usize);
        for at in 0..number as u32 {
            // SAFETY: the index is below the number of members.
            let (name, offset, kind) = unsafe { member(host, memory, at) }?;
            let text = std::ffi::CString::new(name.as_str()).map_err(|_| "a field has no proper name")?;
            // SAFETY: the name ends in NUL.
            let theirs = unsafe { host.H5Tget_member_index(self.id(), text.as_ptr()) };
            if theirs < 0 || self.dtype.field(&name).is_none() {
                return Err("the structure in memory has members that the dataset has not".into());
            }
            // SAFETY: the index was given by the library.
            let theirs = OwnedType::new(host, unsafe { host.H5Tget_member_type(self.id(), theirs as u32) });
            // SAFETY: both types are open.
            if theirs.is_none_or(|theirs| unsafe { host.H5Tequal(kind.id, theirs.id) } <= 0) {
                return Err("a member in memory is of another type than its field".into());
            }
            members.push(StructField { field: Some(name), offset });
        }
        Ok(InMemory::Fields(StructLayout { size: size as u64, members: members.into() }))
    }
}

impl InMemory {
    /// The layout of packed structures.
    pub(crate) fn structure(self) -> (Option<StructLayout>, Option<Datatype>) {
        match self {
            Self::Same => (None, None),
            Self::Numbers(dtype) => (None, Some(dtype)),
            Self::Fields(structure) => (Some(structure), None),
        }
    }
}

/// A layout with this structure.
pub(crate) fn layout(within: Option<hyperslab_core::BufferRegion>, structure: Option<StructLayout>) -> MemoryLayout {
    MemoryLayout { within, structure }
}

/// What a type is.
pub(crate) struct Described {
    pub(crate) dtype: Datatype,
    pub(crate) recoverable: bool,
}

/// What a type is; or why its elements cannot be moved as bytes.
pub(crate) fn describe(host: &'static Host, kind: Hid, depth: usize) -> Result<Described, String> {
    // SAFETY: the type is open, here and below.
    let (class, size) = unsafe { (host.H5Tget_class(kind), host.H5Tget_size(kind)) };
    if size == 0 || size > MOST_BYTES || depth > DEEPEST {
        return Err(format!("its elements have {size} bytes, {depth} levels deep"));
    }
    let bytes = Datatype::Opaque(size as u32);
    let only_bytes = || Ok(Described { dtype: bytes.clone(), recoverable: false });
    let known = |dtype| Ok(Described { dtype, recoverable: true });
    match class {
        INTEGER => integer(host, kind, size).map_or_else(only_bytes, known),
        FLOAT => float(host, kind, size).map_or_else(only_bytes, known),
        ENUM if is_boolean(host, kind, size) => known(Datatype::Bool),
        // SAFETY: as above.
        STRING => match unsafe { (host.H5Tis_variable_str(kind), host.H5Tget_strpad(kind)) } {
            (0, PADDED_WITH_NUL) => known(Datatype::FixedString(size as u32)),
            (0, _) => only_bytes(),
            _ => Err("its elements are text of variable length".into()),
        },
        OPAQUE => known(bytes),
        COMPOUND => compound(host, kind, size, depth),
        VARIABLE_LENGTH => Err("its elements are of variable length".into()),
        REFERENCE => Err("its elements are references".into()),
        ARRAY => {
            // SAFETY: as above.
            let base = OwnedType::new(host, unsafe { host.H5Tget_super(kind) }).ok_or("its type is unusual")?;
            describe(host, base.id, depth + 1).and_then(|_| only_bytes())
        }
        _ => only_bytes(),
    }
}

fn order(host: &Host, kind: Hid, size: usize) -> Option<ByteOrder> {
    // SAFETY: the type is open.
    match unsafe { host.H5Tget_order(kind) } {
        _ if size == 1 => Some(ByteOrder::NATIVE),
        LITTLE => Some(ByteOrder::Little),
        BIG => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Whether every bit counts.
fn is_full(host: &Host, kind: Hid, size: usize) -> bool {
    // SAFETY: the type is open.
    unsafe { host.H5Tget_precision(kind) == size * 8 && host.H5Tget_offset(kind) == 0 }
}

fn integer(host: &Host, kind: Hid, size: usize) -> Option<Datatype> {
    if !matches!(size, 1 | 2 | 4 | 8) || !is_full(host, kind, size) {
        return None;
    }
    // SAFETY: the type is open.
    let signed = unsafe { host.H5Tget_sign(kind) } == 1;
    Some(Datatype::Integer { size: size as u8, signed, order: order(host, kind, size)? })
}

fn float(host: &Host, kind: Hid, size: usize) -> Option<Datatype> {
    let (wanted, bias) = match size {
        2 => ([15, 10, 5, 0, 10], 15),
        4 => ([31, 23, 8, 0, 23], 127),
        8 => ([63, 52, 11, 0, 52], 1023),
        _ => return None,
    };
    let mut fields = [0usize; 5];
    let [sign, exponent, exponent_size, mantissa, mantissa_size] = &mut fields;
    // SAFETY: the type is an open float.
    let (status, has, norm) = unsafe {
        let status = host.H5Tget_fields(kind, sign, exponent, exponent_size, mantissa, mantissa_size);
        (status, host.H5Tget_ebias(kind), host.H5Tget_norm(kind))
    };
    // 0: the first bit of the mantissa is implied.
    let ieee = status >= 0 && fields == wanted && has == bias && norm == 0 && is_full(host, kind, size);
    Some(Datatype::Float { size: size as u8, order: order(host, kind, size)? }).filter(|_| ieee)
}

/// Whether it is the enumeration that h5py has for booleans.
fn is_boolean(host: &Host, kind: Hid, size: usize) -> bool {
    // SAFETY: the type is an open enumeration; values have its size, which is 1.
    unsafe {
        let value = |name: &std::ffi::CStr| {
            let at = host.H5Tget_member_index(kind, name.as_ptr());
            let mut value = 255u8;
            let asked = at >= 0 && host.H5Tget_member_value(kind, at as u32, (&raw mut value).cast()) >= 0;
            asked.then_some(value)
        };
        size == 1 && host.H5Tget_nmembers(kind) == 2 && value(c"FALSE") == Some(0) && value(c"TRUE") == Some(1)
    }
}

/// Name, offset and type of a member.
///
/// # Safety
/// `kind` is an open compound that has so many.
unsafe fn member(host: &'static Host, kind: Hid, at: u32) -> Result<(String, u64, OwnedType), String> {
    // SAFETY: the library returns text of its own, which is freed once, after copying.
    unsafe {
        let text = host.H5Tget_member_name(kind, at);
        let name = host::text(text);
        if !text.is_null() {
            host.H5free_memory(text.cast());
        }
        let own = OwnedType::new(host, host.H5Tget_member_type(kind, at)).ok_or("a field has no type")?;
        Ok((name, host.H5Tget_member_offset(kind, at) as u64, own))
    }
}

fn compound(host: &'static Host, kind: Hid, size: usize, depth: usize) -> Result<Described, String> {
    // SAFETY: the type is open.
    let number = unsafe { host.H5Tget_nmembers(kind) };
    if !(1..=MOST_FIELDS).contains(&number) {
        return Err(format!("its elements have {number} fields"));
    }
    let (mut fields, mut recoverable) = (Vec::with_capacity(number as usize), true);
    for at in 0..number as u32 {
        // SAFETY: the index is below the number of members.
        let (name, offset, member) = unsafe { member(host, kind, at) }?;
        let described = describe(host, member.id, depth + 1)?;
        recoverable &= described.recoverable;
        fields.push(Field { name, offset, dtype: described.dtype });
    }
    Ok(match Datatype::compound(size as u64, fields) {
        Ok(dtype) => Described { dtype, recoverable },
        Err(_) => Described { dtype: Datatype::Opaque(size as u32), recoverable: false },
    })
}
