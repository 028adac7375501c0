//! posix.
use crate::FormatEntry;
/// Registry line.
pub const ENTRY: FormatEntry = FormatEntry { name: "posix", about: "", options: &[], build: None };
