//! The table of functions that libhdf5 gets for the driver: version 1 of `H5FD_class_t`, the same in 1.14 and 2.x.

use super::file;
use crate::host::api::Const;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The table, as the eight-byte fields that the structure has on 64-bit machines.
type Table = [usize; FIELDS];

const FIELDS: usize = 42;
const VERSION: usize = 1;
/// From the range that HDF5 leaves for drivers without a registered number.
const VALUE: usize = 437;
const NAME: &CStr = c"hyperslab_safe";
const MOST_ADDRESS: usize = i64::MAX as usize;
/// As of `sec2`: objects keep a file open.
const CLOSE_WEAK: usize = 1;
/// As of `sec2`: one list of free space for metadata (1) and one for elements (3), for each of seven kinds of memory.
const FREE_LISTS: [usize; 4] = [1 | 1 << 32, 1 | 3 << 32, 3 | 1 << 32, 1];

macro_rules! address {
    ($function:expr) => {
        $function as *const () as usize
    };
}

fn make<const SLOT: usize>() -> Table {
    let mut table = [0; FIELDS];
    table[0] = VERSION | VALUE << 32;
    table[1] = NAME.as_ptr() as usize;
    table[2] = MOST_ADDRESS;
    table[3] = CLOSE_WEAK;
    table[4] = address!(file::terminate::<SLOT>);
    table[15] = address!(file::open::<SLOT>);
    table[16] = address!(file::close);
    table[17] = address!(file::compare);
    table[18] = address!(file::query);
    table[22] = address!(file::get_eoa);
    table[23] = address!(file::set_eoa);
    table[24] = address!(file::get_eof);
    table[25] = address!(file::get_handle);
    table[26] = address!(file::read);
    table[27] = address!(file::write);
    table[32] = address!(file::flush);
    table[33] = address!(file::truncate);
    table[34] = address!(file::lock);
    table[35] = address!(file::unlock);
    table[36] = address!(file::delete::<SLOT>);
    table[37] = address!(file::control);
    table[38..].copy_from_slice(&FREE_LISTS);
    table
}

/// The table of a host. Functions that get no file know their host by the slot.
pub(super) fn of_slot(slot: usize) -> Const {
    static TABLES: [OnceLock<Table>; crate::host::MOST] = [const { OnceLock::new() }; crate::host::MOST];
    let make = match slot {
        0 => make::<0>,
        1 => make::<1>,
        2 => make::<2>,
        3 => make::<3>,
        4 => make::<4>,
        5 => make::<5>,
        6 => make::<6>,
        _ => make::<7>,
    };
    TABLES[slot.min(crate::host::MOST - 1)].get_or_init(make).as_ptr().cast()
}
