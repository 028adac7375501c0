//! The codec of one filter: encodes and decodes chunks.

use crate::bitshuffle::Bitshuffle;
use crate::blosc::{Blosc, Generation};
use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, unsupported};
use crate::scratch::Scratch;
use crate::{FilterSpec, deflate, fletcher32, lz4, lzf, shuffle, zstandard};
use hyperslab_core::{Error, Result};

/// A filter with its parsed parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Codec {
    /// zlib streams, at a level of zlib.
    Deflate(u32),
    /// Byte shuffle of elements of this size.
    Shuffle(usize),
    /// A trailing checksum.
    Fletcher32,
    /// Frames of Zstandard, at this level.
    Zstandard(i32),
    /// LZF.
    Lzf,
    /// LZ4 blocks of this many bytes; 0 is the default.
    Lz4(u32),
    /// Bit shuffle, optionally compressed.
    Bitshuffle(Bitshuffle),
    /// Blosc, of either generation.
    Blosc(Blosc),
}

/// The result of encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Encoded to this many bytes: fewer than before, or of the fixed size of the filter.
    Coded(usize),
    /// Encoded to this many bytes, not fewer than before: an optional filter should be skipped.
    Larger(usize),
    /// The format cannot represent the input.
    Inexpressible,
}

impl Codec {
    /// Parses a filter; the error names the one that is not supported.
    pub(crate) fn new(filter: &FilterSpec) -> Result<Self> {
        let parameter = |place: usize| filter.parameters.get(place).copied();
        match filter.id {
            1 => match parameter(0) {
                Some(level @ 0..=9) => Ok(Self::Deflate(level)),
                other => Err(unsupported("deflate", format!("a level of 0 to 9 is needed, not {other:?}"))),
            },
            2 => match parameter(0) {
                Some(element @ 1..) => Ok(Self::Shuffle(element as usize)),
                other => Err(unsupported("shuffle", format!("the size of an element is needed, not {other:?}"))),
            },
            3 => Ok(Self::Fletcher32),
            32000 => Ok(Self::Lzf),
            32001 => Ok(Self::Blosc(Blosc::new(Generation::First, &filter.parameters)?)),
            32004 => Ok(Self::Lz4(parameter(0).unwrap_or(0))),
            32008 => Ok(Self::Bitshuffle(Bitshuffle::new(&filter.parameters)?)),
            32026 => Ok(Self::Blosc(Blosc::new(Generation::Second, &filter.parameters)?)),
            32015 => {
                let level = parameter(0).map_or(zstandard::DEFAULT_LEVEL, |level| level as i32);
                Ok(Self::Zstandard(zstandard::nearest_level(level)))
            }
            other => Err(unknown(other)),
        }
    }

