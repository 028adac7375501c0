//! Reasons for a fallback to the library.

use std::fmt;

/// Why the library must execute a transfer, or all transfers of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FallbackReason {
    /// A filter or its parameters are not supported; with the error message.
    Filter(String),
    /// The dataset is not allocated, and allocating it would write fill values.
    NotAllocated,
    /// The library allocated chunks since the index was loaded, and reloading it costs more than the transfer.
    ChunkAddressUnknown,
    /// The memory is an irregular selection, too large to be packed first.
    ScatteredMemory,
    /// The conversion between the types of memory and file is not supported; with the error message.
    Conversion(String),
    /// A read-modify-write would be needed, and other processes may write the bytes in between.
    OtherWriters,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(why) | Self::Conversion(why) => f.write_str(why),
            Self::NotAllocated => f.write_str("the array has no place in the file yet"),
            Self::ChunkAddressUnknown => f.write_str("the library made chunks whose places are not known yet"),
            Self::ScatteredMemory => f.write_str("the memory is an irregular selection of a larger buffer"),
            Self::OtherWriters => {
                f.write_str("other processes may write between the selected bytes, which must be kept")
            }
        }
    }
}
