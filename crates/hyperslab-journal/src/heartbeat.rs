//! Heartbeat in the head of a journal: when its process was last alive, and the container's modification time and size
//! then.
//!
//! Recovery compares it with the container: a modification later than the writer can have made it is another program's, and
//! newer than the journal.

use super::head_slots::{Sighting, nanoseconds};
use super::storage::LogFile;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Minimum interval between heartbeats of a writer.
const BETWEEN: Duration = Duration::from_millis(100);
/// Interval at which the thread of a [`Pulse`] checks the container.
const LOOK: Duration = Duration::from_millis(400);

/// Records the state of the container in the head of a journal.
#[derive(Debug)]
pub struct Heartbeat {
    head: Arc<dyn LogFile>,
    at: u64,
    container: File,
    /// Device and inode of the head file.
    own: (u64, u64),
    begun: Instant,
    /// Time of the last heartbeat, in milliseconds after `begun`.
    last: AtomicU64,
    /// The contents of the slot.
    said: Mutex<Sighting>,
}

impl Heartbeat {
    /// A heartbeat in the slot at offset `at`, for the container at `container`. Writes the first one.
    pub(crate) fn new(head: Arc<dyn LogFile>, at: u64, container: &Path) -> std::io::Result<Self> {
        // O_PATH: closing this descriptor does not release the program's POSIX locks on the file.
        let container = rustix::fs::open(container, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let own = head.inode()?.unwrap_or_default();
        let (begun, last, said) = (Instant::now(), AtomicU64::new(0), Mutex::default());
        let beat = Self { head, at, container: container.into(), own, begun, last, said };
        beat.look(true)?;
        Ok(beat)
    }

    /// Writes a heartbeat, unless one was just written. Call before writing to the container.
    pub fn beat(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= BETWEEN.as_millis() as u64
            && self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Best effort: without it, recovery only becomes more cautious.
            let _ = self.look(true);
        }
    }

    /// Records the state of the container, if it changed or `in_any_case`.
    fn look(&self, in_any_case: bool) -> std::io::Result<()> {
        let about = self.container.metadata()?;
        let sighting = Sighting {
            modified: about.modified().map_or(0, nanoseconds),
            len: about.len(),
            born: about.created().map_or(0, nanoseconds),
            seen: nanoseconds(SystemTime::now()),
            head: self.own,
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if in_any_case || (said.modified, said.len) != (sighting.modified, sighting.len) {
            self.head.write_at(&[IoSlice::new(&sighting.encode())], self.at)?;
            *said = sighting;
        }
        Ok(())
    }
}

/// A background thread that writes heartbeats while other threads of the process may write to the container. Stops when
/// dropped.
#[derive(Debug)]
pub struct Pulse {
    ends: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

impl Pulse {
    /// Starts the thread. Without one, the heartbeats of writers must suffice.
    pub fn new(heartbeat: Arc<Heartbeat>) -> Self {
        let ends: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let own = ends.clone();
        let work = move || {
            let (over, changed) = &*own;
            let mut over = over.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                let (guard, waited) = changed.wait_timeout(over, LOOK).unwrap_or_else(PoisonError::into_inner);
                over = guard;
                if waited.timed_out() && !*over {
                    let _ = heartbeat.look(false);
                }
            }
        };
        let thread = std::thread::Builder::new().name("hyperslab-pulse".into()).spawn(work).ok();
        Self { ends, thread, process: std::process::id() }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        // A forked child has no such thread.
        if self.process != std::process::id() {
            return;
        }
        *self.ends.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
