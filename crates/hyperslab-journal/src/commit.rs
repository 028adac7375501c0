//! Periodic sync: the background thread of `SyncMode::Every`.

use super::segment_list::SegmentList;
use hyperslab_core::{ErrorKind, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Syncs a journal `period` after the first append that is not durable.
#[derive(Debug)]
pub(super) struct Committer {
    period: Duration,
    inner: Arc<Inner>,
    thread: Mutex<Thread>,
}

#[derive(Debug, Default)]
enum Thread {
    #[default]
    NotYet,
    Runs(JoinHandle<()>),
    /// Ended, or could not be started.
    None,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether a sync is pending. Set after an append, cleared before a sync, so that no append is missed.
    armed: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Time of the first append that is not durable.
    since: Option<Instant>,
    stop: bool,
}

impl Committer {
    pub fn new(period: Duration) -> Self {
        Self { period, inner: Arc::default(), thread: Mutex::default() }
    }

    /// Notes an append. Returns `false` if there is no thread, so that the caller must sync.
    pub fn appended(&self, segment_list: &Arc<SegmentList>) -> bool {
        if self.inner.armed.swap(true, Ordering::AcqRel) {
            return true;
        }
        let mut thread = lock(&self.thread);
        if let Thread::NotYet = *thread {
            let (inner, segment_list, period) = (self.inner.clone(), segment_list.clone(), self.period);
            let spawned =
                std::thread::Builder::new().name("journal".into()).spawn(move || inner.run(&segment_list, period));
            *thread = spawned.map_or(Thread::None, Thread::Runs);
        }
        let runs = matches!(*thread, Thread::Runs(_));
        match runs {
            true => self.inner.begin(),
            false => self.inner.armed.store(false, Ordering::Release),
        }
        runs
    }

    /// Stops the thread. A forked child has none.
    pub fn stop(&self, segment_list: &SegmentList) {
        let Thread::Runs(thread) = std::mem::replace(&mut *lock(&self.thread), Thread::None) else { return };
        if !segment_list.is_ours() {
            return std::mem::forget(thread);
        }
        lock(&self.inner.state).stop = true;
        self.inner.changed.notify_all();
        // It does not panic, and nobody could handle that.
        let _ = thread.join();
    }
}

impl Inner {
    /// Starts the period.
    fn begin(&self) {
        lock(&self.state).since.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    fn run(&self, segment_list: &SegmentList, period: Duration) {
        while self.wait(period) {
            self.armed.store(false, Ordering::Release);
            match segment_list.sync() {
                Ok(()) => {}
                // Space may be freed later; appends report the condition meanwhile.
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    self.armed.store(true, Ordering::Release);
                    self.begin();
                }
                // The journal has failed for good.
                Err(_) => return,
            }
        }
    }

    /// Waits until a sync is due; returns `false` when stopped.
    fn wait(&self, period: Duration) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                return false;
            }
            let left = state.since.map(|since| period.saturating_sub(since.elapsed()));
            state = match left {
                Some(Duration::ZERO) => {
                    state.since = None;
                    return true;
                }
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
