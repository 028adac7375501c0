//! What lives as long as a container or one of its arrays does, on one rank.

use super::array_log::ArrayLog;
use super::log_state::LogState;
use crate::background::{ArrayHandle, catch_panic};
use hyperslab_core::{Error, Result, agree};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Arrays that the program has closed and the format below has not.
const MOST_CLOSING: usize = 32;

#[derive(Debug)]
pub(super) struct Session {
    pub store: Arc<LogState>,
    /// Moves writes while the program computes.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// In the order of closing, the same on every rank.
    closing: Mutex<VecDeque<(Arc<ArrayLog>, Arc<ArrayHandle>)>>,
    closed: AtomicBool,
}

impl Session {
    /// With a background thread, if that is wanted and can be had.
    pub fn new(store: LogState, background: bool) -> Self {
        let store = Arc::new(store);
        let thread = background.then(|| start(store.clone()).ok()).flatten();
        Self { store, thread: Mutex::new(thread), closing: Mutex::default(), closed: AtomicBool::new(false) }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether it was so before.
    pub fn set_closed(&self) -> bool {
        self.closed.swap(true, Ordering::AcqRel)
    }

    /// Ends the background thread when it has done what it is doing.
    pub fn stop(&self) {
        if !self.store.is_ours() {
            return; // The thread is the parent's.
        }
        self.store.pace.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // What went wrong there is in the store.
            let _ = thread.join();
        }
        self.store.pace.set_thread(false);
    }

    /// Moves everything and lets a recovery know. Collective, if any rank calls it so.
    pub fn clear(&self) -> Result<()> {
        self.store.drain(None).and_then(|()| self.store.staging.clear())
    }

    /// Closes an array when its writes are moved. Collective.
    pub fn close_later(&self, array_log: Arc<ArrayLog>, place: Arc<ArrayHandle>) -> Result<()> {
        self.lock().push_back((array_log, place));
        self.close_arrays(MOST_CLOSING)
    }

    /// Closes the oldest of the closing arrays until `left` are left. Collective: the same number on every rank. An array whose
    /// writes could not be moved is closed too: they are in the log.
    pub fn close_arrays(&self, left: usize) -> Result<()> {
        let mut result = Ok(());
        while let Some((array_log, place)) = self.next_to_close(left) {
            let drained = if array_log.is_logged() { self.store.drain(Some(&array_log)) } else { Ok(()) };
            // Reads of other handles must not go through this one.
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

    /// Runs a collective call of the format below on this thread. A failure of one rank before it is an error on all.
    pub fn together<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.is_closed() {
            agree(&*self.store.comm, self.store.check())?;
        }
        call()
    }
}

impl Drop for Session {
    /// A container that was not closed: moves what is left. Where that fails, it stays in the log.
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
