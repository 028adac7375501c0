//! What is written.

/// Smooth numbers with a little noise, as simulations make them.
pub fn smooth(elements: usize) -> Vec<u8> {
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    (0..elements)
        .flat_map(|i| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            let x = i as f32 * 1e-4;
            let value = 100.0 * x.sin() + 10.0 * (7.3 * x).cos() + (noise % 1000) as f32 * 1e-5;
            value.to_le_bytes()
        })
        .collect()
}

/// Any numbers.
pub fn counted(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| ((i * 2_654_435_761) >> 7) as u8).collect()
}

/// A row of numbers below `limit` that looks random and is always the same.
pub fn places(count: usize, limit: u64) -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        })
        .collect()
}
