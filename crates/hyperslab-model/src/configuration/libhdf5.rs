//! What is known of the library that moves chunks of one file.

use hyperslab_core::ChunkedFileCost;

/// What differs between versions of libhdf5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryVersion {
    /// 1.x.
    V1,
    /// 2.x.
    V2,
}

impl LibraryVersion {
    /// Bytes and slots of the chunk cache.
    fn cache(self) -> (u64, u64) {
        match self {
            Self::V1 => (1 << 20, 521),
            Self::V2 => (8 << 20, 8191),
        }
    }
}

/// A version with what the options say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Libhdf5 {
    pub(crate) version: LibraryVersion,
    pub(crate) cost: ChunkedFileCost,
}

/// Decoded chunks that the data plane keeps of an array.
const PLANE_CACHE: u64 = 32 << 20;

impl Libhdf5 {
    /// Bytes of chunks that are kept of an array.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.cost.cache.unwrap_or(if self.cost.direct { PLANE_CACHE } else { self.version.cache().0 })
    }

    /// Slots for them.
    pub(crate) fn cache_slots(&self) -> u64 {
        self.cost.cache_slots.unwrap_or(self.version.cache().1)
    }
}
