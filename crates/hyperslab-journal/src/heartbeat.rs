//! A sign of life in the head of a journal: when its process was last there, and what it saw of the container then.
//!
//! A recovery compares it with the container. What was changed later than the writer can have changed it, somebody else
//! changed: the log is older than that.

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

/// The least time between two signs that a writer gives before it writes.
const BETWEEN: Duration = Duration::from_millis(100);
/// How often the thread of a [`Pulse`] looks at the container.
const LOOK: Duration = Duration::from_millis(400);

/// Writes what is seen of a container into a head.
#[derive(Debug)]
pub struct Heartbeat {
    head: Arc<dyn LogFile>,
    at: u64,
    container: File,
    /// The head file itself.
    own: (u64, u64),
    begun: Instant,
    /// Milliseconds after `begun` of the last sign.
    last: AtomicU64,
    /// What the head says.
    said: Mutex<Sighting>,
}

impl Heartbeat {
    /// For the head whose slot is there, and the container at this path. The first sign is given here.
    pub(crate) fn new(head: Arc<dyn LogFile>, at: u64, container: &Path) -> std::io::Result<Self> {
        // Only to be looked at: closing such a descriptor releases no lock that the program has on the file.
        let container = rustix::fs::open(container, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let own = head.inode()?.unwrap_or_default();
        let (begun, last, said) = (Instant::now(), AtomicU64::new(0), Mutex::default());
        let beat = Self { head, at, container: container.into(), own, begun, last, said };
        beat.look(true)?;
        Ok(beat)
    }

    /// Gives a sign, unless one was given just now. To be called before the container is written.
    pub fn beat(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= BETWEEN.as_millis() as u64
            && self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Without it a recovery asks more questions, and nothing worse happens.
            let _ = self.look(true);
        }
    }

    /// Looks at the container; writes what it is like if it changed, or in any case.
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

/// A thread that looks at the container while it may be written by others of this process, until it is dropped.
#[derive(Debug)]
pub struct Pulse {
    ends: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

impl Pulse {
    /// Begins. Where there can be no thread, writers' own signs have to do.
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
        // A process that was forked has no such thread.
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
