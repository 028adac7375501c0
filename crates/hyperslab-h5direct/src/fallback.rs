//! Why the plane leaves a transfer to the library.

use std::fmt;

/// A reason for leaving a transfer, or an array, to the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FallbackReason {
    /// A filter or its parameters are unknown here; what the filters said.
    Filter(String),
    /// The array has no place in the file yet, and giving it one would cost more than the transfer.
    NotAllocated,
    /// Chunks were made by the library since their places were last asked for, and asking costs more than the transfer.
    ChunkAddressUnknown,
    /// The memory is a union of slabs, and too large to be packed first.
    ScatteredMemory,
    /// The elements are of another type in memory, and cannot be converted here; what the conversion said.
    Conversion(String),
    /// Other processes may write what lies between the selected bytes.
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
