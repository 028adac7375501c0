//! Zstandard: one frame per chunk.

use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, failed};
use crate::scratch::Scratch;
use hyperslab_core::Result;

const NAME: &str = "zstd";

/// What frames begin with, and those that hold nothing of the chunk.
const FRAME: u32 = 0xfd2f_b528;
const SKIPPED: u32 = 0x184d_2a50;

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
pub(crate) fn encode(level: i32, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Result<usize> {
    encode_into(level, plain, out.room(zstd_safe::compress_bound(plain.len())), contexts)
        .ok_or_else(|| failed(NAME, "the library refused to compress"))
}

/// The stored form of `plain` at the front of `out`, or none if it does not fit.
pub(crate) fn encode_into(level: i32, plain: &[u8], out: &mut [u8], contexts: &mut CodecContexts) -> Option<usize> {
    contexts.zstd_writer().compress(out, plain, level).ok()
}

/// The size of the plain form, if the frame states it.
pub(crate) fn stated_size(stored: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(stored).ok().flatten()
}

/// The plain form, into the front of `plain`; how many bytes it has.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Result<usize> {
    let reader = contexts.zstd_reader();
    let (mut rest, mut end) = (stored, 0);
    while !rest.is_empty() {
        // The library also reads forms from before the format was settled, by code that nobody looks after.
        let magic = rest.first_chunk().map_or(0, |magic| u32::from_le_bytes(*magic));
        if magic != FRAME && magic & !15 != SKIPPED {
            return Err(corrupt(NAME, "this is no frame of Zstandard"));
        }
        let frame = zstd_safe::find_frame_compressed_size(rest).ok().and_then(|size| rest.split_at_checked(size));
        let (frame, behind) = frame.ok_or_else(|| corrupt(NAME, "the frame is cut off or damaged"))?;
        end += reader
            .decompress(&mut plain[end..], frame)
            .map_err(|code| corrupt(NAME, format!("the frame cannot be read: {}", zstd_safe::get_error_name(code))))?;
        rest = behind;
    }
    Ok(end)
}
