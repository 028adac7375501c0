//! Zstandard: one frame per chunk.

use crate::coders::Coders;
use crate::errors::{corrupt, failed};
use crate::scratch::Scratch;
use hyperslab_core::Result;

const NAME: &str = "zstd";

/// The level taken where a file states none.
pub(crate) const DEFAULT_LEVEL: i32 = 3;

/// The nearest level that there is.
pub(crate) fn nearest_level(level: i32) -> i32 {
    level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level())
}

/// What a frame of `plain` bytes may take at most.
pub(crate) fn limit(plain: usize) -> usize {
    plain.saturating_add(plain / 64).saturating_add(4096)
}

/// The stored form of `plain`.
pub(crate) fn encode(level: i32, plain: &[u8], out: &mut Scratch, coders: &mut Coders) -> Result<usize> {
    encode_into(level, plain, out.room(zstd_safe::compress_bound(plain.len())), coders)
        .ok_or_else(|| failed(NAME, "the library refused to compress"))
}

/// The stored form of `plain` at the front of `out`, or none if it does not fit.
pub(crate) fn encode_into(level: i32, plain: &[u8], out: &mut [u8], coders: &mut Coders) -> Option<usize> {
    coders.zstd_writer().compress(out, plain, level).ok()
}

/// The size of the plain form, if the frame states it.
pub(crate) fn stated_size(stored: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(stored).ok().flatten()
}

/// The plain form, into the front of `plain`; how many bytes it has.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8], coders: &mut Coders) -> Result<usize> {
    coders
        .zstd_reader()
        .decompress(plain, stored)
        .map_err(|code| corrupt(NAME, format!("the frame cannot be read: {}", zstd_safe::get_error_name(code))))
}
