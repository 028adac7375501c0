//! The background threads of one container on one rank, with their queue, buffers and prefetches.

use super::job::{ArrayHandle, Job};
use super::payload::Payload;
use super::pool::{Pool, bytes_taken};
use super::prefetch_slot::{MemoryReservation, PrefetchSlot, PrefetchSlots};
use super::queue::Queue;
use super::stats::TransferTimes;
use hyperslab_core::{BackgroundStats, Communicator, Error, ErrorKind, Request, Result, Selection};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes counted for a task besides its data.
const OVERHEAD: u64 = 512;
/// Bytes counted for each slab of a selection.
const SLAB: u64 = 256;
/// Bytes of writes that may be queued whatever the lag, and before the rate of the storage is known.
const LEAST_WAITING: u64 = 8 << 20;

/// Runs transfers of a container in the background. Dropping it completes the queue and joins the threads.
#[derive(Debug)]
pub(crate) struct Engine {
    queue: Arc<Queue<Job>>,
    pool: Arc<Pool>,
    prefetched: PrefetchSlots,
    times: Arc<TransferTimes>,
    wanted: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Threads do not survive a fork.
    process: u32,
    /// The communicator of background transfers.
    comm: Arc<dyn Communicator>,
    /// Maximum age of a queued write, and maximum time that draining the queue should take, before later writes block.
    lag: Option<Duration>,
    /// Times at which writes were queued, sampled at a tenth of the lag; used only with a lag.
    queued: Mutex<VecDeque<(u64, Instant)>>,
}

/// The elements of a write, and the memory reserved for it.
#[derive(Debug)]
pub(crate) struct StagedPayload {
    data: Payload,
    reserved: u64,
}

impl Engine {
    /// An engine with up to `threads` threads, started on demand, and buffers of at most `memory` bytes.
    pub fn new(threads: usize, memory: u64, lag: Option<Duration>, comm: Arc<dyn Communicator>) -> Self {
        Self {
            queue: Arc::new(Queue::new(memory, threads == 1)),
            pool: Arc::default(),
            prefetched: PrefetchSlots::default(),
            times: Arc::default(),
            wanted: threads,
            threads: Mutex::default(),
            process: std::process::id(),
            comm,
            lag,
            queued: Mutex::default(),
        }
    }

    /// Fails after a background failure, and in a forked child.
    pub fn check(&self) -> Result<()> {
        if std::process::id() != self.process {
            return Err(Error::new(ErrorKind::Unsupported, "access", "the container was opened before a fork")
                .backend("background")
                .hint("open it in the process that uses it"));
        }
        self.queue.check()
    }

    pub fn times(&self) -> &TransferTimes {
        &self.times
    }

    pub fn background(&self) -> BackgroundStats {
        BackgroundStats { memory: self.queue.peak(), ..self.times.background() }
    }

