//! Zstandard: one frame per chunk.

use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, failed};
use crate::scratch::Scratch;
use hyperslab_core::Result;

const NAME: &str = "zstd";

/// Magic numbers of frames, and of skippable frames.
const FRAME: u32 = 0xfd2f_b528;
const SKIPPED: u32 = 0x184d_2a50;

/// Default level.
pub(crate) const DEFAULT_LEVEL: i32 = 3;

/// `level`, clamped to the supported range.
pub(crate) fn nearest_level(level: i32) -> i32 {
    level.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level())
}

/// Upper bound of the encoded size of `plain` bytes.
pub(crate) fn limit(plain: usize) -> usize {
    plain.saturating_add(plain / 64).saturating_add(4096)
}

/// Encodes `plain`.
pub(crate) fn encode(level: i32, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Result<usize> {
    encode_into(level, plain, out.room(zstd_safe::compress_bound(plain.len())), contexts)
        .ok_or_else(|| failed(NAME, "the library refused to compress"))
}

/// Encodes `plain` into the front of `out`. Returns `None` if it does not fit.
pub(crate) fn encode_into(level: i32, plain: &[u8], out: &mut [u8], contexts: &mut CodecContexts) -> Option<usize> {
    contexts.zstd_writer().compress(out, plain, level).ok()
}

/// The decoded size, if the frame contains it.
pub(crate) fn declared_size(stored: &[u8]) -> Option<u64> {
    zstd_safe::get_frame_content_size(stored).ok().flatten()
}

/// Decodes into the front of `plain`. Returns the decoded size.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Result<usize> {
    let reader = contexts.zstd_reader();
    let (mut rest, mut end) = (stored, 0);
    while !rest.is_empty() {
        // The library may also decode pre-release formats, with unmaintained code; those are refused.
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
