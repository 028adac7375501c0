//! Datatypes and attributes as the file has them, and the other way round.

use super::header::CdfAttribute;
use super::types::{CdfType, Version};
use crate::posix::byte_order::reverse_each;
use hyperslab_core::{Attribute, ByteOrder, Datatype, Dims, Error, Result, dims};

/// The type that numbers are stored as; `None` for what is no number of the format.
pub(crate) fn number_type(dtype: &Datatype) -> Option<CdfType> {
    match dtype {
        Datatype::Integer { size: 1, signed: true, .. } => Some(CdfType::Byte),
        Datatype::Integer { size: 1, signed: false, .. } => Some(CdfType::UnsignedByte),
        Datatype::Integer { size: 2, signed: true, .. } => Some(CdfType::Short),
        Datatype::Integer { size: 2, signed: false, .. } => Some(CdfType::UnsignedShort),
        Datatype::Integer { size: 4, signed: true, .. } => Some(CdfType::Int),
        Datatype::Integer { size: 4, signed: false, .. } => Some(CdfType::UnsignedInt),
        Datatype::Integer { size: 8, signed: true, .. } => Some(CdfType::Int64),
        Datatype::Integer { size: 8, signed: false, .. } => Some(CdfType::UnsignedInt64),
        Datatype::Float { size: 4, .. } => Some(CdfType::Float),
        Datatype::Float { size: 8, .. } => Some(CdfType::Double),
        _ => None,
    }
}

/// The datatype of a variable that says nothing else, in this machine's order.
pub(crate) fn datatype(kind: CdfType) -> Datatype {
    let integer = |size, signed| Datatype::Integer { size, signed, order: ByteOrder::NATIVE };
    match kind {
        CdfType::Byte => integer(1, true),
        CdfType::Char => Datatype::FixedString(1),
        CdfType::Short => integer(2, true),
        CdfType::Int => integer(4, true),
        CdfType::Float => Datatype::F32,
        CdfType::Double => Datatype::F64,
        CdfType::UnsignedByte => integer(1, false),
        CdfType::UnsignedShort => integer(2, false),
        CdfType::UnsignedInt => integer(4, false),
        CdfType::Int64 => integer(8, true),
        CdfType::UnsignedInt64 => integer(8, false),
    }
}

/// How many bytes of its numbers change places on the way to the file, which is big-endian; 1 for none.
pub(crate) fn turned(dtype: &Datatype) -> u64 {
    match dtype {
        Datatype::Integer { size, order: ByteOrder::Little, .. }
        | Datatype::Float { size, order: ByteOrder::Little } => u64::from(*size),
        _ => 1,
    }
}

/// Refuses types that the version lacks.
pub(crate) fn check_version(operation: &'static str, kind: CdfType, version: Version) -> Result<()> {
    if kind.is_in(version) {
        return Ok(());
    }
    let message = format!("CDF-{} has no type for {}", version.number(), datatype(kind));
    Err(Error::unsupported(operation, message).hint("use version=5"))
}

/// An attribute for the file. A single value and a list of one are the same there.
pub(crate) fn store(name: &str, value: &Attribute, version: Version) -> Result<CdfAttribute> {
    value.check()?;
    let refuse = |message: String| Err(Error::unsupported("set attribute", message));
    let list = format!("attributes of classic NetCDF files are text or lists of numbers, not {}", value.dtype);
    let (kind, data) = match (&value.dtype, value.shape.as_slice()) {
        // Empty text, as `Attribute::text` makes it.
        (Datatype::FixedString(1), []) if value.data == [0] => (CdfType::Char, Vec::new()),
        (Datatype::FixedString(_), []) => (CdfType::Char, value.data.clone()),
        (Datatype::VariableString, []) => (CdfType::Char, value.texts().unwrap_or_default().concat()),
        (Datatype::FixedString(_) | Datatype::VariableString, _) => {
            return refuse("a classic NetCDF file has no lists of texts".into());
        }
        (dtype, [] | [_]) => {
            let Some(kind) = number_type(dtype) else { return refuse(list) };
            if *dtype != datatype(kind) {
                return refuse(format!("{list}: give it in this machine's byte order"));
            }
            let mut data = value.data.clone();
            reverse_each(&mut data, turned(dtype));
            (kind, data)
        }
        (_, shape) => return refuse(format!("attributes are lists, not {}", dims::display(shape))),
    };
    check_version("set attribute", kind, version)?;
    if data.len() as u64 / kind.size() > version.largest_count() {
        return refuse(format!("{} bytes are too many for an attribute", data.len()));
    }
    Ok(CdfAttribute { name: name.into(), kind, data })
}

/// An attribute of the file.
pub(crate) fn restore(stored: &CdfAttribute) -> Attribute {
    if stored.kind == CdfType::Char {
        return match stored.data.len() {
            0 => Attribute::text(""),
            len => {
                Attribute { dtype: Datatype::FixedString(len as u32), shape: Dims::new(), data: stored.data.clone() }
            }
        };
    }
    let dtype = datatype(stored.kind);
    let mut data = stored.data.clone();
    reverse_each(&mut data, turned(&dtype));
    let count = stored.data.len() as u64 / stored.kind.size();
    let shape: Dims = if count == 1 { Dims::new() } else { [count].as_slice().into() };
    Attribute { dtype, shape, data }
}
