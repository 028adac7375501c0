//! Portable shuffle kernels: groups of fixed size, which compilers vectorise.

use super::GROUP;

/// Shuffles whole groups of elements of `S` bytes. Returns the number of elements.
pub(super) fn encode<const S: usize>(plain: &[u8], stored: &mut [u8]) -> usize {
    let count = plain.len() / S;
    for (group, elements) in plain.chunks_exact(GROUP * S).enumerate() {
        for byte in 0..S {
            let start = byte * count + group * GROUP;
            let row: [u8; GROUP] = std::array::from_fn(|place| elements[place * S + byte]);
            stored[start..start + GROUP].copy_from_slice(&row);
        }
    }
    count / GROUP * GROUP
}

/// Unshuffles whole groups. Returns the number of elements.
pub(super) fn decode<const S: usize>(stored: &[u8], plain: &mut [u8]) -> usize {
    let count = stored.len() / S;
    for (group, elements) in plain.chunks_exact_mut(GROUP * S).enumerate() {
        for byte in 0..S {
            let start = byte * count + group * GROUP;
            for (place, value) in stored[start..start + GROUP].iter().enumerate() {
                elements[place * S + byte] = *value;
            }
        }
    }
    count / GROUP * GROUP
}
