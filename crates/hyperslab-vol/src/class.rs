//! The table of callbacks that HDF5 gets: version 3 of its class, the same in 1.14 and 2.x.

use crate::callbacks::{
    attribute, blob, dataset, datatype, file, group, introspect, link, object as any, request, token,
};
use crate::host::api::Const;
use crate::{info, object};
use std::ffi::CStr;

/// The table, as the eight-byte fields that the structure has on 64-bit machines.
pub(crate) type Class = [usize; FIELDS];

const FIELDS: usize = 79;
const NAME: &CStr = c"hyperslab";
/// From the range that HDF5 leaves for connectors without a registered number.
const VALUE: u32 = 437;
const CLASS_VERSION: u32 = 3;

/// As HDF5 wants it.
pub(crate) fn as_ptr(class: &'static Class) -> Const {
    class.as_ptr().cast()
}

/// The table of a host. Callbacks that get no object know their host by the slot.
pub(crate) fn make(slot: usize) -> &'static Class {
    match slot {
        0 => of::<0>(),
        1 => of::<1>(),
        2 => of::<2>(),
        3 => of::<3>(),
        4 => of::<4>(),
        5 => of::<5>(),
        6 => of::<6>(),
        _ => of::<7>(),
    }
}

macro_rules! fields {
    ($($function:expr),* $(,)?) => { [$($function as *const () as usize),*] };
}

fn of<const SLOT: usize>() -> &'static Class {
    let head = [
        CLASS_VERSION as usize | (VALUE as usize) << 32,
        NAME.as_ptr() as usize,
        crate::STRING_VERSION as usize,
        0, // capabilities: those of the connector below
    ];
    let life = fields![introspect::initialize::<SLOT>, introspect::terminate::<SLOT>];
    let infos = [size_of::<info::Info>()];
    let functions = fields![
        info::copy::<SLOT>,
        info::compare::<SLOT>,
        info::free,
        info::to_text,
        info::from_text::<SLOT>,
        object::get_object,
        object::get_context,
        object::wrap,
        object::unwrap,
        object::free_context,
        attribute::create,
        attribute::open,
        attribute::read,
        attribute::write,
        attribute::get,
        attribute::specific,
        attribute::optional,
        attribute::close,
        dataset::create,
        dataset::open,
        dataset::read,
        dataset::write,
        dataset::get,
        dataset::specific,
        dataset::optional,
        dataset::close,
        datatype::commit,
        datatype::open,
        datatype::get,
        datatype::specific,
        datatype::optional,
        datatype::close,
        file::create::<SLOT>,
        file::open::<SLOT>,
        file::get,
        file::specific::<SLOT>,
        file::optional,
        file::close,
        group::create,
        group::open,
        group::get,
        group::specific,
        group::optional,
        group::close,
        link::create,
        link::copy,
        link::rename,
        link::get,
        link::specific,
        link::optional,
        any::open,
        any::copy,
        any::get,
        any::specific,
        any::optional,
        introspect::get_class::<SLOT>,
        introspect::get_capabilities::<SLOT>,
        introspect::query_optional,
        request::wait,
        request::notify,
        request::cancel,
        request::specific,
        request::optional,
        request::free,
        blob::put,
        blob::get,
        blob::specific,
        blob::optional,
        token::compare,
        token::to_text,
        token::from_text,
        introspect::optional,
    ];
    let mut class = [0; FIELDS];
    let fields = head.into_iter().chain(life).chain(infos).chain(functions);
    class.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    Box::leak(Box::new(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_full_and_as_long_as_the_structure() {
        let class = make(0);
        assert_eq!(size_of_val(class), 632);
        assert!(class.iter().enumerate().all(|(at, field)| *field != 0 || at == 3), "{class:?}");
    }
}
