//! How fast this machine copies memory.

use std::time::Instant;

/// Bytes per second of copying `from` to `to`, which are of one length: the best of some `times`. Buffers that fit into a cache of the
/// processor give the rate of that cache.
pub fn memcpy_rate(from: &[u8], to: &mut [u8], times: usize) -> f64 {
    let copy = |_| {
        let begin = Instant::now();
        to.copy_from_slice(std::hint::black_box(from));
        std::hint::black_box(&mut *to);
        begin.elapsed().as_secs_f64()
    };
    from.len() as f64 / (0..times.max(1)).map(copy).fold(f64::INFINITY, f64::min).max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_copies_and_says_how_fast() {
        let (from, mut to) = (vec![7; 1 << 16], vec![0; 1 << 16]);
        let rate = memcpy_rate(&from, &mut to, 3);
        assert_eq!(from, to);
        assert!((1e6..1e15).contains(&rate), "{rate}");
    }
}
