//! Worker threads of one call.
//!
//! They are joined before the call returns, so none survives into the program or across a fork. The only exception is
//! the prefault thread of [`crate::staging_buffer`], which ends with its buffer. At most one worker per core runs in a
//! process, over all concurrent calls.

use hyperslab_core::{Error, ErrorKind, Result};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Number of cores available to this process. Queried once: it reads files of the system, which costs more than a small
/// transfer.
pub(crate) fn cores() -> usize {
    // No lock: after a fork its holder might not exist.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Resets the count of busy workers in a forked child, where those of the parent do not exist.
pub fn reset_after_fork() {
    BUSY.store(0, Ordering::Relaxed);
    SAVED.store(0, Ordering::Relaxed);
}

/// Permits to start worker threads, returned when dropped.
#[derive(Debug)]
pub(crate) struct WorkerPermits(usize);

impl WorkerPermits {
    /// Acquires up to `wanted` permits, possibly none. Never blocks.
    pub(crate) fn acquire(wanted: usize) -> Self {
        let most = cores();
        let mut got = 0;
        let _ = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| {
            got = wanted.min(most.saturating_sub(busy));
            Some(busy + got)
        });
        Self(got)
    }

    /// Acquires one more permit if available, for calls whose own thread does other work.
    pub(crate) fn and_one(mut self) -> Self {
        let mut one = Self::acquire(1);
        self.0 += std::mem::take(&mut one.0);
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.0
    }
}

impl Drop for WorkerPermits {
    fn drop(&mut self) {
        // Permits acquired before a fork are not counted in the child.
        let given_back = |busy: usize| Some(busy.saturating_sub(self.0));
        let _ = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, given_back);
    }
}

/// The first error of several threads; the others stop when it is set.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    /// Records an error unless there is one.
    pub(crate) fn note(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Whether an error was recorded.
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The recorded error, if any.
    pub(crate) fn into_result(self) -> Result<()> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Nanoseconds by which calls with workers were shorter than the processors' time that they took.
static SAVED: AtomicU64 = AtomicU64::new(0);

/// Time that callers in this process would have waited longer without worker threads.
pub fn saved_by_workers() -> Duration {
    Duration::from_nanos(SAVED.load(Ordering::Relaxed))
}

/// Runs one `make()` on each permitted worker while `mine` runs on this thread; joins all. A worker's panic is returned
/// as an error. Fewer workers than permitted may start, even none.
pub(crate) fn with_workers<T, F: FnOnce() + Send>(
    helpers: &WorkerPermits,
    make: impl Fn() -> F,
    mine: impl FnOnce() -> T,
) -> Result<T> {
    if helpers.count() == 0 {
        return Ok(mine());
    }
    let (begin, own, helped) = (Instant::now(), thread_time(), AtomicU64::new(0));
    let result = std::thread::scope(|scope| {
        let start = || {
            let (work, helped) = (make(), &helped);
            let counted = move || {
                work();
                // The thread began with no time.
                helped.fetch_add(thread_time(), Ordering::Relaxed);
            };
            std::thread::Builder::new().name("h5direct".into()).spawn_scoped(scope, counted)
        };
        let started: Vec<_> = (0..helpers.count()).map_while(|_| start().ok()).collect();
        let result = mine();
        match started.into_iter().filter_map(|helper| helper.join().err()).count() {
            0 => Ok(result),
            _ => Err(Error::new(ErrorKind::Io, "transfer", "a thread failed unexpectedly")),
        }
    });
    let alone = thread_time().saturating_sub(own) + helped.into_inner();
    SAVED.fetch_add(alone.saturating_sub(begin.elapsed().as_nanos() as u64), Ordering::Relaxed);
    result
}

/// Nanoseconds of processors that this thread took.
fn thread_time() -> u64 {
    let mut took = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a variable of this function.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut took) };
    took.tv_sec as u64 * 1_000_000_000 + took.tv_nsec as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_bounded_and_given_back() {
        let all = WorkerPermits::acquire(usize::MAX);
        assert!(all.count() <= cores());
        assert_eq!(WorkerPermits::acquire(1).count(), 0);
        drop(all);
        assert!(WorkerPermits::acquire(1).count() <= 1);
    }

    #[test]
    fn a_panic_is_an_error() {
        let failed = with_workers(&WorkerPermits(1), || || panic!("expected in this test"), || 5);
        assert!(failed.is_err());
        assert_eq!(with_workers(&WorkerPermits(2), || || (), || 5).unwrap(), 5);
    }
}
