//! Background threads of one container on one rank, and everything that waits for them.

use super::data::Data;
use super::job::{Job, Place};
use super::pool::{Pool, bytes_taken};
use super::prefetched::{Prefetched, Room, Slot};
use super::queue::Queue;
use super::times::Times;
use hyperslab_core::{BackgroundStats, Communicator, Error, ErrorKind, Request, Result, Selection};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a task costs beside its data.
const OVERHEAD: u64 = 512;
/// What one slab of a selection costs.
const SLAB: u64 = 256;

/// Does transfers of a container in the background. Dropping it does what is left and then ends its threads.
#[derive(Debug)]
pub(crate) struct Engine {
    queue: Arc<Queue<Job>>,
    pool: Arc<Pool>,
    prefetched: Prefetched,
    times: Arc<Times>,
    wanted: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Threads do not survive a fork.
    process: u32,
    /// The group in which background transfers run.
    comm: Arc<dyn Communicator>,
    /// How long a write may wait before later ones wait for it.
    lag: Option<Duration>,
    /// When writes were queued, if that matters: the first of each tenth of the lag, by number.
    queued: Mutex<VecDeque<(u64, Instant)>>,
}

/// The elements of a write, and the room reserved for it.
#[derive(Debug)]
pub(crate) struct Held {
    data: Data,
    reserved: u64,
}

impl Engine {
    /// `threads` threads, started when there is something to do, and buffers of at most `memory` bytes.
    pub fn new(threads: usize, memory: u64, lag: Option<Duration>, comm: Arc<dyn Communicator>) -> Self {
        Self {
            queue: Arc::new(Queue::new(memory, threads == 1)),
            pool: Arc::default(),
            prefetched: Prefetched::default(),
            times: Arc::default(),
            wanted: threads,
            threads: Mutex::default(),
            process: std::process::id(),
            comm,
            lag,
            queued: Mutex::default(),
        }
    }

    /// Fails if something failed in the background, or if this process is a copy of the one that has the threads.
    pub fn check(&self) -> Result<()> {
        if std::process::id() != self.process {
            return Err(Error::new(ErrorKind::Unsupported, "access", "the container was opened before a fork")
                .backend("background")
                .hint("open it in the process that uses it"));
        }
        self.queue.check()
    }

    pub fn times(&self) -> &Times {
        &self.times
    }

    pub fn background(&self) -> BackgroundStats {
        BackgroundStats { memory: self.queue.peak(), ..self.times.background() }
    }

