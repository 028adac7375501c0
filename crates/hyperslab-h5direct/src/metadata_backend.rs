//! The trait by which the direct path calls the library that owns the file's metadata.

use hyperslab_core::Result;

/// Location of a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkAddress {
    /// Offset in the file.
    pub address: u64,
    /// Stored size in bytes.
    pub bytes: u64,
    /// Filter mask: bit `i` is set if filter `i` was skipped.
    pub mask: u32,
}

/// The library that owns the metadata of a dataset. Called only by the thread that called the [`DirectDataset`], during
/// that call.
///
/// [`DirectDataset`]: crate::DirectDataset
pub trait MetadataBackend {
    /// The file offset of a contiguous dataset; `None` while it is not allocated. With `allocate` it is allocated
    /// first, unless that would write fill values.
    fn dataset_address(&self, allocate: bool) -> Result<Option<u64>>;
    /// Calls `each` with the first element and the address of every allocated chunk.
    fn for_each_chunk(&self, each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()>;
    /// Reads the stored bytes of the chunk whose first element is `origin`, and returns its filter mask. Fails for
    /// chunks of more than `limit` bytes, and for chunks that were never written.
    fn read_chunk(&self, origin: &[u64], limit: usize, stored: &mut Vec<u8>) -> Result<u32>;
    /// Stores an encoded chunk. Callers pass the existing mask of a chunk that exists: libhdf5 2.2 does not record a
    /// changed mask reliably.
    fn write_chunk(&self, origin: &[u64], stored: &[u8], mask: u32) -> Result<()>;
    /// Has the library filter and store a chunk of these extents by itself, given all its elements, and choose the mask; or stores
    /// what was encoded. `false`: nothing was stored.
    fn write_elements(
        &self,
        _origin: &[u64],
        _extents: &[u64],
        _elements: &[u8],
        _encoded: (&[u8], u32),
    ) -> Result<bool> {
        Ok(false)
    }
}
