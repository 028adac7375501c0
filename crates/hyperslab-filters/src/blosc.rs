//! Blosc and Blosc2: a chunk in blocks that are prefiltered, optionally split into streams, and compressed.
//!
//! The chunk layout is implemented here; the streams within use the codecs of the other filters. The C libraries are not used:
//! the two export conflicting symbols, so that no program can link both, and neither bounds its allocations.

mod b2nd;
mod blosclz;
mod compressor;
mod decode;
mod encode;
mod frame;
mod prefilter;
mod snappy;

use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, unsupported};
use crate::scratch::Scratch;
use compressor::Compressor;
use decode::Chunk;
use hyperslab_core::Result;
use prefilter::Prefilter;

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// C-Blosc: bare chunks.
    First,
    /// C-Blosc2: chunks in a frame.
    Second,
}

impl Generation {
    fn name(self) -> &'static str {
        match self {
            Self::First => "blosc",
            Self::Second => "blosc2",
        }
    }
}

/// The filter with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blosc {
    generation: Generation,
    compressor: Compressor,
    /// Compression level: 0 copies, 9 is the slowest.
    level: u32,
    prefilter: Prefilter,
    element: usize,
    /// Block size in bytes; 0 lets the writer choose.
    block: usize,
    /// Chunk extents of Blosc2, to bound the padding of N-dimensional blocks.
    dimensions: Vec<u32>,
}

impl Blosc {
    /// Whether it is of the first generation.
    pub(crate) fn is_first(&self) -> bool {
        self.generation == Generation::First
    }

    /// Parses the filter parameters: version, block size (Blosc2), element size, chunk size, level, prefilter, compressor, and
    /// the chunk shape (Blosc2).
    pub(crate) fn new(generation: Generation, parameters: &[u32]) -> Result<Self> {
        let parameter = |place: usize, default| parameters.get(place).copied().unwrap_or(default);
        let who = generation.name();
        let refuse = |what: String| Err(unsupported(who, what));
        let Some(compressor) = Compressor::numbered(parameter(6, 0), generation) else {
            return refuse(format!("the codec {} is unknown here", parameter(6, 0)));
        };
        let Some(prefilter) = Prefilter::numbered(parameter(5, 1), generation) else {
            return refuse(format!("the sorting {} is unknown here", parameter(5, 1)));
        };
        let level = match parameter(4, 5) {
            level @ 0..=9 => level,
            level => return refuse(format!("a level of 0 to 9 is needed, not {level}")),
        };
        let block = if generation == Generation::Second { parameter(1, 0) } else { 0 };
        let dimensions = match (generation, parameters.get(8..)) {
            (Generation::Second, Some(shape)) => shape.to_vec(),
            _ => Vec::new(),
        };
        let element = parameter(2, 1).max(1) as usize;
        Ok(Self { generation, compressor, level, prefilter, element, block: block as usize, dimensions })
    }

    /// Name in error messages.
    pub(crate) fn name(&self) -> &'static str {
        self.generation.name()
    }

    /// Upper bound of the encoded size of `plain` bytes. N-dimensional blocks are padded beyond
    /// the edges of a chunk, by less than its extent in each dimension.
    pub(crate) fn limit(&self, plain: usize) -> usize {
        let mut padded = plain;
        for &size in &self.dimensions {
            let most = (2 * u64::from(size)).saturating_sub(2).max(u64::from(size)) as usize;
            padded = (padded / size.max(1) as usize + 1).saturating_mul(most);
        }
        padded.max(plain).saturating_add(padded / 8).saturating_add(8192)
    }

    /// Encodes `plain`. Returns `None` if it is too large for the format.
    pub(crate) fn encode(&self, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Option<usize> {
        match self.generation {
            Generation::First => encode::chunk(self, plain, out.room(encode::room(plain.len())), contexts),
            Generation::Second => frame::encode(self, plain, out, contexts),
        }
    }

    /// The decoded size according to the header.
    pub(crate) fn declared_size(&self, stored: &[u8]) -> Option<u64> {
        match self.generation {
            Generation::First => Chunk::parse(stored, self.name()).ok().map(|chunk| chunk.plain_size() as u64),
            Generation::Second => frame::declared_size(stored),
        }
    }

    /// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
    pub(crate) fn decode(
        &self,
        stored: &[u8],
        plain: &mut [u8],
        contexts: &mut CodecContexts,
    ) -> Result<Option<usize>> {
        match self.generation {
            Generation::First => {
                let chunk = Chunk::parse(stored, self.name())?;
                let Some(plain) = plain.get_mut(..chunk.plain_size()) else { return Ok(None) };
                chunk.decode(plain, contexts)?;
                Ok(Some(plain.len()))
            }
            Generation::Second => frame::decode(stored, plain, contexts),
        }
    }
}

/// The little-endian i32 at `place`.
fn number(bytes: &[u8], place: usize) -> Option<i32> {
    bytes.get(place..).and_then(|rest| rest.first_chunk()).map(|number| i32::from_le_bytes(*number))
}

/// The same as a size; negative is corrupt.
fn size(bytes: &[u8], place: usize, who: &'static str) -> Result<usize> {
    number(bytes, place)
        .and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| corrupt(who, "a size in the header is missing or negative"))
}
