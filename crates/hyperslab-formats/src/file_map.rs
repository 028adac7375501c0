//! Where the bytes of a container lie in its file: elements of arrays, metadata, and what is neither.

use hyperslab_core::{Dims, Error, Result};

/// The most pieces of elements that a map has.
pub const MOST_PIECES: usize = 1 << 22;

/// A map of one file.
#[derive(Debug, Clone, Default)]
pub struct FileMap {
    /// Bytes of the file.
    pub size: u64,
    /// The arrays, by name.
    pub arrays: Vec<MappedArray>,
    /// Pieces whose places are known, by their first byte.
    pub pieces: Vec<FilePiece>,
    /// Bytes of metadata; of some only the number is known, not the place. `None` if not even that.
    pub metadata: Option<u64>,
}

/// An array in a map.
#[derive(Debug, Clone)]
pub struct MappedArray {
    /// Its path.
    pub name: String,
    /// Extents of what lies together: a chunk, a record, or the whole array.
    pub block: Dims,
    /// Whether blocks are stored as they are, so that a part of one is some of its bytes.
    pub plain: bool,
}

/// Bytes that lie together.
#[derive(Debug, Clone)]
pub struct FilePiece {
    /// First byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
    /// Number of the array whose elements they are; `None` for metadata.
    pub array: Option<usize>,
    /// First element.
    pub origin: Dims,
}

impl FileMap {
    /// Adds a piece. Refuses more than [`MOST_PIECES`].
    pub fn add(&mut self, piece: FilePiece) -> Result<()> {
        if self.pieces.len() == MOST_PIECES {
            let message = format!("the file has more than {MOST_PIECES} chunks or records");
            return Err(Error::unsupported("map file", message));
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// Bytes of elements.
    pub fn elements(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.array.is_some()).map(|piece| piece.len).sum()
    }

    /// Pieces sorted by their first byte.
    pub fn sorted(mut self) -> Self {
        self.pieces.sort_by_key(|piece| piece.start);
        self
    }
}
