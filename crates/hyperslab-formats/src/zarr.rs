//! zarr.
use crate::FormatEntry;
/// Registry line.
pub const ENTRY: FormatEntry = FormatEntry { name: "zarr", about: "", options: &[], build: None };
