//! Arrays as variables: what is stored for a specification, and what a stored dataset is.

use crate::netcdf_fill;
use crate::netcdf4_entry::options::{Filling, Options};
use hyperslab_core::{ArraySpec, ByteOrder, Datatype, Error, Result};

/// How the elements of an array are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storing {
    /// As they are.
    Same,
    /// Truth values as bytes.
    Bytes,
    /// Texts as characters, along one more dimension of this length.
    Characters(u32),
}

const BYTE: Datatype = Datatype::Integer { size: 1, signed: true, order: ByteOrder::NATIVE };

/// How an array of this type is stored. Refuses types that netcdf-c does not know.
pub(super) fn storing(dtype: &Datatype, options: &Options) -> Result<Storing> {
    let refuse = |dtype: &Datatype, hint: &str| {
        Err(Error::unsupported("create array", format!("NetCDF has no type for {dtype}")).hint(hint))
    };
    let small = |size: &u8, signed: bool| signed && *size != 8;
    match dtype {
        Datatype::Float { size: 2, .. } => refuse(dtype, "use <f4, or hdf5 or zarr"),
        Datatype::Opaque(_) => refuse(dtype, "use bytes (u1) with one more dimension, or hdf5 or zarr"),
        Datatype::Integer { size, signed, .. } if options.classic && !small(size, *signed) => {
            refuse(dtype, "leave out model=classic")
        }
        Datatype::Compound(_) | Datatype::VariableString if options.classic => refuse(dtype, "leave out model=classic"),
        Datatype::Compound(compound) => {
            compound.fields.iter().try_for_each(|field| storing(&field.dtype, options).map(drop))?;
            Ok(Storing::Same)
        }
        Datatype::Bool => Ok(Storing::Bytes),
        Datatype::FixedString(length @ 2..) => Ok(Storing::Characters(*length)),
        _ => Ok(Storing::Same),
    }
}

/// The specification of the dataset for an array.
pub(super) fn stored(spec: &ArraySpec, storing: Storing, options: &Options) -> Result<ArraySpec> {
    let mut stored = ArraySpec { dims: None, ..spec.clone() };
    if stored.fill_value.is_none() && options.filling == Filling::Default {
        stored.fill_value = netcdf_fill::default_fill(&spec.dtype);
    }
    match storing {
        Storing::Same => {}
        Storing::Bytes => stored.dtype = BYTE,
        Storing::Characters(length) => {
            stored.dtype = Datatype::FixedString(1);
            stored.shape.push(u64::from(length));
            stored.max_shape.iter_mut().for_each(|max| max.push(Some(u64::from(length))));
            stored.chunk.iter_mut().for_each(|chunk| chunk.push(u64::from(length)));
            stored.fill_value = match spec.fill_value.as_deref() {
                None => None,
                Some([first, rest @ ..]) if rest.iter().all(|byte| byte == first) => Some(vec![*first]),
                Some(_) => {
                    let message = "a text of different characters cannot be a fill value in NetCDF";
                    return Err(Error::unsupported("create array", message).hint("leave it out"));
                }
            };
        }
    }
    Ok(stored)
}

/// The array that a dataset is.
pub(super) fn restored(mut spec: ArraySpec, storing: Storing) -> ArraySpec {
    match storing {
        Storing::Same => {}
        Storing::Bytes => spec.dtype = Datatype::Bool,
        Storing::Characters(length) => {
            spec.dtype = Datatype::FixedString(length);
            spec.shape.pop();
            if let Some(max) = &mut spec.max_shape {
                max.pop();
            }
            if let Some(chunk) = &mut spec.chunk {
                chunk.pop();
            }
            spec.fill_value = spec.fill_value.map(|value| value.repeat(length as usize));
        }
    }
    spec
}
