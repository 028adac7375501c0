//! Compressors of Blosc streams.

use super::{Generation, blosclz, snappy};
use crate::codec_contexts::CodecContexts;
use crate::{deflate, lz4, zstandard};

/// The compressors that a file can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressor {
    BloscLz,
    Lz4,
    Lz4Well,
    Snappy,
    Zlib,
    Zstandard,
}

/// Formats of compressed streams; LZ4 and LZ4 HC share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFormat {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstandard,
}

impl Compressor {
    /// From its code in parameters and frames. Blosc2 has no Snappy.
    pub(super) fn numbered(number: u32, generation: Generation) -> Option<Self> {
        Some(match number {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Lz4Well,
            3 if generation == Generation::First => Self::Snappy,
            4 => Self::Zlib,
            5 => Self::Zstandard,
            _ => return None,
        })
    }

    /// Its code in parameters and frames.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 => 1,
            Self::Lz4Well => 2,
            Self::Snappy => 3,
            Self::Zlib => 4,
            Self::Zstandard => 5,
        }
    }

    /// Whether it favours ratio over speed, and so uses larger blocks.
    pub(super) fn is_thorough(self) -> bool {
        matches!(self, Self::Lz4Well | Self::Zlib | Self::Zstandard)
    }

    /// The code of its stream format in chunk headers.
    pub(super) fn streams_number(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 | Self::Lz4Well => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstandard => 4,
        }
    }

    /// Compresses `plain` into the front of `out`. Returns `None` if it does not fit. `level` is 1 to 9.
    pub(super) fn encode(
        self,
        level: u32,
        plain: &[u8],
        out: &mut [u8],
        contexts: &mut CodecContexts,
    ) -> Option<usize> {
        let level = level.clamp(1, 9) as i32;
        match self {
            Self::BloscLz => blosclz::encode(plain, out, &mut contexts.places),
            Self::Lz4 => lz4::compress(plain, out, 10 - level),
            Self::Lz4Well => lz4::compress_well(plain, out, level),
            Self::Snappy => snappy::encode(plain, out, &mut contexts.places),
            Self::Zlib => deflate::encode_into(level as u32, plain, out, contexts),
            Self::Zstandard => {
                let level = if level < 9 { 2 * level - 1 } else { zstandard::nearest_level(i32::MAX) };
                zstandard::encode_into(level, plain, out, contexts)
            }
        }
    }
}

impl StreamFormat {
    /// From its code in chunk headers.
    pub(super) fn numbered(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Snappy,
            3 => Self::Zlib,
            4 => Self::Zstandard,
            _ => return None,
        })
    }

    /// Decompresses a stream, which must fill `plain` exactly.
    pub(super) fn decode(self, stream: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Option<()> {
        match self {
            Self::BloscLz => blosclz::decode(stream, plain),
            Self::Lz4 => lz4::decompress(stream, plain),
            Self::Snappy => snappy::decode(stream, plain),
            Self::Zlib => {
                let len = deflate::decode(stream, plain, contexts).ok().flatten()?;
                (len == plain.len()).then_some(())
            }
            Self::Zstandard => {
                let len = zstandard::decode(stream, plain, contexts).ok()?;
                (len == plain.len()).then_some(())
            }
        }
    }
}
