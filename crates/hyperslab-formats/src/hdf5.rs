//! hdf5.
use crate::FormatEntry;
/// Registry line.
pub const ENTRY: FormatEntry = FormatEntry { name: "hdf5", about: "", options: &[], build: None };
