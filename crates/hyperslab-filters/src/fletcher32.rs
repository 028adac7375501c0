//! Fletcher-32: a trailing checksum, as libhdf5 computes it.

use crate::errors::corrupt;
use hyperslab_core::Result;

const NAME: &str = "fletcher32";
/// Bytes of the checksum.
pub(crate) const SIZE: usize = 4;
/// Parallel partial sums, and words per sum before they are combined; more would overflow 32 bits.
const LANES: usize = 16;
const STEPS: usize = 256;

/// The checksum of `data` as it is stored.
pub(crate) fn stored_sum(data: &[u8]) -> [u8; SIZE] {
    sum(data).to_le_bytes()
}

/// The data before the checksum, after verifying it.
pub(crate) fn verified(stored: &[u8]) -> Result<&[u8]> {
    let Some((data, &found)) = stored.split_last_chunk::<SIZE>() else {
        return Err(corrupt(NAME, format!("{} bytes are too few to hold a checksum", stored.len())));
    };
    let right = stored_sum(data);
    // Old versions of libhdf5 swapped the bytes of each half on some machines; such files still exist.
    let swapped = [right[1], right[0], right[3], right[2]];
    if found != right && found != swapped {
        return Err(corrupt(
            NAME,
            format!("the checksum is {:08x}, not {:08x}", u32::from_le_bytes(right), u32::from_le_bytes(found)),
        ));
    }
    Ok(data)
}

/// Sums of big-endian words, and of these sums, both by the rules of ones' complement: zero only if all is zero, else
/// 1 to 65535. By these rules, exchanging the bytes of a word multiplies it by 256, which can be done at the end.
fn sum(data: &[u8]) -> u32 {
    let (mut first, mut second) = (0u64, 0u64);
    let blocks = data.chunks_exact(2 * LANES * STEPS);
    let rest = blocks.remainder();
    for block in blocks {
        let (plain, weighted) = block_sums(block);
        second = fold(second + first * (LANES * STEPS) as u64 + weighted);
        first = fold(first + plain);
    }
    for word in rest.chunks(2) {
        first += u64::from(word[0]) | u64::from(word.get(1).copied().unwrap_or(0)) << 8;
        second += first;
    }
    let swapped = |sum: u64| fold(fold(sum) << 8) as u32;
    swapped(second) << 16 | swapped(first)
}

/// The sum of the words of a whole block, and that of each times its distance to the end: what it adds to the sum of
/// sums.
fn block_sums(block: &[u8]) -> (u64, u64) {
    let (mut first, mut second) = ([0u32; LANES], [0u32; LANES]);
    for words in block.as_chunks::<{ 2 * LANES }>().0 {
        for lane in 0..LANES {
            first[lane] += u32::from(u16::from_le_bytes([words[2 * lane], words[2 * lane + 1]]));
            second[lane] += first[lane];
        }
    }
    let (mut plain, mut weighted) = (0, 0);
    for lane in 0..LANES {
        plain += u64::from(first[lane]);
        // A lane counts distances in steps, and from the front of a step.
        weighted += u64::from(second[lane]) * LANES as u64 - u64::from(first[lane]) * lane as u64;
    }
    (plain, weighted)
}

fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As libhdf5 does it, in steps short enough for 32 bits.
    fn slow(data: &[u8]) -> u32 {
        let (mut first, mut second) = (0u32, 0u32);
        let reduced = |sum: u32| (sum & 0xffff) + (sum >> 16);
        for words in data.chunks(2 * 360) {
            for word in words.chunks(2) {
                first += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
                second += first;
            }
            (first, second) = (reduced(first), reduced(second));
        }
        reduced(second) << 16 | reduced(first)
    }

    proptest! {
        #[test]
        fn equals_the_slow_form(
            data in proptest::collection::vec(any::<u8>(), 0..30_000),
            same in prop_oneof![Just(0u8), Just(0xff), Just(1)],
            len in 0usize..60_000,
        ) {
            prop_assert_eq!(sum(&data), slow(&data));
            prop_assert_eq!(sum(&vec![same; len]), slow(&vec![same; len]));
        }
    }
}
