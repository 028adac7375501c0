//! The library that owns the file's metadata, as the plane sees it.

use hyperslab_core::Result;

/// Where a chunk lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkAddress {
    /// First byte, from the beginning of the file.
    pub address: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// A bit for every filter that was left out.
    pub mask: u32,
}

/// What the plane asks of the library that owns the metadata. Only the thread that called the plane makes these calls,
/// while it is inside that call.
pub trait MetadataBackend {
    /// The first byte of an array in one piece; `None` while it has no place. With `allocate` it is given one, if that
    /// does not cost more than it is worth.
    fn dataset_address(&self, allocate: bool) -> Result<Option<u64>>;
    /// Calls `each` with the first element and the place of every chunk that has one.
    fn for_each_chunk(&self, each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()>;
    /// The stored form of the chunk that begins at an element, and its mask. Refuses chunks of more than `limit` bytes,
    /// and chunks that were never written.
    fn read_chunk(&self, origin: &[u64], limit: usize, stored: &mut Vec<u8>) -> Result<u32>;
    /// Stores a chunk. One that exists already keeps its mask: libhdf5 (2.2) does not tell all its parts of a new one.
    fn write_chunk(&self, origin: &[u64], stored: &[u8], mask: u32) -> Result<()>;
}