    /// Starts the threads on first use. Fails if none can be started.
    fn start(&self) -> Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < self.wanted {
            let (queue, times, group) = (self.queue.clone(), self.times.clone(), self.comm.clone());
            let builder = std::thread::Builder::new().name("hyperslab-io".into());
            match builder.spawn(move || work(&queue, &times, &*group)) {
                Ok(thread) => threads.push(thread),
                // Fewer threads suffice.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(Error::io("start a background thread", error)),
            }
        }
        Ok(())
    }

    /// Waits for memory and copies `len` bytes. `None` if they exceed the limit, or memory cannot be allocated.
    pub fn copy(
        &self,
        len: usize,
        selection: &Selection,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Option<StagedPayload>> {
        let reserved = bytes_taken(len) as u64 + overhead(selection);
        if !self.reserve(reserved)? {
            return Ok(None);
        }
        let copied = self
            .pool
            .take(len, self.queue.room())
            .map(|mut buffer| self.times.copy(|| fill(buffer.as_mut())).map(|()| Payload::Memory(buffer.freeze())));
        match copied {
            Ok(Ok(data)) => Ok(Some(StagedPayload { data, reserved })),
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

    /// Waits until the caller's buffer fits the limit. `None` if it never does.
    pub fn keep(&self, data: Payload, selection: &Selection) -> Result<Option<StagedPayload>> {
        let bytes = if matches!(data, Payload::Memory(_)) { data.len() } else { 0 };
        let reserved = bytes + overhead(selection);
        Ok(self.reserve(reserved)?.then_some(StagedPayload { data, reserved }))
    }

    /// Maximum size of a staged write: each thread holds one in memory.
    pub fn most_staged(&self) -> u64 {
        self.queue.limit() / self.wanted as u64
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Waits for memory. Returns `false` if the request exceeds the limit.
    fn reserve(&self, bytes: u64) -> Result<bool> {
        if self.start().is_err() {
            return Ok(false);
        }
        self.wait_for_late();
        // Prefetched data is dropped before anyone waits.
        while !self.queue.try_reserve(bytes) {
            if !self.prefetched.drop_oldest() {
                return self.times.wait(|| self.queue.reserve(bytes));
            }
        }
        Ok(true)
    }

    /// Queues a write.
    pub fn write(&self, held: StagedPayload, job: impl FnOnce(Payload) -> Job) -> Result<()> {
        self.push(job(held.data), held.reserved, false).map(drop)
    }

    /// Queues a write and returns a request for its completion.
    pub fn submit(&self, held: StagedPayload, job: impl FnOnce(Payload) -> Job) -> Result<Request> {
        let number = self.push(job(held.data), held.reserved, true)?;
        Ok(Request::pending(Ticket { queue: self.queue.clone(), number, told: false }))
    }

    /// Queued and running writes for which `fits` holds, in order.
    pub fn waiting(&self, fits: impl Fn(&Job) -> bool) -> Vec<Arc<Job>> {
        self.queue.those(fits)
    }

    /// Queues this rank's empty part of a collective write, in order.
    pub fn join_collective(&self, place: Arc<ArrayHandle>, rank: usize) -> Result<()> {
        self.start()?;
        self.queue.push(Job::join_collective(place, rank), 0, false).map(drop)
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

    /// Waits for writes older than the lag, and while more are queued than can be drained within the lag.
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
        let most = || self.most_waiting(lag);
        if self.queue.has_more_than(most()) {
            self.times.wait(|| self.queue.wait_for_less(most));
        }
    }

    /// Bytes that can be drained within the lag, at the rate measured so far.
    fn most_waiting(&self, lag: Duration) -> u64 {
        let BackgroundStats { bytes, busy, .. } = self.times.background();
        let seconds = busy.as_secs_f64();
        let rate = if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 };
        ((rate * lag.as_secs_f64()) as u64).max(LEAST_WAITING)
    }

    /// Queues a prefetch, if there is memory for it.
    pub fn prefetch(&self, place: &Arc<ArrayHandle>, selection: &Selection, bytes: usize, most: usize) {
        if self.prefetched.has(place, selection) || !self.prefetched.has_room(most) || self.start().is_err() {
            return;
        }
        let reserved = bytes_taken(bytes) as u64 + overhead(selection);
        if !self.queue.try_reserve(reserved) {
            return;
        }
        let queue = self.queue.clone();
        let room = MemoryReservation(Box::new(move || queue.release(reserved)));
        let Ok(buffer) = self.pool.take(bytes, self.queue.room()) else { return };
        let slot = PrefetchSlot::new(place.clone(), selection.clone(), buffer, room);
        if self.queue.push(Job::Prefetch(slot.clone()), 0, false).is_ok() {
            self.prefetched.insert(slot);
        }
    }

    /// Returns prefetched elements; waits for a running prefetch.
    pub fn prefetched(&self, place: &ArrayHandle, selection: &Selection) -> Option<Arc<PrefetchSlot>> {
        let slot = self.prefetched.remove(place, selection)?;
        let is_it = |job: &Job| matches!(job, Job::Prefetch(other) if Arc::ptr_eq(other, &slot));
        self.wait_while(is_it);
        Some(slot)
    }

    /// Drops all prefetched data, which others may have overwritten.
    pub fn forget_prefetched(&self) {
        self.prefetched.clear();
    }

    /// Waits for the completion of jobs for which `fits` holds.
    pub fn wait_while(&self, fits: impl Fn(&Job) -> bool) {
        if self.queue.any(&fits) {
            self.times.wait(|| self.queue.wait_while(fits));
        }
    }

    /// Waits until the queue is empty.
    pub fn drain(&self) {
        self.wait_while(|_| true);
    }

    /// Returns unreported errors, combined.
    pub fn take_error(&self) -> Result<()> {
        self.queue.take_error()
    }

    /// Completes the queue and joins the threads. Later jobs are refused.
    pub fn stop(&self) {
        if std::process::id() != self.process {
            return; // No thread here would ever do it.
        }
        self.drain();
        self.prefetched.clear();
        self.queue.finish();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // Threads turn panics into errors, which are reported elsewhere.
            let _ = thread.join();
        }
        self.pool.clear();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() && self.queue.any(Job::is_collective) {
            // Other ranks may never make these collective calls.
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
fn work(queue: &Queue<Job>, times: &TransferTimes, group: &dyn Communicator) {
    while let Some(taken) = queue.take() {
        let result = times.work(taken.task.bytes(), || taken.task.run(taken.after_failure, group));
        let number = taken.number;
        drop(taken);
        queue.end(number, result);
    }
}

/// Future of a submitted job's result.
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
