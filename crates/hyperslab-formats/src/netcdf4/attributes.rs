//! Attributes as netcdf-c writes them: text, lists of texts, and lists of numbers.

use super::names::{self, FILL};
use crate::hdf5::dimension_scales::Object;
use hyperslab_core::{Attribute, Datatype, Dims, Error, Result, dims};

const SETTING: &str = "set attribute";

/// Refuses names and values that cannot be set on an object.
pub(super) fn check(object: &str, name: &str, value: &Attribute, is_scale: bool, classic: bool) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid(SETTING, "an attribute needs a name"));
    }
    value.check()?;
    if names::is_reserved(object, name, is_scale) {
        return Err(Error::unsupported(SETTING, format!("{name} is kept by the format itself")));
    }
    let refuse = |message: String| Err(Error::unsupported(SETTING, message));
    match (&value.dtype, value.shape.as_slice()) {
        (Datatype::VariableString, _) | (Datatype::FixedString(_), [_]) if classic => {
            refuse("files of the classic model have no lists of texts".into())
        }
        (
            Datatype::VariableString
            | Datatype::FixedString(_)
            | Datatype::Integer { .. }
            | Datatype::Float { size: 4 | 8, .. },
            [] | [_],
        ) => Ok(()),
        (_, [] | [_]) => refuse(format!("attributes in NetCDF are text or numbers, not {}", value.dtype)),
        (_, shape) => refuse(format!("attributes in NetCDF are lists, not {}", dims::display(shape))),
    }
}

/// Writes an attribute that has passed [`check`].
pub(super) fn put(object: &Object, name: &str, value: &Attribute) -> Result<()> {
    match (&value.dtype, value.shape.as_slice()) {
        (Datatype::FixedString(_), []) if trimmed(&value.data).is_empty() => object.put_text(name, &[]),
        (Datatype::FixedString(_), []) => object.put_text(name, &value.data),
        (Datatype::FixedString(_), [_]) | (Datatype::VariableString, _) => {
            object.put_texts(name, &value.texts().unwrap_or_default())
        }
        (dtype, shape) => object.put_numbers(name, dtype, if shape.is_empty() { &[1] } else { shape }, &value.data),
    }
}

/// Text without the NULs after it.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

/// An attribute of the file as callers know it. A list of one is a single value.
pub(super) fn restored(mut value: Attribute) -> Attribute {
    let is_text = matches!(value.dtype, Datatype::FixedString(_) | Datatype::VariableString);
    if is_text && value.data.is_empty() && value.shape.as_slice() == [0] {
        return Attribute::text("");
    }
    if value.shape.as_slice() == [1] {
        value.shape = Dims::new();
    }
    value
}

/// Whether `_FillValue` says no more than that the array has this fill value, which its specification says.
pub(super) fn is_implied(fill: Option<&[u8]>, value: &Attribute) -> bool {
    is_fill(fill, value) && crate::netcdf_fill::default_fill(&value.dtype).as_deref() != fill
}

/// Whether a value is the fill value of an array. Without any, strings are empty.
fn is_fill(fill: Option<&[u8]>, value: &Attribute) -> bool {
    match (&value.dtype, value.texts().as_deref()) {
        (Datatype::VariableString, Some([text])) => fill.unwrap_or_default() == *text,
        _ => fill == Some(&value.data),
    }
}

/// Refuses a fill value other than the array's.
pub(super) fn check_fill(name: &str, fill: Option<&[u8]>, value: &Attribute) -> Result<()> {
    if name != FILL || is_fill(fill, value) {
        return Ok(());
    }
    Err(Error::unsupported(SETTING, "the fill value of an array is that it was made with")
        .hint("create the array with this fill value"))
}
