//! null.
use crate::FormatEntry;
/// Registry line.
pub const ENTRY: FormatEntry = FormatEntry { name: "null", about: "", options: &[], build: None };
