//! The log of a container on one rank, shared by its arrays: appending, waiting for space, and draining.

use super::array_log::{ArrayLog, DrainStats, DrainThread};
use super::chunk_drain::ChunkDrain;
use super::collective_drain::Group;
use super::drain_throttle::DrainThrottle;
use super::options::Options;
use super::pending_writes::memory_of;
use crate::array_key::ArrayKey;
use crate::background::{AppendResult, ArrayHandle, Pool, Staging, TransferTimes, catch_panic};
use hyperslab_core::{
    ArraySpec, BackgroundStats, Communicator, Error, ErrorKind, MemoryView, Reduce, Result, Selection, TransferMode,
    agree, lock,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

#[derive(Debug)]
pub(super) struct LogState {
    pub staging: Arc<Staging>,
    pub pool: Arc<Pool>,
    pub times: TransferTimes,
    pub pace: DrainThrottle,
    pub options: Options,
    /// The program's communicator; the format below has its own.
    pub comm: Arc<dyn Communicator>,
    /// How ranks share their lists in a collective drain.
    group: Option<Arc<Group>>,
    /// Arrays with open handles below.
    arrays: Mutex<BTreeMap<ArrayKey, Arc<ArrayLog>>>,
    /// Serialises drains.
    draining: Mutex<()>,
    /// Serialises read-modify-writes of some fields.
    fields: Mutex<()>,
    /// Memory limit of the lists of pending writes, and their peak.
    memory: AtomicU64,
    most_memory: AtomicU64,
    /// Pending bytes that only the program's threads may drain.
    pinned: AtomicU64,
    /// The first error, and whether it was reported.
    failure: OnceLock<Error>,
    told: AtomicBool,
    moved: Mutex<DrainStats>,
    /// Owning process: threads do not survive a fork.
    process: u32,
}

impl LogState {
    pub fn new(
        staging: Staging,
        pool: Arc<Pool>,
        options: Options,
        pace: DrainThrottle,
        comm: Arc<dyn Communicator>,
        group: Option<Arc<Group>>,
    ) -> Self {
        Self {
            staging: Arc::new(staging),
            pool,
            times: TransferTimes::default(),
            pace,
            options,
            comm,
            group,
            arrays: Mutex::default(),
            draining: Mutex::default(),
            fields: Mutex::default(),
            memory: AtomicU64::new(0),
            most_memory: AtomicU64::new(0),
            pinned: AtomicU64::new(0),
            failure: OnceLock::new(),
            told: AtomicBool::new(false),
            moved: Mutex::default(),
            process: std::process::id(),
        }
    }

    pub fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Fails after a failed drain, and in a forked child.
    pub fn check(&self) -> Result<()> {
        if !self.is_ours() {
            return Err(Error::unsupported("access", "the container was opened before a fork")
                .backend("log")
                .hint("open it in the process that uses it"));
        }
        self.check_moving()
    }

    /// Fails after a failed drain.
    fn check_moving(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(error) => Err(Error::new(error.kind(), "access", format!("an earlier write failed: {error}"))
                .backend("log")
                .hint("close the container; what is in the log can be recovered then")),
        }
    }

    /// Takes the unreported error.
    pub fn take_error(&self) -> Result<()> {
        match self.failure.get() {
            Some(error) if !self.told.swap(true, Ordering::AcqRel) => Err(error.copied()),
            _ => Ok(()),
        }
    }

    /// Fails the log for good.
    pub fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    fn failing<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.fail(error.copied()))
    }

    /// Statistics of background work and flushes. Memory is that of the lists and drain buffers.
    pub fn background(&self) -> BackgroundStats {
        let background = self.times.background();
        let buffers = 2 * background.bytes.min(self.options.buffer);
        BackgroundStats { memory: self.most_memory.load(Ordering::Acquire) + buffers, ..background }
    }

    /// Statistics of all drains.
    pub fn moved(&self) -> DrainStats {
        *lock(&self.moved)
    }

    /// The log of an array that was opened below, the same for all its handles.
    pub fn array_log(&self, place: &Arc<ArrayHandle>) -> Result<Arc<ArrayLog>> {
        let spec = place.array.spec()?;
        let mut arrays = lock(&self.arrays);
        let array_log =
            arrays.entry(place.known.clone()).or_insert_with(|| Arc::new(ArrayLog::new(&place.name, spec.clone())));
        if !array_log.is_logged() {
            array_log.set_spec(spec);
        }
        array_log.add_handle(place.clone());
        Ok(array_log.clone())
    }

    /// Removes a handle that was closed below; the array has no pending writes.
    pub fn forget(&self, array_log: &ArrayLog, place: &Arc<ArrayHandle>) {
        if array_log.remove_handle(place) {
            lock(&self.arrays).remove(&place.known);
        }
    }

    /// All arrays open below, in the same order on every rank.
    pub fn arrays(&self) -> Vec<Arc<ArrayLog>> {
        lock(&self.arrays).values().cloned().collect()
    }

    /// Appends a write of packed elements, waiting for space. Returns `false` if it must be written through. Call
    /// [`LogState::check`] before: this does not check for a fork, which costs a system call.
    pub fn append(
        &self,
        place: &ArrayHandle,
        array_log: &ArrayLog,
        selection: &Selection,
        packed: &[u8],
    ) -> Result<bool> {
        let (memory, bytes, allows_background_io) =
            (memory_of(selection), packed.len() as u64, place.array.allows_background_io());
        if memory > self.options.memory {
            return Ok(false);
        }
        loop {
            self.check_moving()?;
            // Counted first: the background may have drained it when the append returns.
            let taken = self.memory.fetch_add(memory, Ordering::AcqRel) + memory;
            let full = taken > self.options.memory;
            self.most_memory.fetch_max(taken.min(self.options.memory), Ordering::AcqRel);
            let mut counted = None;
            let mut count = |allows_background_io| {
                self.count_in(bytes, allows_background_io);
                counted = Some(allows_background_io);
            };
            let appended = match full {
                true => Ok(AppendResult::Full { needed: 0 }),
                false => array_log.append(&self.staging, allows_background_io, selection, packed, &mut count),
            };
            if matches!(appended, Ok(AppendResult::Staged(_))) {
                return Ok(true);
            }
            self.memory.fetch_sub(memory, Ordering::AcqRel);
            if let Some(allows_background_io) = counted {
                self.count_out(bytes, allows_background_io);
            }
            match appended? {
                AppendResult::Full { needed } => self.times.wait(|| self.make_room(needed))?,
                AppendResult::Refused(error) => return Err(error),
                _ => return Ok(false),
            }
        }
    }

    /// Lock for read-modify-writes of some fields.
    pub fn changing_fields(&self) -> MutexGuard<'_, ()> {
        lock(&self.fields)
    }

    /// Counts appended bytes.
    fn count_in(&self, bytes: u64, allows_background_io: bool) {
        match allows_background_io {
            true => self.pace.added(bytes),
            false => drop(self.pinned.fetch_add(bytes, Ordering::AcqRel)),
        }
    }

    /// Bytes left the log.
    fn count_out(&self, bytes: u64, allows_background_io: bool) {
        match allows_background_io {
            true => self.pace.removed(bytes),
            false => drop(self.pinned.fetch_sub(bytes, Ordering::AcqRel)),
        }
    }

    fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Acquire) > 0
    }

    fn make_room(&self, needed: u64) -> Result<()> {
        // Writes that the background may not drain block all later ones.
        match self.pace.has_thread() && needed > 0 && !self.is_pinned() {
            true => {
                self.pace.hurry(true);
                self.staging.complete_moved()?;
                self.staging.wait_for_room(needed);
                self.pace.hurry(false);
                Ok(())
            }
            false => self.drain(None),
        }
    }

    /// Waits for a running drain, which is no longer throttled.
    fn take_over(&self) -> MutexGuard<'_, ()> {
        self.pace.hurry(true);
        let one = lock(&self.draining);
        self.pace.hurry(false);
        one
    }

    /// Drains one array, or all, on this thread. Independent.
    pub fn drain(&self, only: Option<&ArrayLog>) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        self.drain_now(only)
    }

    /// Drains what the background may drain. Returns `false` if the program must drain from now on.
    pub fn drain_throttled(&self) -> Result<bool> {
        let _one = lock(&self.draining);
        self.check()?;
        // A log that cannot be written out takes no writes until it is drained.
        if self.staging.ensure_logged().is_err() && self.is_pinned() {
            return Ok(false);
        }
        self.drain_by(DrainThread::Background, None)?;
        // Removes files, or appends a checkpoint. A failure is met by the next append.
        let _ = self.staging.clear();
        Ok(true)
    }

    fn drain_now(&self, only: Option<&ArrayLog>) -> Result<()> {
        self.drain_by(DrainThread::Program, only)
    }

    fn drain_by(&self, mover: DrainThread, only: Option<&ArrayLog>) -> Result<()> {
        self.check()?;
        let arrays = self.arrays();
        let all = |only_safe| arrays.iter().try_for_each(|array_log| self.drain_array(mover, array_log, only_safe));
        let drained = match self.staging.ensure_logged() {
            Ok(()) => match only {
                Some(array_log) => self.drain_array(mover, array_log, false),
                None => all(false),
            },
            // A log that cannot be written out must be drained before the rest.
            Err(_) => all(true)
                .and_then(|()| self.staging.complete_moved())
                .and_then(|()| self.staging.ensure_logged())
                .and_then(|()| all(false)),
        };
        self.failing(drained.and_then(|()| self.staging.complete_moved()))
    }

    fn drain_array(&self, mover: DrainThread, array_log: &ArrayLog, only_safe: bool) -> Result<()> {
        let Some(place) = array_log.handle() else { return Ok(()) };
        let mut write = |selection: &Selection, packed: &[u8]| {
            let bytes = packed.len() as u64;
            let written = || place.array.write(selection, MemoryView::packed(packed), TransferMode::Independent);
            self.times.work(bytes, || catch_panic(written)?)?;
            if mover == DrainThread::Background {
                self.pace.moved(bytes);
            }
            Ok(())
        };
        let (memory, pool) = (self.options.buffer, &self.pool);
        let left = match self.staging.images(&array_log.spec()) {
            None => array_log.drain(mover, only_safe, memory, pool, &mut write)?,
            Some(images) => array_log.drain_by(mover, only_safe, |batch| {
                let chunks = ChunkDrain { batch, place: &place, pool, memory };
                chunks.drain(images, &self.staging, &mut write)
            })?,
        };
        self.account(left);
        Ok(())
    }

    /// Runs a call of the format below that bypasses the log: first drains everything and makes sure that recovery would
    /// change nothing. No drain runs meanwhile.
    pub fn bypass(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        self.drain_now(None)?;
        self.staging.clear()?;
        call()
    }

    /// Grows the first dimension of an array by `call`, which returns the new specification. Pending writes stay in the
    /// log; no drain runs meanwhile.
    pub fn grow(
        &self,
        place: &ArrayHandle,
        array_log: &ArrayLog,
        call: impl FnOnce() -> Result<ArraySpec>,
    ) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        let spec = call()?;
        let pinned = array_log.grow(spec, place.array.allows_background_io());
        self.count_in(pinned, false);
        self.count_out(pinned, true);
        Ok(())
    }

    pub(super) fn account(&self, left: DrainStats) {
        self.memory.fetch_sub(left.memory, Ordering::AcqRel);
        self.count_out(left.bytes, left.allows_background_io);
        let mut moved = lock(&self.moved);
        moved.bytes += left.bytes;
        moved.writes += left.writes;
        moved.counts += left.counts;
    }

    /// Drains all arrays collectively, so that interleaved writes of different ranks are combined below. Collective. A rank
    /// that failed takes part without data.
    pub fn drain_collectively(&self) -> Result<()> {
        if self.comm.size() == 1 {
            return self.drain(None);
        }
        let _one = self.times.wait(|| self.take_over());
        let mut result = self.check();
        if result.is_ok() && self.staging.ensure_logged().is_err() {
            // Independent drain.
            result = self.drain_now(None);
        }
        for array_log in self.arrays() {
            // A chunk must have one writer, which the exchange ensures.
            let group = self.group.as_ref().filter(|_| array_log.spec().chunk.is_none());
            let shared = group.map_or(Ok(false), |group| self.is_shareable(group, &array_log));
            let drained = match (group, shared) {
                (Some(group), Ok(true)) => self.drain_array_shared(group, &array_log, result.is_err()),
                (_, Ok(_)) => self.drain_array_collectively(&array_log, result.is_err()),
                (_, Err(error)) => Err(error),
            };
            result = result.and(drained);
        }
        self.failing(agree(&*self.comm, result.and_then(|()| self.staging.complete_moved())))
    }

    /// Ranks have different numbers of rounds: before each they agree whether any has one, and end if any failed.
    fn drain_array_collectively(&self, array_log: &ArrayLog, failed: bool) -> Result<()> {
        let place = array_log
            .handle()
            .ok_or_else(|| Error::invalid("drain log", "the array is closed").target(&array_log.name))?;
        let over = Cell::new(false);
        let turn = |more: bool, failed: bool| -> Result<bool> {
            let mut all = [u64::from(more), u64::from(failed)];
            // If the communicator has failed, nobody goes on.
            over.set(true);
            self.comm.all_reduce(&mut all, Reduce::Max)?;
            let [more, failed] = all.map(|number| number > 0);
            over.set(failed || !more);
            match failed {
                true => Err(Error::new(ErrorKind::Peer, "drain log", "another rank failed").target(&array_log.name)),
                false => Ok(more),
            }
        };
        let write = |selection: &Selection, packed: &[u8]| {
            let call = || place.array.write(selection, MemoryView::packed(packed), TransferMode::Collective);
            self.times.work(packed.len() as u64, || catch_panic(call)).unwrap_or_else(|panic| {
                // The other ranks may wait for this one inside the call.
                self.comm.abort(&panic);
                Err(panic)
            })
        };
        let mut mine = Ok(());
        if !failed {
            let mut each =
                |selection: &Selection, packed: &[u8]| turn(true, false).and_then(|_| write(selection, packed));
            mine = array_log
                .drain(DrainThread::Program, false, self.options.buffer, &self.pool, &mut each)
                .map(|left| self.account(left));
        }
        let nothing = Selection::empty(array_log.spec().shape.len());
        while !over.get() {
            match turn(false, failed || mine.is_err()) {
                Ok(false) => break,
                Ok(true) => mine = mine.and_then(|()| write(&nothing, &[])),
                Err(error) => mine = mine.and(Err(error)),
            }
        }
        mine
    }
}
