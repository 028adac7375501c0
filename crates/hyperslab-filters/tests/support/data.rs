//! Bytes to encode: smooth numbers, noise, repetition, all lengths.

use proptest::prelude::*;

/// `count` values of 4 bytes along a curve, with a little noise.
pub fn smooth(count: usize) -> Vec<u8> {
    curve(count, 1e-4)
}

/// The same with noise of this height.
pub fn curve(count: usize, height: f32) -> Vec<u8> {
    let mut state = 1u32;
    (0..count)
        .flat_map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 16) as f32 / 65536.0 * height;
            ((n as f32 * 0.001).sin() + noise).to_le_bytes()
        })
        .collect()
}

/// Bytes that no filter makes fewer.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// Chunks of any kind and of lengths that fit no element.
pub fn some_chunk() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![0usize..70, 0usize..5000, Just(8192), 16_000usize..40_000];
    prop_oneof![
        (len.clone(), 0usize..16).prop_map(|(len, cut)| {
            let mut bytes = smooth(len / 4 + 8);
            bytes.truncate(len);
            bytes.drain(..cut.min(len));
            bytes
        }),
        len.clone().prop_map(noise),
        (len.clone(), any::<u8>()).prop_map(|(len, value)| vec![value; len]),
        (len, 1usize..300).prop_map(|(len, period)| (0..len).map(|n| (n % period * 37) as u8).collect()),
        proptest::collection::vec(any::<u8>(), 0..200),
    ]
}
