//! Compound types with names, without which NetCDF-4 knows none. Call everything here under the lock.

use super::datatype;
use super::library::{Id, c_text, done, truth};
use super::objects::{self, Found};
use super::properties;
use hdf5_metno_sys::h5p::{self, H5P_DEFAULT};
use hdf5_metno_sys::{h5o, h5t};
use hyperslab_core::{Datatype, Error, Result};

const DOING: &str = "create datatype";

/// The compound type of an array, stored beside it under a name of its own, as are compounds in it.
pub(super) fn commit(file: &Id, dtype: &Datatype, array: &str) -> Result<Id> {
    let Datatype::Compound(compound) = dtype else {
        return Err(Error::invalid(DOING, format!("{dtype} is no compound")));
    };
    let mut members = Vec::with_capacity(compound.fields.len());
    for field in &compound.fields {
        let member = match &field.dtype {
            inner @ Datatype::Compound(_) => commit(file, inner, &format!("{array}_{}", field.name))?,
            Datatype::Bool => named(file, &format!("{array}_bool"), datatype::create(&Datatype::Bool)?)?,
            Datatype::FixedString(length) => datatype::characters(*length)?,
            other => datatype::create(other)?,
        };
        members.push((field.name.as_str(), field.offset, member));
    }
    named(file, &format!("{array}_t"), datatype::compound(compound.size, &members)?)
}

/// A type under this name, or with a number where that is taken; one that is there already serves again.
fn named(file: &Id, wish: &str, kind: Id) -> Result<Id> {
    for number in 1u64.. {
        let name = if number == 1 { wish.to_owned() } else { format!("{wish}{number}") };
        if let Some(known) = find(file, &name)? {
            // SAFETY: both types are live.
            if known.is_type && truth(DOING, unsafe { h5t::H5Tequal(known.id.raw(), kind.raw()) })? {
                return Ok(known.id);
            }
            continue;
        }
        store(file, &name, &kind)?;
        break;
    }
    Ok(kind)
}

/// An object that has a name already.
struct Known {
    id: Id,
    is_type: bool,
}

fn find(file: &Id, name: &str) -> Result<Option<Known>> {
    match objects::probe(DOING, file, name)? {
        Found::Nothing => Ok(None),
        found => {
            let text = c_text(DOING, name)?;
            // SAFETY: the file is live, the name ends in NUL.
            let id = Id::take(DOING, unsafe { h5o::H5Oopen(file.raw(), text.as_ptr(), H5P_DEFAULT) })?;
            Ok(Some(Known { id, is_type: found == Found::Other }))
        }
    }
}

fn store(file: &Id, name: &str, kind: &Id) -> Result<()> {
    let text = c_text(DOING, name)?;
    let (links, creation) = (properties::link_creation()?, properties::new(DOING, *h5p::H5P_CLS_DATATYPE_CREATE)?);
    properties::track_order(DOING, &creation)?;
    // SAFETY: file, lists and type are live, the name ends in NUL.
    done(DOING, unsafe {
        h5t::H5Tcommit2(file.raw(), text.as_ptr(), kind.raw(), links.raw(), creation.raw(), H5P_DEFAULT)
    })
}
