//! Bit transposition: the first bits of all elements, then the second bits, and so on.

use crate::shuffle;

/// Elements per group, so that one bit of each fills a byte.
pub(crate) const GROUP: usize = 8;

/// Transposes the bits of whole groups of elements. All three buffers have the same length; `between` is scratch memory.
pub(crate) fn encode(element: usize, plain: &[u8], stored: &mut [u8], between: &mut [u8]) {
    let count = plain.len() / element.max(1);
    if count == 0 {
        return;
    }
    debug_assert!(count.is_multiple_of(GROUP) && plain.len() == count * element);
    shuffle::encode(element, plain, between);
    turn(between);
    for (from, to) in between.chunks_exact(count).zip(stored.chunks_exact_mut(count)) {
        shuffle::encode(GROUP, from, to);
    }
}

/// Undoes [`encode`].
pub(crate) fn decode(element: usize, stored: &[u8], plain: &mut [u8], between: &mut [u8]) {
    let count = plain.len() / element.max(1);
    if count == 0 {
        return;
    }
    debug_assert!(count.is_multiple_of(GROUP) && plain.len() == count * element);
    for (from, to) in stored.chunks_exact(count).zip(between.chunks_exact_mut(count)) {
        shuffle::decode(GROUP, from, to);
    }
    turn(between);
    shuffle::decode(element, between, plain);
}

/// Transposes each 8x8 bit matrix in place. Its own inverse.
fn turn(bytes: &mut [u8]) {
    for eight in bytes.as_chunks_mut::<8>().0 {
        let mut square = u64::from_le_bytes(*eight);
        for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
            let differ = (square ^ (square >> shift)) & mask;
            square ^= differ ^ (differ << shift);
        }
        *eight = square.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_bit_goes_where_it_belongs(element in 1usize..18, groups in 1usize..20, seed in any::<u64>()) {
            let count = groups * GROUP;
            let mut state = seed | 1;
            let plain: Vec<u8> = (0..count * element)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let (mut stored, mut between) = (vec![0; plain.len()], vec![0; plain.len()]);
            encode(element, &plain, &mut stored, &mut between);
            for place in 0..count {
                for bit in 0..8 * element {
                    let from = plain[place * element + bit / 8] >> (bit % 8) & 1;
                    let to = stored[bit * (count / 8) + place / 8] >> (place % 8) & 1;
                    prop_assert_eq!(from, to);
                }
            }
            let mut back = vec![0; plain.len()];
            decode(element, &stored, &mut back, &mut between);
            prop_assert_eq!(back, plain);
        }
    }
}
