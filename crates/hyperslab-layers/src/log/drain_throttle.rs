//! Start and rate of background drains.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shared by writers and the background thread.
#[derive(Debug)]
pub(super) struct DrainThrottle {
    /// Pending bytes at which a drain starts.
    begin: u64,
    age: Duration,
    /// Maximum rate in bytes per second.
    rate: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Pending bytes.
    waiting: u64,
    /// Arrival of the oldest pending write, or start of the last drain.
    since: Option<Instant>,
    /// Number of threads that wait for space or the end of a drain.
    hurried: u32,
    /// Token bucket: bytes that may be moved, and its time.
    allowance: Option<(f64, Instant)>,
    thread: bool,
    stop: bool,
}

impl DrainThrottle {
    pub fn new(begin: u64, age: Duration, rate: Option<u64>) -> Self {
        Self { begin, age, rate, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a background thread.
    pub fn has_thread(&self) -> bool {
        self.lock().thread
    }

    pub fn set_thread(&self, runs: bool) {
        self.lock().thread = runs;
    }

    /// Adds pending bytes.
    pub fn added(&self, bytes: u64) {
        let mut state = self.lock();
        state.waiting += bytes;
        let first = state.since.is_none();
        state.since.get_or_insert_with(Instant::now);
        let enough = state.waiting >= self.begin && state.waiting - bytes < self.begin;
        if state.thread && (first || enough) {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Removes pending bytes.
    pub fn removed(&self, bytes: u64) {
        let mut state = self.lock();
        state.waiting = state.waiting.saturating_sub(bytes);
        if state.waiting == 0 {
            state.since = None;
        }
    }

    /// Notes a waiting thread, or its end: meanwhile the background drains at once and without rate limit.
    pub fn hurry(&self, on: bool) {
        let mut state = self.lock();
        state.hurried = if on { state.hurried + 1 } else { state.hurried.saturating_sub(1) };
        drop(state);
        self.changed.notify_all();
    }

    pub fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Blocks until a drain is due. Returns `false` when stopped.
    pub fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.stop {
                return false;
            }
            let due = state.since.map(|since| since + self.age);
            let now = Instant::now();
            if state.waiting > 0
                && (state.hurried > 0 || state.waiting >= self.begin || due.is_some_and(|due| due <= now))
            {
                state.since = Some(now);
                return true;
            }
            state = match due {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_duration_since(now).max(Duration::from_millis(1));
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Notes drained bytes, and sleeps as the rate demands, unless a thread waits.
    pub fn moved(&self, bytes: u64) {
        let Some(rate) = self.rate.map(|rate| rate as f64) else { return };
        let mut state = self.lock();
        let now = Instant::now();
        let (mut allowance, at) = state.allowance.unwrap_or((0.0, now));
        // The bucket holds one second at most.
        allowance = (allowance + (now - at).as_secs_f64() * rate).min(rate) - bytes as f64;
        state.allowance = Some((allowance, now));
        if allowance >= 0.0 {
            return;
        }
        let until = now + Duration::from_secs_f64(-allowance / rate);
        while !state.stop && state.hurried == 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // The debt is cancelled.
        state.allowance = None;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_background_begins_by_size_by_age_and_for_those_who_wait() {
        let pace = DrainThrottle::new(100, Duration::from_millis(30), None);
        pace.set_thread(true);
        let from = Instant::now();
        pace.added(1);
        assert!(pace.wait() && from.elapsed() >= Duration::from_millis(30), "by age");
        pace.removed(1);
        let pace = DrainThrottle::new(100, Duration::from_secs(3600), None);
        pace.added(100);
        assert!(pace.wait(), "by size");
        pace.removed(99);
        pace.hurry(true);
        assert!(pace.wait(), "somebody waits");
        pace.stop();
        assert!(!pace.wait());
    }

    #[test]
    fn the_rate_is_kept_unless_somebody_waits() {
        let pace = DrainThrottle::new(0, Duration::ZERO, Some(1 << 20));
        let from = Instant::now();
        (0..4).for_each(|_| pace.moved(16 << 10));
        let took = from.elapsed();
        assert!(took >= Duration::from_millis(60) && took < Duration::from_secs(2), "{took:?}");
        pace.hurry(true);
        let from = Instant::now();
        pace.moved(100 << 20);
        assert!(from.elapsed() < Duration::from_secs(1));
    }
}
