//! What is done to the bytes of chunks.

use crate::counts::{Count, Counts};
use hyperslab_core::Filter;

/// A kind of transformation, as far as its cost is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Deflate,
    Zstd,
    /// Blosc, LZ4, LZF, bitshuffle.
    Fast,
    Shuffle,
    Checksum,
}

impl Codec {
    pub(crate) fn of(filter: &Filter) -> Self {
        match filter {
            Filter::Deflate(_) => Self::Deflate,
            Filter::Zstd(_) | Filter::Blosc2(_) => Self::Zstd,
            Filter::Blosc(_) | Filter::Lz4 | Filter::Lzf | Filter::Bitshuffle => Self::Fast,
            Filter::Shuffle => Self::Shuffle,
            Filter::Fletcher32 => Self::Checksum,
        }
    }

    fn encoding(self) -> Count {
        match self {
            Self::Deflate => Count::DeflateEncoded,
            Self::Zstd => Count::ZstdEncoded,
            Self::Fast => Count::FastEncoded,
            Self::Shuffle => Count::Shuffled,
            Self::Checksum => Count::Checksummed,
        }
    }

    fn decoding(self) -> Count {
        match self {
            Self::Deflate => Count::DeflateDecoded,
            Self::Zstd => Count::ZstdDecoded,
            Self::Fast => Count::FastDecoded,
            Self::Shuffle => Count::Shuffled,
            Self::Checksum => Count::Checksummed,
        }
    }

    /// Counts the coding of `bytes`.
    pub(crate) fn encode(codecs: &[Self], bytes: u64, counts: &mut Counts) {
        codecs.iter().for_each(|codec| counts.add(codec.encoding(), bytes));
    }

    /// Counts the decoding to `bytes`.
    pub(crate) fn decode(codecs: &[Self], bytes: u64, counts: &mut Counts) {
        codecs.iter().for_each(|codec| counts.add(codec.decoding(), bytes));
    }
}
