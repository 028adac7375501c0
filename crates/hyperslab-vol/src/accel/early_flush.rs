//! Early metadata flushes while elements are written in the background.
//!
//! libhdf5 writes its metadata when a file is closed. If the process is killed while writes are pending, the file could
//! not be opened; so metadata are flushed inside the program's own calls, soon after they change, and before the last
//! close waits for pending writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between flushes, in durations of the last flush.
const COST: u32 = 20;

/// When a file's metadata were last flushed, and whether they have changed since.
#[derive(Debug, Default)]
pub(crate) struct EarlyFlush {
    new: AtomicBool,
    /// End and duration of the last flush.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl EarlyFlush {
    /// Records a metadata change.
    pub(crate) fn note(&self) {
        self.new.store(true, Ordering::Relaxed);
    }

    /// Whether metadata changed; clears the flag, since the caller flushes now.
    pub(crate) fn take(&self) -> bool {
        self.new.swap(false, Ordering::Relaxed)
    }

    /// The same, but `false` if the last flush was expensive and less than `lag` ago.
    pub(crate) fn take_if_due(&self, lag: Option<Duration>) -> bool {
        if !self.new.load(Ordering::Relaxed) {
            return false;
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |(end, took): (Instant, Duration)| end.elapsed() >= (took * COST).min(lag.unwrap_or(Duration::MAX));
        last.is_none_or(due) && self.take()
    }

    /// Runs and times a flush.
    pub(crate) fn measure<T>(&self, flush: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = flush();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), begin.elapsed()));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_few_where_they_take_long() {
        let early = EarlyFlush::default();
        assert!(!early.take_if_due(None));
        early.note();
        assert!(early.take_if_due(None) && !early.take_if_due(None));
        early.measure(|| std::thread::sleep(Duration::from_millis(20)));
        early.note();
        assert!(!early.take_if_due(None));
        assert!(early.take_if_due(Some(Duration::ZERO)));
        early.note();
        assert!(early.take());
    }
}
