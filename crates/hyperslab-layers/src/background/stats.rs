//! Timing statistics of background transfers.

use hyperslab_core::BackgroundStats;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Accumulated times of one container on one rank.
#[derive(Debug, Default)]
pub(crate) struct TransferTimes(Mutex<Sums>);

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    background: BackgroundStats,
    /// Copying on callers' threads.
    copying: Duration,
    /// Completed work, summed over threads.
    done: Duration,
    running: u32,
    since: Option<Instant>,
}

impl TransferTimes {
    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Times work of a background thread on `bytes` bytes. Overlapping threads count once in the elapsed time.
    pub fn work<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let mut sums = self.lock();
        sums.running += 1;
        let from = Instant::now();
        sums.since.get_or_insert(from);
        drop(sums);
        let result = work();
        let mut sums = self.lock();
        sums.running -= 1;
        sums.done += from.elapsed();
        sums.background.bytes += bytes;
        if sums.running == 0
            && let Some(since) = sums.since.take()
        {
            sums.background.busy += since.elapsed();
        }
        result
    }

    /// Times a caller's wait for background work.
    pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let result = wait();
        let took = from.elapsed();
        self.lock().background.waited += took;
        result
    }

    /// Times a caller's copy.
    pub fn copy<T>(&self, copy: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let result = copy();
        let took = from.elapsed();
        self.lock().copying += took;
        result
    }

    pub fn background(&self) -> BackgroundStats {
        let sums = self.lock();
        let under_way = sums.since.map_or(Duration::ZERO, |since| since.elapsed());
        BackgroundStats { busy: sums.background.busy + under_way, ..sums.background }
    }

    /// Bytes of completed work, and its time summed over threads.
    pub fn done(&self) -> (u64, Duration) {
        let sums = self.lock();
        (sums.background.bytes, sums.done)
    }

    /// Total time of copies.
    pub fn copying(&self) -> Duration {
        self.lock().copying
    }
}
