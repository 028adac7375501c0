//! Filter specifications as stored in HDF5 files.

use hyperslab_core::Filter;

/// One filter of an array, as stored in the file: id, flags and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSpec {
    /// The registered filter id.
    pub id: u32,
    /// Whether the filter is skipped for chunks that it cannot handle or shrink (recorded in their filter mask).
    pub optional: bool,
    /// Its parameters.
    pub parameters: Vec<u32>,
}

/// Compressor applied after bitshuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitshuffleCodec {
    /// None.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard, at this level.
    Zstd(i32),
}

/// Compressor inside Blosc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloscCodec {
    /// Blosc's own BloscLZ.
    BloscLz,
    /// LZ4.
    Lz4,
    /// LZ4 HC.
    Lz4Hc,
    /// Snappy, which Blosc2 does not have.
    Snappy,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// Shuffle that Blosc applies before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloscShuffle {
    /// Nothing.
    None,
    /// Byte shuffle.
    Bytes,
    /// Bit shuffle.
    Bits,
}

/// Largest element size of Blosc; for larger elements its filter stores 1.
const LARGEST_BLOSC_ELEMENT: u32 = 255;
/// Most chunk dimensions that Blosc2 parameters describe.
const MOST_BLOSC2_DIMENSIONS: usize = 8;

impl FilterSpec {
    /// The closest [`Filter`] of the core crate, with its level; `None` for an unknown filter.
    pub fn to_filter(&self) -> Option<Filter> {
        let level = |place: usize, usual: u8, most: u8| {
            self.parameters.get(place).map_or(usual, |&level| level.min(most.into()) as u8)
        };
        Some(match self.id {
            1 => Filter::Deflate(level(0, 6, 9)),
            2 => Filter::Shuffle,
            3 => Filter::Fletcher32,
            32000 => Filter::Lzf,
            32001 => Filter::Blosc(level(4, 5, 9)),
            32004 => Filter::Lz4,
            32008 => Filter::Bitshuffle,
            32015 => Filter::Zstd(level(0, 3, 22)),
            32026 => Filter::Blosc2(level(4, 5, 9)),
            _ => return None,
        })
    }
}

/// Specifications for new arrays, identical to what libhdf5, h5py and hdf5plugin store for the same settings.
impl FilterSpec {
    /// Deflate at a level of 0 to 9.
    pub fn deflate(level: u32) -> Self {
        Self::optional(1, vec![level])
    }

    /// Shuffle, for elements of so many bytes.
    pub fn shuffle(element: u32) -> Self {
        Self::optional(2, vec![element])
    }

    /// A checksum. It is never left out.
    pub fn fletcher32() -> Self {
        Self { id: 3, optional: false, parameters: Vec::new() }
    }

    /// LZF as h5py has it, for chunks of so many bytes.
    pub fn lzf(chunk_bytes: u32) -> Self {
        const REVISION: u32 = 4;
        const LIBRARY: u32 = 0x105;
        Self::optional(32000, vec![REVISION, LIBRARY, chunk_bytes])
    }

    /// LZ4 in blocks of so many bytes; zero makes a chunk one block.
    pub fn lz4(block_bytes: u32) -> Self {
        Self::optional(32004, vec![block_bytes])
    }

    /// Zstandard at a level, 3 being usual.
    pub fn zstd(level: i32) -> Self {
        Self::optional(32015, vec![level as u32])
    }

    /// Bitshuffle, for elements of so many bytes.
    pub fn bitshuffle(element: u32, codec: BitshuffleCodec) -> Self {
        const VERSION: [u32; 2] = [0, 4];
        let mut parameters = vec![VERSION[0], VERSION[1], element, 0];
        match codec {
            BitshuffleCodec::None => parameters.push(0),
            BitshuffleCodec::Lz4 => parameters.push(2),
            BitshuffleCodec::Zstd(level) => parameters.extend([3, level as u32]),
        }
        Self::optional(32008, parameters)
    }

    /// Blosc at a level of 0 to 9, for elements and chunks of so many bytes.
    pub fn blosc(element: u32, chunk_bytes: u32, level: u32, shuffle: BloscShuffle, codec: BloscCodec) -> Self {
        let element = if element > LARGEST_BLOSC_ELEMENT { 1 } else { element };
        Self::optional(32001, vec![2, 2, element, chunk_bytes, level, shuffle.number(), codec.number()])
    }

    /// Blosc2 at a level of 0 to 9, for elements of so many bytes and chunks of this shape.
    pub fn blosc2(element: u32, chunk: &[u32], level: u32, shuffle: BloscShuffle, codec: BloscCodec) -> Self {
        let chunk_bytes = chunk.iter().fold(element, |bytes, size| bytes.wrapping_mul(*size));
        let mut parameters = vec![1, 0, element, chunk_bytes, level, shuffle.number(), codec.number()];
        if (2..=MOST_BLOSC2_DIMENSIONS).contains(&chunk.len()) {
            parameters.push(chunk.len() as u32);
            parameters.extend_from_slice(chunk);
        }
        Self::optional(32026, parameters)
    }

    fn optional(id: u32, parameters: Vec<u32>) -> Self {
        Self { id, optional: true, parameters }
    }
}

impl BloscCodec {
    fn number(self) -> u32 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 => 1,
            Self::Lz4Hc => 2,
            Self::Snappy => 3,
            Self::Zlib => 4,
            Self::Zstd => 5,
        }
    }
}

impl BloscShuffle {
    fn number(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Bytes => 1,
            Self::Bits => 2,
        }
    }
}
