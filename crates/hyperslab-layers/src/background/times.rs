//! What background work cost and what it spared.

use hyperslab_core::BackgroundStats;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Adds up, for one container of one rank.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<Sums>);

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    background: BackgroundStats,
    /// Making copies, on the threads of callers.
    copying: Duration,
    /// Work that is done, of each thread by itself.
    done: Duration,
    running: u32,
    since: Option<Instant>,
}

impl Times {
    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work of a background thread on `bytes` bytes. Threads at work at the same time count once.
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

    /// Runs something that waits for background work, on the thread of a caller.
    pub fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let result = wait();
        let took = from.elapsed();
        self.lock().background.waited += took;
        result
    }

    /// Runs a copy, on the thread of a caller.
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

    /// Bytes of the work that is done, and how long it took, that of several threads added up.
    pub fn done(&self) -> (u64, Duration) {
        let sums = self.lock();
        (sums.background.bytes, sums.done)
    }

    /// Making copies so far.
    pub fn copying(&self) -> Duration {
        self.lock().copying
    }
}