    /// Name in error messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Deflate(_) => "deflate",
            Self::Shuffle(_) => "shuffle",
            Self::Fletcher32 => "fletcher32",
            Self::Zstandard(_) => "zstd",
            Self::Lzf => "lzf",
            Self::Lz4(_) => "lz4",
            Self::Bitshuffle(_) => "bitshuffle",
            Self::Blosc(blosc) => blosc.name(),
        }
    }

    /// Whether HDF5's own filter fails, and is skipped if it is optional, where it makes data no smaller.
    pub(crate) fn gives_up(&self) -> bool {
        match self {
            Self::Lzf => true,
            Self::Blosc(blosc) => blosc.is_first(),
            _ => false,
        }
    }

    /// The encoded size of `plain` bytes, if it does not depend on their values.
    pub(crate) fn fixed_size(&self, plain: usize) -> Option<usize> {
        match self {
            Self::Shuffle(_) => Some(plain),
            Self::Fletcher32 => plain.checked_add(fletcher32::SIZE),
            Self::Bitshuffle(bitshuffle) if bitshuffle.keeps_size() => Some(plain),
            _ => None,
        }
    }

    /// Upper bound of the encoded size of at most `plain` bytes, by any writer.
    pub(crate) fn stored_limit(&self, plain: usize) -> usize {
        match self {
            Self::Shuffle(_) => plain,
            Self::Fletcher32 => plain.saturating_add(fletcher32::SIZE),
            Self::Deflate(_) => deflate::limit(plain),
            Self::Zstandard(_) => zstandard::limit(plain),
            Self::Lzf => lzf::limit(plain),
            Self::Lz4(block) => lz4::limit(*block, plain),
            Self::Bitshuffle(bitshuffle) => bitshuffle.limit(plain),
            Self::Blosc(blosc) => blosc.limit(plain),
        }
    }

    /// Encodes `plain` into the front of `out`.
    pub(crate) fn encode(&self, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Result<Outcome> {
        let len = match self {
            Self::Shuffle(element) => {
                shuffle::encode(*element, plain, out.room(plain.len()));
                return Ok(Outcome::Coded(plain.len()));
            }
            Self::Fletcher32 => {
                out.room(plain.len() + fletcher32::SIZE)[..plain.len()].copy_from_slice(plain);
                out.append(plain.len(), &fletcher32::stored_sum(plain));
                return Ok(Outcome::Coded(plain.len() + fletcher32::SIZE));
            }
            Self::Deflate(level) => Some(deflate::encode(*level, plain, out, contexts)?),
            Self::Zstandard(level) => Some(zstandard::encode(*level, plain, out, contexts)?),
            Self::Lzf => Some(lzf::encode(plain, out, contexts)),
            Self::Lz4(block) => Some(lz4::encode(*block, plain, out)),
            Self::Bitshuffle(bitshuffle) => bitshuffle.encode(plain, out, contexts)?,
            Self::Blosc(blosc) => blosc.encode(plain, out, contexts),
        };
        let Some(len) = len else { return Ok(Outcome::Inexpressible) };
        if self.fixed_size(plain.len()) == Some(len) {
            return Ok(Outcome::Coded(len));
        }
        Ok(if len < plain.len() { Outcome::Coded(len) } else { Outcome::Larger(len) })
    }

    /// Decodes `stored` into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
    pub(crate) fn decode(
        &self,
        stored: &[u8],
        plain: &mut [u8],
        contexts: &mut CodecContexts,
    ) -> Result<Option<usize>> {
        match self {
            Self::Shuffle(element) => {
                let Some(plain) = plain.get_mut(..stored.len()) else { return Ok(None) };
                shuffle::decode(*element, stored, plain);
                Ok(Some(stored.len()))
            }
            Self::Fletcher32 => {
                let verified = fletcher32::verified(stored)?;
                let Some(plain) = plain.get_mut(..verified.len()) else { return Ok(None) };
                plain.copy_from_slice(verified);
                Ok(Some(verified.len()))
            }
            Self::Deflate(_) => deflate::decode(stored, plain, contexts),
            Self::Zstandard(_) => match zstandard::declared_size(stored) {
                Some(size) if size > plain.len() as u64 => Ok(None),
                _ => zstandard::decode(stored, plain, contexts).map(Some),
            },
            Self::Lzf => lzf::decode(stored, plain),
            Self::Lz4(_) => lz4::decode(stored, plain),
            Self::Bitshuffle(bitshuffle) => bitshuffle.decode(stored, plain, contexts),
            Self::Blosc(blosc) => blosc.decode(stored, plain, contexts),
        }
    }

    /// The decoded size, where the encoded form contains it.
    pub(crate) fn declared_size(&self, stored: &[u8]) -> Option<u64> {
        match self {
            Self::Deflate(_) | Self::Lzf => None,
            Self::Shuffle(_) => Some(stored.len() as u64),
            Self::Fletcher32 => Some(stored.len().saturating_sub(fletcher32::SIZE) as u64),
            Self::Zstandard(_) => zstandard::declared_size(stored),
            Self::Lz4(_) => lz4::declared_size(stored),
            Self::Bitshuffle(bitshuffle) => bitshuffle.declared_size(stored),
            Self::Blosc(blosc) => blosc.declared_size(stored),
        }
    }

    /// Decodes `stored`, whose decoded size must be exactly that of `plain`.
    pub(crate) fn decode_exactly(&self, stored: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Result<()> {
        match self.decode(stored, plain, contexts)? {
            Some(len) if len == plain.len() => Ok(()),
            Some(len) => Err(corrupt(self.name(), format!("{len} bytes came out where {} belong", plain.len()))),
            None => Err(corrupt(self.name(), format!("more than {} bytes came out", plain.len()))),
        }
    }
}

fn unknown(id: u32) -> Error {
    let name = match id {
        4 => "szip",
        5 => "n-bit",
        6 => "scale-offset",
        307 => "bzip2",
        32013 => "zfp",
        32017 => "sz",
        32024 => "sz3",
        32028 => "sperr",
        _ => return Error::unsupported("set up filters", format!("the filter {id} is unknown here")),
    };
    Error::unsupported("set up filters", format!("the filter {name} ({id}) is not coded here"))
}
