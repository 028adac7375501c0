//! The emulated device: a FIFO queue whose completion times are known at submission.

use super::options::Options;
use super::timer::Timer;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time to spin at the end of a sleep, about as much as sleeps overrun.
const SPIN: Duration = Duration::from_micros(50);

/// An emulated device.
#[derive(Debug)]
pub(super) struct Device {
    pub options: Options,
    queue: Mutex<Queue>,
    timer: Timer,
}

#[derive(Debug)]
struct Queue {
    /// When the device will be idle.
    free: Instant,
    jitter: Jitter,
}

impl Queue {
    /// Queues a request at time `now`; returns its completion time.
    fn book(&mut self, now: Instant, occupies: Duration, latency: Duration) -> Instant {
        self.free = later(self.free.max(now), self.jitter.vary(occupies));
        later(self.free, self.jitter.vary(latency))
    }
}

/// Random variation of times, by a sequence that is the same for every device.
#[derive(Debug)]
struct Jitter {
    share: f64,
    state: u64,
}

impl Jitter {
    fn vary(&mut self, time: Duration) -> Duration {
        if self.share == 0.0 {
            return time;
        }
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::try_from_secs_f64(time.as_secs_f64() * (1.0 + self.share * (2.0 * unit - 1.0))).unwrap_or(time)
    }
}

impl Device {
    pub fn new(options: Options) -> Self {
        let jitter = Jitter { share: options.jitter, state: 0 };
        Self { options, queue: Mutex::new(Queue { free: Instant::now(), jitter }), timer: Timer::default() }
    }

    /// Submits a transfer; returns its completion time on a device shared by `sharers` processes.
    pub fn transfer(&self, bytes: u64, sharers: u64) -> Instant {
        let occupies = time_of(bytes, self.options.rate, sharers);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.book(Instant::now(), occupies, self.options.latency)
    }

    /// Submits a request without data; returns its completion time.
    pub fn request(&self) -> Instant {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        later(Instant::now(), queue.jitter.vary(self.options.latency))
    }

    /// Runs a call that takes one latency.
    pub fn answer<T>(&self, call: impl FnOnce() -> T) -> T {
        let complete = self.request();
        let value = call();
        sleep_until(complete);
        value
    }

    /// A future that is ready at `when`.
    pub async fn reach(&self, when: Instant) {
        self.timer.reach(when).await;
    }
}

/// Device time for `bytes`.
fn time_of(bytes: u64, rate: u64, sharers: u64) -> Duration {
    let shared = u128::from(bytes).saturating_mul(u128::from(sharers.max(1)));
    let nanoseconds = shared.saturating_mul(1_000_000_000) / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Times beyond the range of the clock count as zero.
fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or(from)
}

/// Sleeps until `when`, precisely.
pub(super) fn sleep_until(when: Instant) {
    loop {
        match when.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return,
            left if left > SPIN => std::thread::sleep(left - SPIN),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(2);
    const SECOND: Duration = Duration::from_secs(1);

    fn queue(share: f64) -> (Queue, Instant) {
        let now = Instant::now();
        (Queue { free: now, jitter: Jitter { share, state: 0 } }, now)
    }

    #[test]
    fn requests_queue_and_latencies_overlap() {
        let (mut queue, now) = queue(0.0);
        assert_eq!(queue.book(now, SECOND, LATENCY), now + SECOND + LATENCY);
        // It comes while the first is served, and its latency overlaps with nothing of the device.
        assert_eq!(queue.book(now + LATENCY, SECOND, LATENCY), now + 2 * SECOND + LATENCY);
        // The device was idle since.
        assert_eq!(queue.book(now + 5 * SECOND, SECOND, LATENCY), now + 6 * SECOND + LATENCY);
    }

    #[test]
    fn time_follows_from_bytes_and_sharers() {
        assert_eq!(time_of(200 << 20, 200 << 20, 1), SECOND);
        assert_eq!(time_of(100, 100, 4), 4 * SECOND);
        assert!(time_of(0, 1, 1).is_zero());
        let now = Instant::now();
        assert!(later(now, time_of(u64::MAX, 1, u64::MAX)) >= now);
    }

    #[test]
    fn jitter_stays_within_its_share_and_repeats() {
        let times = |share: f64| {
            let mut jitter = Jitter { share, state: 0 };
            (0..1000).map(|_| jitter.vary(SECOND).as_secs_f64()).collect::<Vec<_>>()
        };
        let varied = times(0.1);
        assert!(varied.iter().all(|time| (0.9..=1.1).contains(time)));
        assert!(varied.iter().any(|time| *time < 0.92) && varied.iter().any(|time| *time > 1.08));
        assert_eq!(varied, times(0.1));
        assert!(times(0.0).iter().all(|time| *time == 1.0));
    }

    #[test]
    fn sleeping_never_ends_early() {
        for microseconds in [0, 10, 60, 500, 3000] {
            let when = Instant::now() + Duration::from_micros(microseconds);
            sleep_until(when);
            assert!(Instant::now() >= when);
        }
    }
}
