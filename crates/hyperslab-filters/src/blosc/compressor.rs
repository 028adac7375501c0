//! What compresses the streams.

use super::{Generation, blosclz, snappy};
use crate::codec_contexts::CodecContexts;
use crate::{deflate, lz4, zstandard};

/// The codecs that a file can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compressor {
    BloscLz,
    Lz4,
    Lz4Well,
    Snappy,
    Zlib,
    Zstandard,
}

/// What streams look like; two codecs share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamFormat {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstandard,
}

impl Compressor {
    /// By the number that parameters and frames use. The second generation has no Snappy.
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

    /// The number that parameters and frames use.
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

    /// Whether it is for small results rather than for speed, and wants larger blocks.
    pub(super) fn is_thorough(self) -> bool {
        matches!(self, Self::Lz4Well | Self::Zlib | Self::Zstandard)
    }

    /// The number of its streams in chunks.
    pub(super) fn streams_number(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 | Self::Lz4Well => 1,
            Self::Snappy => 2,
            Self::Zlib => 3,
            Self::Zstandard => 4,
        }
    }

    /// The stream of `plain` at the front of `out`, or none if it does not fit. `level` is 1 to 9.
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
    /// By the number in chunks.
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

    /// The plain form of a stream, which must fill `plain` exactly.
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