    /// Starts the threads if they do not run. Where none can be started this fails, and nothing is queued.
    fn start(&self) -> Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < self.wanted {
            let (queue, times, group) = (self.queue.clone(), self.times.clone(), self.comm.clone());
            let builder = std::thread::Builder::new().name("hyperslab-io".into());
            match builder.spawn(move || work(&queue, &times, &*group)) {
                Ok(thread) => threads.push(thread),
                // Fewer do as well.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(Error::io("start a background thread", error)),
            }
        }
        Ok(())
    }

    /// Waits for room for a copy of `len` bytes, and makes it. `None`: it never fits, or there are no threads.
    pub fn copy(
        &self,
        len: usize,
        selection: &Selection,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Option<Held>> {
        let reserved = bytes_taken(len) as u64 + overhead(selection);
        if !self.reserve(reserved)? {
            return Ok(None);
        }
        let copied = self
            .pool
            .take(len, self.queue.room())
            .map(|mut buffer| self.times.copy(|| fill(buffer.as_mut())).map(|()| Data::Memory(buffer.freeze())));
        match copied {
            Ok(Ok(data)) => Ok(Some(Held { data, reserved })),
            Ok(Err(error)) => {
                self.queue.release(reserved);
                Err(error)
            }
            Err(_) => {
                self.queue.release(reserved);
                Ok(None)
            }
        }
    }

    /// Waits for room for the caller's own buffer. `None`: there is never so much.
    pub fn keep(&self, data: Data, selection: &Selection) -> Result<Option<Held>> {
        let bytes = if matches!(data, Data::Memory(_)) { data.len() } else { 0 };
        let reserved = bytes + overhead(selection);
        Ok(self.reserve(reserved)?.then_some(Held { data, reserved }))
    }

    /// Bytes of the largest write that may be staged: each thread has one of them in memory.
    pub fn most_staged(&self) -> u64 {
        self.queue.limit() / self.wanted as u64
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Waits for room. `false`: there is never so much.
    fn reserve(&self, bytes: u64) -> Result<bool> {
        if self.start().is_err() {
            return Ok(false);
        }
        self.wait_for_late();
        // What was read ahead makes room before anyone waits.
        while !self.queue.try_reserve(bytes) {
            if !self.prefetched.drop_oldest() {
                return self.times.wait(|| self.queue.reserve(bytes));
            }
        }
        Ok(true)
    }

    /// Queues a write.
    pub fn write(&self, held: Held, job: impl FnOnce(Data) -> Job) -> Result<()> {
        self.push(job(held.data), held.reserved, false).map(drop)
    }

    /// Queues a write that the caller can wait for.
    pub fn submit(&self, held: Held, job: impl FnOnce(Data) -> Job) -> Result<Request> {
        let number = self.push(job(held.data), held.reserved, true)?;
        Ok(Request::pending(Ticket { queue: self.queue.clone(), number, told: false }))
    }

    /// The writes that wait or are under way and for which `fits` holds, in their order.
    pub fn waiting(&self, fits: impl Fn(&Job) -> bool) -> Vec<Arc<Job>> {
        self.queue.those(fits)
    }

    /// Takes part in a collective write, in its order.
    pub fn attend(&self, place: Arc<Place>, rank: usize) -> Result<()> {
        self.start()?;
        self.queue.push(Job::attend(place, rank), 0, false).map(drop)
    }

    fn push(&self, job: Job, reserved: u64, ticket: bool) -> Result<u64> {
        if job.is_write() {
            self.prefetched.drop_overlapping(job.place(), job.selection());
        }
        let number = self.queue.push(job, reserved, ticket)?;
        if let Some(lag) = self.lag {
            let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
            if queued.back().is_none_or(|(_, since)| since.elapsed() * 10 > lag) {
                queued.push_back((number, Instant::now()));
            }
        }
        Ok(number)
    }

    /// Waits for writes that have waited longer than they may.
    fn wait_for_late(&self) {
        let Some(lag) = self.lag else { return };
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        let mut late = None;
        while let Some((number, _)) = queued.front().filter(|(_, since)| since.elapsed() > lag) {
            late = Some(*number);
            queued.pop_front();
        }
        drop(queued);
        if let Some(last) = late
            && self.queue.any_up_to(last)
        {
            self.times.wait(|| self.queue.wait_for_earlier(last));
        }
    }

    /// Starts to read elements that will be wanted, if there is room for them.
    pub fn prefetch(&self, place: &Arc<Place>, selection: &Selection, bytes: usize, most: usize) {
        if self.prefetched.has(place, selection) || !self.prefetched.has_room(most) || self.start().is_err() {
            return;
        }
        let reserved = bytes_taken(bytes) as u64 + overhead(selection);
        if !self.queue.try_reserve(reserved) {
            return;
        }
        let queue = self.queue.clone();
        let room = Room(Box::new(move || queue.release(reserved)));
        let Ok(buffer) = self.pool.take(bytes, self.queue.room()) else { return };
        let slot = Slot::new(place.clone(), selection.clone(), buffer, room);
        if self.queue.push(Job::Prefetch(slot.clone()), 0, false).is_ok() {
            self.prefetched.insert(slot);
        }
    }

    /// The elements if they were read ahead, waiting for those under way.
    pub fn prefetched(&self, place: &Place, selection: &Selection) -> Option<Arc<Slot>> {
        let slot = self.prefetched.remove(place, selection)?;
        let is_it = |job: &Job| matches!(job, Job::Prefetch(other) if Arc::ptr_eq(other, &slot));
        self.wait_while(is_it);
        Some(slot)
    }

    /// Forgets what was read ahead: others may have written since.
    pub fn forget_prefetched(&self) {
        self.prefetched.clear();
    }

    /// Waits for the jobs for which `fits` holds.
    pub fn wait_while(&self, fits: impl Fn(&Job) -> bool) {
        if self.queue.any(&fits) {
            self.times.wait(|| self.queue.wait_while(fits));
        }
    }

    /// Waits for everything.
    pub fn drain(&self) {
        self.wait_while(|_| true);
    }

    /// The errors that nobody has heard of yet, as one.
    pub fn take_error(&self) -> Result<()> {
        self.queue.take_error()
    }

    /// Does what is left and ends the threads. Later jobs are refused.
    pub fn stop(&self) {
        if std::process::id() != self.process {
            return; // No thread here would ever do it.
        }
        self.drain();
        self.prefetched.clear();
        self.queue.finish();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread turns panics into errors; what could be left has been reported.
            let _ = thread.join();
        }
        self.pool.clear();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() && self.queue.any(Job::is_collective) {
            // The others may wait for this rank elsewhere and never come to these.
            let reason = Error::new(ErrorKind::Peer, "write", "a rank panicked with collective writes under way");
            self.comm.abort(&reason);
        }
        self.stop();
    }
}

fn overhead(selection: &Selection) -> u64 {
    OVERHEAD + SLAB * selection.slabs().len() as u64
}

/// A background thread.
fn work(queue: &Queue<Job>, times: &Times, group: &dyn Communicator) {
    while let Some(taken) = queue.take() {
        let result = times.work(taken.task.bytes(), || taken.task.run(taken.after_failure, group));
        let number = taken.number;
        drop(taken);
        queue.end(number, result);
    }
}

/// The end of a job, for whoever submitted it.
struct Ticket {
    queue: Arc<Queue<Job>>,
    number: u64,
    told: bool,
}

impl Future for Ticket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let end = self.queue.poll(self.number, context);
        self.told |= end.is_ready();
        end
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.told {
            self.queue.forget(self.number);
        }
    }
}
