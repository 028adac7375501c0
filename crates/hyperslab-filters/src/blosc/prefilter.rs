//! Prefilters: reversible transformations of blocks before compression.

use super::Generation;
use crate::bit_transpose;

/// One prefilter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefilter {
    /// None.
    None,
    /// Byte shuffle.
    Shuffle,
    /// Bit shuffle.
    Bitshuffle,
    /// XOR with the previous element, or with the first block.
    Delta,
}

impl Prefilter {
    /// By the number that parameters and chunks use.
    pub(super) fn numbered(number: u32, generation: Generation) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::Shuffle,
            2 => Self::Bitshuffle,
            3 if generation == Generation::Second => Self::Delta,
            _ => return None,
        })
    }

    /// The number that parameters and chunks use.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Shuffle => 1,
            Self::Bitshuffle => 2,
            Self::Delta => 3,
        }
    }
}

/// Bytes of a block that are bit-shuffled: whole groups of elements; in the first generation the whole block or nothing.
fn transposable(generation: Generation, element: usize, len: usize) -> usize {
    let count = len / element;
    match generation {
        Generation::First if !count.is_multiple_of(bit_transpose::GROUP) => 0,
        _ => count / bit_transpose::GROUP * bit_transpose::GROUP * element,
    }
}

/// Bit-shuffles the whole groups of a block; copies the rest.
pub(super) fn bit_shuffle(generation: Generation, element: usize, plain: &[u8], to: &mut [u8], between: &mut [u8]) {
    let (sorted, rest) = plain.split_at(transposable(generation, element, plain.len()));
    let (to, to_rest) = to.split_at_mut(sorted.len());
    bit_transpose::encode(element, sorted, to, &mut between[..sorted.len()]);
    to_rest.copy_from_slice(rest);
}

/// Undoes [`bit_shuffle`].
pub(super) fn bit_unshuffle(generation: Generation, element: usize, sorted: &[u8], to: &mut [u8], between: &mut [u8]) {
    let (sorted, rest) = sorted.split_at(transposable(generation, element, sorted.len()));
    let (to, to_rest) = to.split_at_mut(sorted.len());
    bit_transpose::decode(element, sorted, to, &mut between[..sorted.len()]);
    to_rest.copy_from_slice(rest);
}

/// Byte-shuffles a block.
pub(super) fn shuffle(element: usize, plain: &[u8], to: &mut [u8]) {
    crate::shuffle::encode(element, plain, to);
}

/// Undoes [`shuffle`].
pub(super) fn unshuffle(element: usize, sorted: &[u8], to: &mut [u8]) {
    crate::shuffle::decode(element, sorted, to);
}

/// Distance in bytes between values that are XORed.
fn stride(element: usize) -> usize {
    match element {
        1 | 2 | 4 | 8 => element,
        _ if element.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// Delta-encodes a block: against `reference`, the first block, or for that block itself against the previous elements.
pub(super) fn delta_encode(element: usize, plain: &[u8], reference: Option<&[u8]>, to: &mut [u8]) {
    let stride = stride(element);
    to.copy_from_slice(plain);
    let whole = plain.len() / stride * stride;
    match reference {
        Some(reference) => exclusive_or(&mut to[..whole], reference),
        None if whole > stride => exclusive_or(&mut to[stride..whole], plain),
        None => {}
    }
}

/// Undoes [`delta_encode`] in place.
pub(super) fn delta_decode(element: usize, block: &mut [u8], reference: Option<&[u8]>) {
    let stride = stride(element);
    let whole = block.len() / stride * stride;
    match reference {
        Some(reference) => exclusive_or(&mut block[..whole], reference),
        None => {
            for place in stride..whole {
                block[place] ^= block[place - stride];
            }
        }
    }
}

fn exclusive_or(to: &mut [u8], with: &[u8]) {
    for (to, with) in to.iter_mut().zip(with) {
        *to ^= with;
    }
}
