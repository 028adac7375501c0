//! Metadata that are flushed before anybody asks, where elements are written in the background.
//!
//! libhdf5 writes its metadata when a file is closed. A process that is killed while writes wait would leave a file that nobody
//! can open; so they are flushed inside the program's own calls, soon after something new is there, and before the last close
//! waits for the rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A flush comes only after so many times the time that the last one took.
const COST: u32 = 20;

/// When metadata of a file were flushed, and whether there are new ones.
#[derive(Debug, Default)]
pub(crate) struct EarlyFlush {
    new: AtomicBool,
    /// When the last one ended, and how long it took.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl EarlyFlush {
    /// Something is new.
    pub(crate) fn note(&self) {
        self.new.store(true, Ordering::Relaxed);
    }

    /// Whether something is new, which is taken to be flushed now.
    pub(crate) fn take(&self) -> bool {
        self.new.swap(false, Ordering::Relaxed)
    }

    /// The same if a flush costs little, or was not made for as long as `lag`.
    pub(crate) fn take_if_due(&self, lag: Option<Duration>) -> bool {
        if !self.new.load(Ordering::Relaxed) {
            return false;
        }
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |(end, took): (Instant, Duration)| end.elapsed() >= (took * COST).min(lag.unwrap_or(Duration::MAX));
        last.is_none_or(due) && self.take()
    }

    /// Measures a flush.
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
