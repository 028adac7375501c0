//! Bitshuffle: blocks of elements with transposed bits, optionally compressed.

use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, failed, unsupported};
use crate::scratch::Scratch;
use crate::{bit_transpose, lz4, zstandard};
use hyperslab_core::Result;

const NAME: &str = "bitshuffle";
/// Header, if compressed: total plain size as u64 and block size as u32, both big-endian.
const HEADER: usize = 12;
const PREFIX: usize = 4;
/// Default block size in bytes, and the minimum number of elements of a block.
const DEFAULT_BLOCK: usize = 8192;
const FEWEST: usize = 128;

/// Compressor of transposed blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compressor {
    None,
    Lz4,
    Zstandard(i32),
}

/// The filter with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bitshuffle {
    element: usize,
    /// Elements of a block.
    block: usize,
    compressor: Compressor,
}

impl Bitshuffle {
    /// Parses the filter parameters: two of the version, element size, elements per block, compressor, level.
    pub(crate) fn new(parameters: &[u32]) -> Result<Self> {
        let parameter = |place: usize| parameters.get(place).copied().unwrap_or(0);
        let element = match parameter(2) {
            0 => return Err(unsupported(NAME, "the size of an element is not stated")),
            element => element as usize,
        };
        let block = block_size(parameter(3) as usize, element)
            .filter(|block| block.checked_mul(element).is_some_and(|bytes| u32::try_from(bytes).is_ok()))
            .ok_or_else(|| unsupported(NAME, format!("blocks of {} elements: no multiple of 8", parameter(3))))?;
        let compressor = match parameter(4) {
            0 => Compressor::None,
            2 => Compressor::Lz4,
            3 => Compressor::Zstandard(zstandard::nearest_level(parameter(5) as i32)),
            other => return Err(unsupported(NAME, format!("the compression {other} is unknown here"))),
        };
        Ok(Self { element, block, compressor })
    }

    /// Whether it does not compress.
    pub(crate) fn keeps_size(&self) -> bool {
        self.compressor == Compressor::None
    }

    /// Upper bound of the encoded size of `plain` bytes.
    pub(crate) fn limit(&self, plain: usize) -> usize {
        if self.keeps_size() {
            return plain;
        }
        let blocks = (plain / self.element).div_ceil(self.block);
        plain.saturating_add(plain / 64).saturating_add(blocks.saturating_mul(128)).saturating_add(4096)
    }

    /// Encodes `plain`. Returns `None` if it is no whole number of elements, which the format cannot represent.
    pub(crate) fn encode(
        &self,
        plain: &[u8],
        out: &mut Scratch,
        contexts: &mut CodecContexts,
    ) -> Result<Option<usize>> {
        if !plain.len().is_multiple_of(self.element) {
            return Ok(None);
        }
        let mut sorted = std::mem::take(&mut contexts.block);
        let mut between = std::mem::take(&mut contexts.between);
        let size = self.encode_blocks(plain, out, &mut sorted, &mut between, contexts);
        (contexts.block, contexts.between) = (sorted, between);
        size.map(Some)
    }

    fn encode_blocks(
        &self,
        plain: &[u8],
        out: &mut Scratch,
        sorted: &mut Scratch,
        between: &mut Scratch,
        contexts: &mut CodecContexts,
    ) -> Result<usize> {
        let (blocks, rest) = plain.split_at(whole_groups(plain.len(), self.element));
        let block = self.block * self.element;
        if self.keeps_size() {
            let (sorted, copied) = out.room(plain.len()).split_at_mut(blocks.len());
            copied.copy_from_slice(rest);
            for (block, sorted) in blocks.chunks(block).zip(sorted.chunks_mut(block)) {
                bit_transpose::encode(self.element, block, sorted, between.room(block.len()));
            }
            return Ok(plain.len());
        }
        let bound = |len: usize| PREFIX + lz4::bound(len).max(zstd_safe::compress_bound(len));
        let out = out.room(HEADER + blocks.len().div_ceil(block) * bound(block.min(blocks.len())) + rest.len());
        out[..8].copy_from_slice(&(plain.len() as u64).to_be_bytes());
        out[8..HEADER].copy_from_slice(&(block as u32).to_be_bytes());
        let mut end = HEADER;
        for block in blocks.chunks(block) {
            let sorted = sorted.room(block.len());
            bit_transpose::encode(self.element, block, sorted, between.room(block.len()));
            let (prefix, room) = out[end..].split_at_mut(PREFIX);
            let size = match self.compressor {
                Compressor::Zstandard(level) => zstandard::encode_into(level, sorted, room, contexts),
                _ => lz4::compress(sorted, room, 1),
            };
            let size = size.ok_or_else(|| failed(NAME, "a block cannot be compressed"))?;
            prefix.copy_from_slice(&(size as u32).to_be_bytes());
            end += PREFIX + size;
        }
        out[end..end + rest.len()].copy_from_slice(rest);
        Ok(end + rest.len())
    }

