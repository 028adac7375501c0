//! A clock that stands still while a rank does what is not measured: emulated compute, making and checking data.
//!
//! Ranks wait for each other in collective calls, so one rank's unmeasured work would show up as another's waiting.
//! The communicator here carries the clocks along in its messages and takes that waiting out again: after a
//! collective call every clock shows what it would show had nobody done unmeasured work.

use hyperslab_core::{Communicator, Error, ErrorKind, Reduce, Result};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One rank's clock. Runs from its creation.
#[derive(Debug)]
pub(crate) struct Clock {
    begin: Instant,
    /// Nanoseconds that do not count.
    excluded: AtomicU64,
    last: Mutex<Meeting>,
}

/// The state of the clock when all ranks last met.
#[derive(Debug, Clone, Copy)]
struct Meeting {
    real: u64,
    excluded: u64,
}

/// What ranks tell each other: nanoseconds since they last met.
#[derive(Clone, Copy)]
struct Interval {
    real: u64,
    counted: u64,
}

const MESSAGE: usize = 16;

impl Clock {
    pub fn start() -> Arc<Self> {
        let last = Mutex::new(Meeting { real: 0, excluded: 0 });
        Arc::new(Self { begin: Instant::now(), excluded: AtomicU64::new(0), last })
    }

    fn real(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Time that counts, since the start.
    pub fn counted(&self) -> Duration {
        Duration::from_nanos(self.real().saturating_sub(self.excluded.load(Relaxed)))
    }

    /// All time since the start.
    pub fn wall(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Runs `work` with the clock standing still. Returns how long it took.
    pub fn exclude<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let from = self.real();
        let value = work();
        let took = self.real() - from;
        self.excluded.fetch_add(took, Relaxed);
        (value, Duration::from_nanos(took))
    }

    fn since_last(&self) -> Interval {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let real = self.real().saturating_sub(last.real);
        let excluded = self.excluded.load(Relaxed).saturating_sub(last.excluded);
        Interval { real, counted: real.saturating_sub(excluded) }
    }

    /// Called when all ranks have met, with what each told.
    fn met(&self, told: impl Iterator<Item = Interval> + Clone) {
        let longest = |which: fn(Interval) -> u64| told.clone().map(which).max().unwrap_or(0);
        // The last to come decides when all go on; without unmeasured work it would have been this much earlier.
        let gained = longest(|i| i.real).saturating_sub(longest(|i| i.counted));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let excluded = last.excluded + gained;
        self.excluded.store(excluded, Relaxed);
        *last = Meeting { real: self.real(), excluded };
    }
}

impl Interval {
    fn encode(self) -> [u8; MESSAGE] {
        let mut bytes = [0; MESSAGE];
        bytes[..8].copy_from_slice(&self.real.to_le_bytes());
        bytes[8..].copy_from_slice(&self.counted.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (real, counted) = bytes.split_at_checked(8)?;
        Some(Self {
            real: u64::from_le_bytes(real.try_into().ok()?),
            counted: u64::from_le_bytes(counted.try_into().ok()?),
        })
    }
}

/// A communicator that keeps the clocks of its ranks in step. What is split off is the inner communicator's own.
#[derive(Debug)]
pub(crate) struct Clocked {
    inner: Arc<dyn Communicator>,
    clock: Arc<Clock>,
}

impl Clocked {
    pub fn wrap(inner: Arc<dyn Communicator>, clock: Arc<Clock>) -> Arc<dyn Communicator> {
        Arc::new(Self { inner, clock })
    }
}

#[deny(clippy::missing_trait_methods)]
impl Communicator for Clocked {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn one_process(&self) -> bool {
        self.inner.one_process()
    }

    fn mpi_handle(&self) -> Option<i32> {
        self.inner.mpi_handle()
    }

    fn barrier(&self) -> Result<()> {
        self.all_gather(&[]).map(|_| ())
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut message = mine.to_vec();
        message.extend(self.clock.since_last().encode());
        let mut all = self.inner.all_gather(&message)?;
        let mut told = Vec::with_capacity(all.len());
        for said in &mut all {
            let at = said.len().saturating_sub(MESSAGE);
            told.push(
                Interval::decode(&said[at..])
                    .ok_or_else(|| Error::new(ErrorKind::Corrupt, "all_gather", "a rank's message lacks its clock"))?,
            );
            said.truncate(at);
        }
        self.clock.met(told.into_iter());
        Ok(all)
    }

    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        self.barrier()?;
        self.inner.broadcast(root, data)
    }

    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        self.barrier()?;
        self.inner.all_to_all(parts, received)
    }

    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()> {
        self.barrier()?;
        self.inner.all_reduce(values, how)
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()> {
        self.barrier()?;
        self.inner.all_reduce_f64(values, how)
    }

    /// Without clocks: for calls that are made behind the back of the rank.
    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        self.inner.duplicate()
    }

    fn many_threads(&self) -> bool {
        self.inner.many_threads()
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.inner.split_by_node()
    }

    fn abort(&self, reason: &Error) {
        self.inner.abort(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_comm::Threads;
    use std::thread::sleep;

    #[test]
    fn waiting_for_unmeasured_work_of_others_does_not_count() {
        let pause = Duration::from_millis(400);
        let shown = Threads::run(3, |comm| {
            let clock = Clock::start();
            let rank = comm.rank();
            let comm = Clocked::wrap(comm, clock.clone());
            comm.barrier()?;
            if rank == 1 {
                clock.exclude(|| sleep(pause));
            }
            assert_eq!(comm.all_gather(&[rank as u8])?, [[0], [1], [2]]);
            if rank == 2 {
                sleep(pause); // this is measured, and the others wait for it
            }
            comm.barrier()?;
            Ok((clock.counted(), clock.wall()))
        })
        .unwrap();
        for (counted, wall) in shown {
            assert!(wall >= 2 * pause, "{wall:?}");
            assert!(counted >= pause.mul_f64(0.5) && counted <= wall - pause.mul_f64(0.5), "{counted:?} of {wall:?}");
        }
    }
}
