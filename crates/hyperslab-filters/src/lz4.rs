//! LZ4 blocks, and the HDF5 filter that stores a sequence of them.

use crate::errors::corrupt;
use crate::scratch::Scratch;
use hyperslab_core::Result;
use std::ffi::c_int;

const NAME: &str = "lz4";
/// Header: total plain size as u64 and block size as u32, both big-endian.
const HEADER: usize = 12;
/// Before each block: its stored size as u32, big-endian.
const PREFIX: usize = 4;
/// Default block size.
const DEFAULT_BLOCK: usize = 1 << 30;

/// Compresses `plain` to an LZ4 block at the front of `out`. Returns `None` if it does not fit. Higher `acceleration` is faster
/// and compresses less.
pub(crate) fn compress(plain: &[u8], out: &mut [u8], acceleration: c_int) -> Option<usize> {
    let (len, room) = (c_int::try_from(plain.len()).ok()?, out.len().min(c_int::MAX as usize) as c_int);
    // SAFETY: both buffers are as long as the library is told, and it writes no more than it is told.
    let size =
        unsafe { lz4_sys::LZ4_compress_fast(plain.as_ptr().cast(), out.as_mut_ptr().cast(), len, room, acceleration) };
    usize::try_from(size).ok().filter(|size| *size > 0)
}

/// LZ4 HC: slower, compresses better.
pub(crate) fn compress_well(plain: &[u8], out: &mut [u8], level: c_int) -> Option<usize> {
    let (len, room) = (c_int::try_from(plain.len()).ok()?, out.len().min(c_int::MAX as usize) as c_int);
    // SAFETY: as in `compress`.
    let size = unsafe { lz4_sys::LZ4_compress_HC(plain.as_ptr().cast(), out.as_mut_ptr().cast(), len, room, level) };
    usize::try_from(size).ok().filter(|size| *size > 0)
}

/// Decompresses an LZ4 block, which must fill `plain` exactly.
pub(crate) fn decompress(block: &[u8], plain: &mut [u8]) -> Option<()> {
    let (len, room) = (c_int::try_from(block.len()).ok()?, c_int::try_from(plain.len()).ok()?);
    // SAFETY: both buffers are as long as the library is told; this call takes any input.
    let size = unsafe { lz4_sys::LZ4_decompress_safe(block.as_ptr().cast(), plain.as_mut_ptr().cast(), len, room) };
    (usize::try_from(size).ok()? == plain.len()).then_some(())
}

/// Upper bound of the size that [`compress`] produces from `len` bytes.
pub(crate) fn bound(len: usize) -> usize {
    len + len / 255 + 16
}

/// Upper bound of the encoded size of `plain` bytes.
pub(crate) fn limit(block: u32, plain: usize) -> usize {
    let blocks = plain.div_ceil(block_size(block, plain));
    plain.saturating_add(plain / 64).saturating_add(blocks.saturating_mul(PREFIX)).saturating_add(4096)
}

fn block_size(declared: u32, plain: usize) -> usize {
    let declared = if declared == 0 { DEFAULT_BLOCK } else { declared as usize };
    declared.min(DEFAULT_BLOCK).clamp(1, plain.max(1))
}

/// Encodes `plain`. Incompressible blocks are stored uncompressed.
pub(crate) fn encode(block: u32, plain: &[u8], out: &mut Scratch) -> usize {
    let block = block_size(block, plain.len());
    let out = out.room(HEADER + plain.len() + plain.len().div_ceil(block) * PREFIX);
    out[..8].copy_from_slice(&(plain.len() as u64).to_be_bytes());
    out[8..HEADER].copy_from_slice(&(block as u32).to_be_bytes());
    let mut end = HEADER;
    for block in plain.chunks(block) {
        let (prefix, rest) = out[end..].split_at_mut(PREFIX);
        let size = match compress(block, &mut rest[..block.len() - 1], 1) {
            Some(size) => size,
            None => {
                rest[..block.len()].copy_from_slice(block);
                block.len()
            }
        };
        prefix.copy_from_slice(&(size as u32).to_be_bytes());
        end += PREFIX + size;
    }
    end
}

/// The decoded size according to the header.
pub(crate) fn declared_size(stored: &[u8]) -> Option<u64> {
    stored.first_chunk().map(|size| u64::from_be_bytes(*size))
}

/// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8]) -> Result<Option<usize>> {
    let (Some(total), Some((header, mut rest))) = (declared_size(stored), stored.split_first_chunk::<HEADER>()) else {
        return Err(corrupt(NAME, "the header is cut off"));
    };
    let Some(plain) = usize::try_from(total).ok().and_then(|total| plain.get_mut(..total)) else { return Ok(None) };
    let block = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    if block == 0 && !plain.is_empty() {
        return Err(corrupt(NAME, "blocks of no bytes"));
    }
    let total = plain.len();
    for block in plain.chunks_mut(block.max(1)) {
        let stored = next_block(&mut rest, NAME)?;
        if stored.len() == block.len() {
            block.copy_from_slice(stored);
        } else {
            decompress(stored, block).ok_or_else(|| corrupt(NAME, "a block cannot be read"))?;
        }
    }
    Ok(Some(total))
}

/// Takes the next block, with its size as u32 before it, off `rest`.
pub(crate) fn next_block<'a>(rest: &mut &'a [u8], who: &'static str) -> Result<&'a [u8]> {
    let cut = || corrupt(who, "a block is cut off");
    let (prefix, behind) = rest.split_first_chunk::<PREFIX>().ok_or_else(cut)?;
    let (block, behind) = behind.split_at_checked(u32::from_be_bytes(*prefix) as usize).ok_or_else(cut)?;
    *rest = behind;
    Ok(block)
}