    /// The decoded size according to the header.
    pub(crate) fn declared_size(&self, stored: &[u8]) -> Option<u64> {
        if self.keeps_size() { Some(stored.len() as u64) } else { lz4::declared_size(stored) }
    }

    /// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
    pub(crate) fn decode(
        &self,
        stored: &[u8],
        plain: &mut [u8],
        contexts: &mut CodecContexts,
    ) -> Result<Option<usize>> {
        let total = self.declared_size(stored).ok_or_else(|| corrupt(NAME, "the header is cut off"))?;
        let Some(plain) = usize::try_from(total).ok().and_then(|total| plain.get_mut(..total)) else {
            return Ok(None);
        };
        if !plain.len().is_multiple_of(self.element) {
            return Err(corrupt(NAME, format!("{total} bytes are no whole number of elements")));
        }
        let mut sorted = std::mem::take(&mut contexts.block);
        let mut between = std::mem::take(&mut contexts.between);
        let result = self.decode_blocks(stored, plain, &mut sorted, &mut between, contexts);
        (contexts.block, contexts.between) = (sorted, between);
        result.map(|()| Some(plain.len()))
    }

    fn decode_blocks(
        &self,
        stored: &[u8],
        plain: &mut [u8],
        sorted: &mut Scratch,
        between: &mut Scratch,
        contexts: &mut CodecContexts,
    ) -> Result<()> {
        let whole = whole_groups(plain.len(), self.element);
        let (blocks, rest) = plain.split_at_mut(whole);
        if self.keeps_size() {
            let block = self.block * self.element;
            for (sorted, block) in stored[..whole].chunks(block).zip(blocks.chunks_mut(block)) {
                bit_transpose::decode(self.element, sorted, block, between.room(block.len()));
            }
            rest.copy_from_slice(&stored[whole..]);
            return Ok(());
        }
        let (header, mut behind) =
            stored.split_first_chunk::<HEADER>().ok_or_else(|| corrupt(NAME, "the header is cut off"))?;
        let declared = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let block = block_size(declared / self.element, self.element)
            .and_then(|block| block.checked_mul(self.element))
            .ok_or_else(|| corrupt(NAME, format!("blocks of {declared} bytes are no multiple of 8 elements")))?;
        for block in blocks.chunks_mut(block) {
            let compressed = lz4::next_block(&mut behind, NAME)?;
            let sorted = sorted.room(block.len());
            let read = match self.compressor {
                Compressor::Zstandard(_) => zstandard::decode(compressed, sorted, contexts)? == sorted.len(),
                _ => lz4::decompress(compressed, sorted).is_some(),
            };
            if !read {
                return Err(corrupt(NAME, "a block cannot be read"));
            }
            bit_transpose::decode(self.element, sorted, block, between.room(block.len()));
        }
        let copied = behind.get(..rest.len()).ok_or_else(|| corrupt(NAME, "the last elements are cut off"))?;
        rest.copy_from_slice(copied);
        Ok(())
    }
}

/// Bytes of `len` that are whole groups of elements; the rest is stored untransposed.
fn whole_groups(len: usize, element: usize) -> usize {
    len / element / bit_transpose::GROUP * bit_transpose::GROUP * element
}

/// Elements per block for a stated number, 0 meaning the default; `None` if it is invalid.
fn block_size(declared: usize, element: usize) -> Option<usize> {
    match declared {
        0 => Some((DEFAULT_BLOCK / element / bit_transpose::GROUP * bit_transpose::GROUP).max(FEWEST)),
        declared => declared.is_multiple_of(bit_transpose::GROUP).then_some(declared),
    }
}
