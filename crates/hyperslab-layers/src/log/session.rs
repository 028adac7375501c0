//! The log and its background thread, shared by a container and its arrays on one rank.

use super::array_log::ArrayLog;
use super::log_state::LogState;
use crate::background::{ArrayHandle, catch_panic};
use hyperslab_core::{Error, Result, agree};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Maximum number of arrays closed by the program and still open below.
const MOST_CLOSING: usize = 32;

#[derive(Debug)]
pub(super) struct Session {
    pub store: Arc<LogState>,
    /// The background thread.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Arrays being closed, in the same order on every rank.
    closing: Mutex<VecDeque<(Arc<ArrayLog>, Arc<ArrayHandle>)>>,
    closed: AtomicBool,
}

impl Session {
    /// Starts the background thread, if requested and possible.
    pub fn new(store: LogState, background: bool) -> Self {
        let store = Arc::new(store);
        let thread = background.then(|| start(store.clone()).ok()).flatten();
        Self { store, thread: Mutex::new(thread), closing: Mutex::default(), closed: AtomicBool::new(false) }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Marks the session as closed; returns whether it was before.
    pub fn set_closed(&self) -> bool {
        self.closed.swap(true, Ordering::AcqRel)
    }

    /// Stops the background thread after its current drain.
    pub fn stop(&self) {
        if !self.store.is_ours() {
            return; // The thread is the parent's.
        }
        self.store.pace.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Its errors are in the log state.
            let _ = thread.join();
        }
        self.store.pace.set_thread(false);
    }

    /// Drains everything and completes it in the journal. Collective if `collective` on any rank.
    pub fn clear(&self) -> Result<()> {
        self.store.drain(None).and_then(|()| self.store.staging.clear())
    }

    /// Closes an array once its writes are drained. Collective.
    pub fn close_later(&self, array_log: Arc<ArrayLog>, place: Arc<ArrayHandle>) -> Result<()> {
        self.lock().push_back((array_log, place));
        self.close_arrays(MOST_CLOSING)
    }

    /// Closes the oldest closing arrays until `left` are left. Collective, with the same number on every rank. Arrays that
    /// could not be drained are closed too: their writes stay in the log.
    pub fn close_arrays(&self, left: usize) -> Result<()> {
        let mut result = Ok(());
        while let Some((array_log, place)) = self.next_to_close(left) {
            let drained = if array_log.is_logged() { self.store.drain(Some(&array_log)) } else { Ok(()) };
            // Reads of other handles must not use this one.
            let closed = place.array.close().map_err(|error| error.target(&place.name));
            self.store.forget(&array_log, &place);
            result = result.and(drained).and(closed);
        }
        result
    }

    fn next_to_close(&self, left: usize) -> Option<(Arc<ArrayLog>, Arc<ArrayHandle>)> {
        let mut closing = self.lock();
        if closing.len() > left { closing.pop_front() } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<ArrayLog>, Arc<ArrayHandle>)>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a collective call of the format below on this thread. An earlier failure of one rank fails all.
    pub fn together<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.is_closed() {
            agree(&*self.store.comm, self.store.check())?;
        }
        call()
    }
}

impl Drop for Session {
    /// Drains a container that was not closed. On failure, writes stay in the log.
    fn drop(&mut self) {
        self.stop();
        if !self.is_closed() && self.store.is_ours() {
            let _ = self.store.drain(None);
        }
    }
}

fn start(store: Arc<LogState>) -> Result<JoinHandle<()>> {
    store.pace.set_thread(true);
    let own = store.clone();
    let work = move || {
        while own.pace.wait() {
            let drained = catch_panic(|| own.drain_throttled()).and_then(|drained| drained);
            match drained {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    own.fail(error);
                    break;
                }
            }
        }
        own.pace.set_thread(false);
    };
    std::thread::Builder::new().name("hyperslab-log".into()).spawn(work).map_err(|error| {
        store.pace.set_thread(false);
        Error::io("start a background thread", error)
    })
}
