//! Byte shuffle: the first bytes of all elements, then the second bytes, and so on.
//!
//! A byte transposition, with kernels for common element sizes. Other sizes, and the rest after whole groups of elements, are
//! copied byte by byte.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
use portable as kernel;
#[cfg(target_arch = "x86_64")]
use x86_64 as kernel;

/// Elements per kernel invocation.
const GROUP: usize = 16;
/// Tile size in elements: small enough for the L1 cache.
const TILE: usize = 64;

/// Shuffles `plain`: whole elements of `element` bytes, and a rest that is copied.
pub(crate) fn encode(element: usize, plain: &[u8], stored: &mut [u8]) {
    debug_assert_eq!(plain.len(), stored.len());
    if element <= 1 || plain.len() <= element {
        return stored.copy_from_slice(plain);
    }
    let count = plain.len() / element;
    let (plain, plain_rest) = plain.split_at(count * element);
    let (stored, stored_rest) = stored.split_at_mut(count * element);
    stored_rest.copy_from_slice(plain_rest);
    let done = match element {
        2 => kernel::encode::<2>(plain, stored),
        4 => kernel::encode::<4>(plain, stored),
        8 => kernel::encode::<8>(plain, stored),
        16 => kernel::encode::<16>(plain, stored),
        _ => 0,
    };
    for start in (done..count).step_by(TILE) {
        let end = count.min(start + TILE);
        let tile = &plain[start * element..end * element];
        for (byte, row) in stored.chunks_exact_mut(count).enumerate() {
            for (to, from) in row[start..end].iter_mut().zip(tile[byte..].iter().step_by(element)) {
                *to = *from;
            }
        }
    }
}

/// Undoes [`encode`].
pub(crate) fn decode(element: usize, stored: &[u8], plain: &mut [u8]) {
    debug_assert_eq!(plain.len(), stored.len());
    if element <= 1 || plain.len() <= element {
        return plain.copy_from_slice(stored);
    }
    let count = plain.len() / element;
    let (stored, stored_rest) = stored.split_at(count * element);
    let (plain, plain_rest) = plain.split_at_mut(count * element);
    plain_rest.copy_from_slice(stored_rest);
    let done = match element {
        2 => kernel::decode::<2>(stored, plain),
        4 => kernel::decode::<4>(stored, plain),
        8 => kernel::decode::<8>(stored, plain),
        16 => kernel::decode::<16>(stored, plain),
        _ => 0,
    };
    for start in (done..count).step_by(TILE) {
        let end = count.min(start + TILE);
        let tile = &mut plain[start * element..end * element];
        for (byte, row) in stored.chunks_exact(count).enumerate() {
            for (to, from) in tile[byte..].iter_mut().step_by(element).zip(&row[start..end]) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(element: usize, plain: &[u8]) -> Vec<u8> {
        let count = plain.len() / element;
        let mut stored = Vec::new();
        for byte in 0..element {
            stored.extend((0..count).map(|place| plain[place * element + byte]));
        }
        stored.extend_from_slice(&plain[count * element..]);
        stored
    }

    proptest! {
        #[test]
        fn equals_the_naive_form(
            element in prop_oneof![1usize..20, Just(2), Just(4), Just(8), Just(16), Just(100)],
            plain in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let mut stored = vec![0; plain.len()];
            encode(element, &plain, &mut stored);
            prop_assert_eq!(&stored, &naive(element, &plain));
            let mut back = vec![0; plain.len()];
            decode(element, &stored, &mut back);
            prop_assert_eq!(&back, &plain);
        }
    }

    #[test]
    fn all_lengths_around_whole_groups() {
        for element in [2, 4, 8, 16] {
            for len in 0..element * (3 * GROUP + 1) {
                let plain: Vec<u8> = (0..len).map(|n| (n * 7 + n / 256) as u8).collect();
                let mut stored = vec![0; len];
                encode(element, &plain, &mut stored);
                assert_eq!(stored, naive(element, &plain), "{element} {len}");
                let mut back = vec![0; len];
                decode(element, &stored, &mut back);
                assert_eq!(back, plain, "{element} {len}");
            }
        }
    }

    #[test]
    fn the_portable_kernels_do_the_same() {
        fn check<const S: usize>() {
            for count in 0..3 * GROUP + 1 {
                let plain: Vec<u8> = (0..count * S).map(|n| (n * 11 + n / 256) as u8).collect();
                let (mut stored, mut back) = (vec![0; plain.len()], vec![0; plain.len()]);
                let done = portable::encode::<S>(&plain, &mut stored);
                assert_eq!(done, count / GROUP * GROUP);
                assert_eq!(portable::decode::<S>(&stored, &mut back), done);
                assert_eq!(back[..done * S], plain[..done * S]);
                let whole = naive(S, &plain);
                for (ours, right) in stored.chunks(count.max(1)).zip(whole.chunks(count.max(1))) {
                    assert_eq!(ours[..done], right[..done], "{S} {count}");
                }
            }
        }
        check::<2>();
        check::<4>();
        check::<8>();
        check::<16>();
    }
}
