//! Deflate: zlib streams, coded by libdeflate.

use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, failed};
use crate::scratch::Scratch;
use hyperslab_core::Result;
use libdeflater::{Compressor, DecompressionError};

const NAME: &str = "deflate";

/// The libdeflate level for each zlib level, chosen with `cargo bench -p hyperslab-filters -- levels`: no result is more than 2 %
/// larger than zlib's for smooth numbers after shuffle, and of two equally fast levels it is the one that compresses better.
const LEVELS: [i32; 10] = [0, 2, 2, 3, 3, 4, 6, 7, 8, 9];

/// What a zlib stream of `plain` bytes may take at most, with a margin for writers less careful than zlib.
pub(crate) fn limit(plain: usize) -> usize {
    plain.saturating_add(plain / 4).saturating_add(4096)
}

/// Encodes `plain`, at a zlib level.
pub(crate) fn encode(level: u32, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Result<usize> {
    let bound = compressor(level, contexts).zlib_compress_bound(plain.len());
    encode_into(level, plain, out.room(bound), contexts).ok_or_else(|| failed(NAME, "the library refused to compress"))
}

/// Encodes `plain` into the front of `out`. Returns `None` if it does not fit.
pub(crate) fn encode_into(level: u32, plain: &[u8], out: &mut [u8], contexts: &mut CodecContexts) -> Option<usize> {
    compressor(level, contexts).zlib_compress(plain, out).ok()
}

fn compressor(level: u32, contexts: &mut CodecContexts) -> &mut Compressor {
    contexts.deflate(LEVELS[(level as usize).min(LEVELS.len() - 1)])
}

/// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Result<Option<usize>> {
    match contexts.inflate().zlib_decompress(stored, plain) {
        Ok(len) => Ok(Some(len)),
        Err(DecompressionError::InsufficientSpace) => Ok(None),
        Err(DecompressionError::BadData) => Err(corrupt(NAME, "this is no valid zlib stream")),
    }
}
