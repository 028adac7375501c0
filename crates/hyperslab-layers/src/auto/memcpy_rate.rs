//! The memory copy rate of this machine, measured once if no history has it.

use super::history::History;
use hyperslab_core::memcpy_rate;
use std::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = 1 << 20;
const TIMES: usize = 3;

/// Memory copy rate in bytes per second. Measured once, in about a millisecond, unless the history has it.
pub(super) fn rate(history: &History) -> f64 {
    // The bits of the rate, 0 until measured. No lock: after a fork the measuring thread might not exist.
    static RATE: AtomicU64 = AtomicU64::new(0);
    let measured = Some(f64::from_bits(RATE.load(Ordering::Relaxed))).filter(|rate| *rate > 0.0);
    match history.classes.values().any(|known| !known.copy.is_empty()) {
        // Not used in this case.
        true => measured.unwrap_or(1e9),
        false => measured.unwrap_or_else(|| {
            let rate = measure();
            RATE.store(rate.to_bits(), Ordering::Relaxed);
            rate
        }),
    }
}

fn measure() -> f64 {
    let (from, mut to) = (vec![1u8; BYTES], vec![0u8; BYTES]);
    // Halved, since both buffers were in the processor cache.
    memcpy_rate(&from, &mut to, TIMES) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_rate() {
        assert!((1e7..1e13).contains(&rate(&History::default())));
    }
}
