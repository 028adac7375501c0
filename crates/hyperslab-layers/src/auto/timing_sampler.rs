//! Timing sampler: short transfers are counted, not timed, since reading the clock twice would take a good part of their
//! time.

use super::request_class::RequestClass;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum time without a timed transfer, in seconds.
const LONGEST: f64 = 100e-6;
/// Maximum number of untimed transfers in sequence.
const MOST: f64 = 64.0;

/// The number of transfers of one class that may still go untimed, and the bytes of those that did.
#[derive(Debug, Default)]
pub(super) struct TimingSampler {
    left: AtomicU32,
    /// The encoded class.
    class: AtomicU32,
    bytes: AtomicU64,
}

impl TimingSampler {
    /// Whether a transfer goes untimed; counts it if so.
    #[inline]
    pub fn passes(&self, bytes: u64, class: RequestClass) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 || self.class.load(Ordering::Relaxed) != u32::from(class.code()) {
            return false;
        }
        // Concurrent threads may let one more go untimed.
        self.left.store(left - 1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Notes a timed transfer and its preceding pause; allows the next ones to go untimed for a while.
    pub fn allow(&self, class: RequestClass, seconds: f64) {
        let transfers = (LONGEST / seconds.max(1e-9)).min(MOST);
        self.class.store(u32::from(class.code()), Ordering::Relaxed);
        self.left.store(transfers as u32, Ordering::Relaxed);
    }

    /// The next transfer is timed.
    pub fn stop(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Takes the bytes of untimed transfers since the last call.
    pub fn take(&self) -> f64 {
        match self.bytes.load(Ordering::Relaxed) {
            0 => 0.0,
            _ => self.bytes.swap(0, Ordering::Relaxed) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_transfers_of_one_class_go_by_for_a_while() {
        let (sampler, class) = (TimingSampler::default(), RequestClass::of(4096, true));
        assert!(!sampler.passes(4096, class), "nothing is known yet");
        sampler.allow(class, 10e-6);
        assert!(
            !sampler.passes(4096, RequestClass::of(4096, false))
                && !sampler.passes(1 << 20, RequestClass::of(1 << 20, true))
        );
        assert_eq!((0..100).filter(|_| sampler.passes(4096, class)).count(), 10);
        assert_eq!((sampler.take(), sampler.take()), (10.0 * 4096.0, 0.0));
        sampler.allow(class, 1e-3);
        assert!(!sampler.passes(4096, class), "long ones are looked at");
        sampler.allow(class, 0.0);
        sampler.stop();
        assert!(!sampler.passes(4096, class));
    }
}
