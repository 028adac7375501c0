//! What happens to blocks before they are compressed.

use super::Generation;
use crate::{bit_transpose, shuffle};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefilter {
    /// Nothing.
    None,
    /// Bytes by their place in elements.
    Bytes,
    /// Bits by their place in elements.
    Bits,
    /// Only what differs from the element before, or from the first block.
    Differences,
}

impl Prefilter {
    /// By the number that parameters and chunks use.
    pub(super) fn numbered(number: u32, generation: Generation) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::Bytes,
            2 => Self::Bits,
            3 if generation == Generation::Second => Self::Differences,
            _ => return None,
        })
    }

    /// The number that parameters and chunks use.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Bytes => 1,
            Self::Bits => 2,
            Self::Differences => 3,
        }
    }
}

/// How many bytes of a block have their bits sorted: whole groups of elements, in the first generation all or none.
fn sortable(generation: Generation, element: usize, len: usize) -> usize {
    let count = len / element;
    match generation {
        Generation::First if !count.is_multiple_of(bit_transpose::GROUP) => 0,
        _ => count / bit_transpose::GROUP * bit_transpose::GROUP * element,
    }
}

/// Sorts the bits of a block, as far as it can be done.
pub(super) fn sort_bits(generation: Generation, element: usize, plain: &[u8], to: &mut [u8], between: &mut [u8]) {
    let (sorted, rest) = plain.split_at(sortable(generation, element, plain.len()));
    let (to, to_rest) = to.split_at_mut(sorted.len());
    bit_transpose::encode(element, sorted, to, &mut between[..sorted.len()]);
    to_rest.copy_from_slice(rest);
}

/// Undoes [`sort_bits`].
pub(super) fn unsort_bits(generation: Generation, element: usize, sorted: &[u8], to: &mut [u8], between: &mut [u8]) {
    let (sorted, rest) = sorted.split_at(sortable(generation, element, sorted.len()));
    let (to, to_rest) = to.split_at_mut(sorted.len());
    bit_transpose::decode(element, sorted, to, &mut between[..sorted.len()]);
    to_rest.copy_from_slice(rest);
}

/// Sorts the bytes of a block.
pub(super) fn sort_bytes(element: usize, plain: &[u8], to: &mut [u8]) {
    shuffle::encode(element, plain, to);
}

/// Undoes [`sort_bytes`].
pub(super) fn unsort_bytes(element: usize, sorted: &[u8], to: &mut [u8]) {
    shuffle::decode(element, sorted, to);
}

/// Bytes that are compared together for differences.
fn stride(element: usize) -> usize {
    match element {
        1 | 2 | 4 | 8 => element,
        _ if element.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// The differences of a block: to `reference`, the first block, or of that itself.
pub(super) fn differ(element: usize, plain: &[u8], reference: Option<&[u8]>, to: &mut [u8]) {
    let stride = stride(element);
    to.copy_from_slice(plain);
    let whole = plain.len() / stride * stride;
    match reference {
        Some(reference) => exclusive_or(&mut to[..whole], reference),
        None if whole > stride => exclusive_or(&mut to[stride..whole], plain),
        None => {}
    }
}

/// Undoes [`differ`] in place.
pub(super) fn add_up(element: usize, block: &mut [u8], reference: Option<&[u8]>) {
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
