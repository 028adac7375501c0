//! Shuffle kernels with SSE2, which every x86-64 has.
//!
//! Number the bytes of 16 elements of S bytes in binary: four digits tell the element, the others the byte within it.
//! Interleaving the first half of all bytes with the second moves the topmost digit to the bottom. Four times that
//! puts the byte on top and the element below it, which is the stored order; doing it for the remaining digits leads
//! back. An interleave of registers is one instruction per register.

use super::GROUP;
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8};

/// Bytes of a register, which are those of one byte of a group.
const WIDTH: usize = GROUP;

/// Shuffles whole groups of elements of `S` bytes. Returns the number of elements.
pub(super) fn encode<const S: usize>(plain: &[u8], stored: &mut [u8]) -> usize {
    let count = plain.len() / S;
    let groups = count / GROUP;
    assert!(stored.len() >= count * S);
    for group in 0..groups {
        // SAFETY: both buffers have `count * S` bytes. A group reads its own `S * 16` of them, and writes 16 in each
        // of the `S` rows of `count`, at most up to `count / 16 * 16` in each.
        unsafe {
            let from = plain.as_ptr().add(group * GROUP * S);
            let bytes = interleave::<S>(load::<S>(from, WIDTH), 4);
            save::<S>(bytes, stored.as_mut_ptr().add(group * GROUP), count);
        }
    }
    groups * GROUP
}

/// Unshuffles whole groups. Returns the number of elements.
pub(super) fn decode<const S: usize>(stored: &[u8], plain: &mut [u8]) -> usize {
    let count = stored.len() / S;
    let groups = count / GROUP;
    assert!(plain.len() >= count * S);
    for group in 0..groups {
        // SAFETY: as in `encode`, with the buffers exchanged.
        unsafe {
            let bytes = load::<S>(stored.as_ptr().add(group * GROUP), count);
            let bytes = interleave::<S>(bytes, S.trailing_zeros());
            save::<S>(bytes, plain.as_mut_ptr().add(group * GROUP * S), WIDTH);
        }
    }
    groups * GROUP
}

/// # Safety
/// `S` times 16 bytes, each `step` bytes after the one before, must be readable.
#[inline(always)]
unsafe fn load<const S: usize>(from: *const u8, step: usize) -> [__m128i; S] {
    // SAFETY: as the caller promises.
    std::array::from_fn(|place| unsafe { _mm_loadu_si128(from.add(place * step).cast()) })
}

/// # Safety
/// `S` times 16 bytes, each `step` bytes after the one before, must be writable.
#[inline(always)]
unsafe fn save<const S: usize>(bytes: [__m128i; S], to: *mut u8, step: usize) {
    for (place, register) in bytes.into_iter().enumerate() {
        // SAFETY: as the caller promises.
        unsafe { _mm_storeu_si128(to.add(place * step).cast(), register) };
    }
}

/// Interleaves the first half of all bytes with the second, `times` times.
#[inline(always)]
fn interleave<const S: usize>(mut bytes: [__m128i; S], times: u32) -> [__m128i; S] {
    for _ in 0..times {
        let halves = bytes;
        for place in 0..S / 2 {
            let (first, second) = (halves[place], halves[place + S / 2]);
            // SAFETY: these instructions are in SSE2, which every x86-64 has.
            (bytes[2 * place], bytes[2 * place + 1]) =
                unsafe { (_mm_unpacklo_epi8(first, second), _mm_unpackhi_epi8(first, second)) };
        }
    }
    bytes
}
