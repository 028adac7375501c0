//! What a container and its arrays have in common, on one rank: the log, who waits for room in it, and its way to the format
//! below.

use super::batch::memory_of;
use super::chunks::Chunks;
use super::named::{Left, Mover, Named};
use super::options::Options;
use super::pace::Pace;
use super::together::Group;
use crate::background::{Appended, Place, Pool, Staging, Times, caught};
use crate::known::Known;
use hyperslab_core::{
    ArraySpec, BackgroundStats, Communicator, Error, ErrorKind, MemoryView, Reduce, Result, Selection, TransferMode,
    agree,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

#[derive(Debug)]
pub(super) struct Store {
    pub staging: Arc<Staging>,
    pub pool: Arc<Pool>,
    pub times: Times,
    pub pace: Pace,
    pub options: Options,
    /// The program's group; the format below has one of its own.
    pub comm: Arc<dyn Communicator>,
    /// What ranks that are threads show each other.
    group: Option<Arc<Group>>,
    /// As long as a handle is open below.
    arrays: Mutex<BTreeMap<Known, Arc<Named>>>,
    /// Held by whoever moves writes to the format below.
    draining: Mutex<()>,
    /// Held by whoever changes some fields of elements, and keeps the others.
    fields: Mutex<()>,
    /// Memory for the list of writes, and the most of it so far.
    memory: AtomicU64,
    most_memory: AtomicU64,
    /// Bytes in the log that only the program may move.
    pinned: AtomicU64,
    /// What went wrong, and whether somebody was told.
    failure: OnceLock<Error>,
    told: AtomicBool,
    moved: Mutex<Left>,
    /// Threads do not survive a fork.
    process: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    pub fn new(
        staging: Staging,
        pool: Arc<Pool>,
        options: Options,
        pace: Pace,
        comm: Arc<dyn Communicator>,
        group: Option<Arc<Group>>,
    ) -> Self {
        Self {
            staging: Arc::new(staging),
            pool,
            times: Times::default(),
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

    /// Fails if moving writes failed before, or in a process that was forked.
    pub fn check(&self) -> Result<()> {
        if !self.is_ours() {
            return Err(Error::unsupported("access", "the container was opened before a fork")
                .backend("log")
                .hint("open it in the process that uses it"));
        }
        self.check_moving()
    }

    /// Fails if moving writes failed before.
    fn check_moving(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(error) => Err(Error::new(error.kind(), "access", format!("an earlier write failed: {error}"))
                .backend("log")
                .hint("close the container; what is in the log can be recovered then")),
        }
    }

    /// The error that nobody has heard of yet.
    pub fn take_error(&self) -> Result<()> {
        match self.failure.get() {
            Some(error) if !self.told.swap(true, Ordering::AcqRel) => Err(error.copied()),
            _ => Ok(()),
        }
    }

    /// Nothing is done any more from now on.
    pub fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    fn failing<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.fail(error.copied()))
    }

    /// What was done in the background and at flushes. Memory is that of the list and of the buffers of a drain.
    pub fn background(&self) -> BackgroundStats {
        let background = self.times.background();
        let buffers = 2 * background.bytes.min(self.options.buffer);
        BackgroundStats { memory: self.most_memory.load(Ordering::Acquire) + buffers, ..background }
    }

    /// What was moved so far.
    pub fn moved(&self) -> Left {
        *lock(&self.moved)
    }

    /// What is known of an array that was opened below, the same for all its handles.
    pub fn named(&self, place: &Arc<Place>) -> Result<Arc<Named>> {
        let spec = place.array.spec()?;
        let mut arrays = lock(&self.arrays);
        let named =
            arrays.entry(place.known.clone()).or_insert_with(|| Arc::new(Named::new(&place.name, spec.clone())));
        if !named.is_logged() {
            named.set_spec(spec);
        }
        named.add_handle(place.clone());
        Ok(named.clone())
    }

    /// A handle was closed below; nothing of the array is in the log.
    pub fn forget(&self, named: &Named, place: &Arc<Place>) {
        if named.remove_handle(place) {
            lock(&self.arrays).remove(&place.known);
        }
    }

    /// All arrays that are open below, in the same order on every rank.
    pub fn arrays(&self) -> Vec<Arc<Named>> {
        lock(&self.arrays).values().cloned().collect()
    }

    /// Appends a write of packed elements, waiting for room. `false`: it has to be written through. To be called after
    /// [`Store::check`]: whose process this is costs a call of the kernel, and is not asked again here.
    pub fn append(&self, place: &Place, named: &Named, selection: &Selection, packed: &[u8]) -> Result<bool> {
        let (memory, bytes, allows_background_io) =
            (memory_of(selection), packed.len() as u64, place.array.allows_background_io());
        if memory > self.options.memory {
            return Ok(false);
        }
        loop {
            self.check_moving()?;
            // Counted before: the background may have moved it when this returns.
            let taken = self.memory.fetch_add(memory, Ordering::AcqRel) + memory;
            let full = taken > self.options.memory;
            self.most_memory.fetch_max(taken.min(self.options.memory), Ordering::AcqRel);
            let mut counted = None;
            let mut count = |allows_background_io| {
                self.count_in(bytes, allows_background_io);
                counted = Some(allows_background_io);
            };
            let appended = match full {
                true => Ok(Appended::Full { needed: 0 }),
                false => named.append(&self.staging, allows_background_io, selection, packed, &mut count),
            };
            if matches!(appended, Ok(Appended::Staged(_))) {
                return Ok(true);
            }
            self.memory.fetch_sub(memory, Ordering::AcqRel);
            if let Some(allows_background_io) = counted {
                self.count_out(bytes, allows_background_io);
            }
            match appended? {
                Appended::Full { needed } => self.times.wait(|| self.make_room(needed))?,
                Appended::Refused(error) => return Err(error),
                _ => return Ok(false),
            }
        }
    }

    /// Nobody else changes some fields of elements as long as this is held.
    pub fn changing_fields(&self) -> MutexGuard<'_, ()> {
        lock(&self.fields)
    }

    /// Bytes come into the log.
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
        // What the background may not move stands in the way of all that came after it.
        match self.pace.has_thread() && needed > 0 && !self.is_pinned() {
            true => {
                self.pace.hurry(true);
                self.staging.settle()?;
                self.staging.wait_for_room(needed);
                self.pace.hurry(false);
                Ok(())
            }
            false => self.drain(None),
        }
    }

    /// Waits for whoever moves writes, which need not be slow any more.
    fn take_over(&self) -> MutexGuard<'_, ()> {
        self.pace.hurry(true);
        let one = lock(&self.draining);
        self.pace.hurry(false);
        one
    }

    /// Moves the writes of one array, or of all, on this thread; each rank for itself.
    pub fn drain(&self, only: Option<&Named>) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        self.drain_now(only)
    }

    /// Moves what the background may move. `false`: from now on the program has to do so itself.
    pub fn drain_slowly(&self) -> Result<bool> {
        let _one = lock(&self.draining);
        self.check()?;
        // A log that cannot be completed, and takes no writes until then, has to be emptied.
        if self.staging.before_moving().is_err() && self.is_pinned() {
            return Ok(false);
        }
        self.drain_by(Mover::Background, None)?;
        // Gives the files back, or says in them what a recovery need not do again. A log that fails is met by the next append.
        let _ = self.staging.clear();
        Ok(true)
    }

    fn drain_now(&self, only: Option<&Named>) -> Result<()> {
        self.drain_by(Mover::Program, only)
    }

    fn drain_by(&self, mover: Mover, only: Option<&Named>) -> Result<()> {
        self.check()?;
        let arrays = self.arrays();
        let all = |only_safe| arrays.iter().try_for_each(|named| self.drain_array(mover, named, only_safe));
        let drained = match self.staging.before_moving() {
            Ok(()) => match only {
                Some(named) => self.drain_array(mover, named, false),
                None => all(false),
            },
            // A log that cannot be completed has to be empty before the rest is moved.
            Err(_) => all(true)
                .and_then(|()| self.staging.settle())
                .and_then(|()| self.staging.before_moving())
                .and_then(|()| all(false)),
        };
        self.failing(drained.and_then(|()| self.staging.settle()))
    }

    fn drain_array(&self, mover: Mover, named: &Named, only_safe: bool) -> Result<()> {
        let Some(place) = named.handle() else { return Ok(()) };
        let mut write = |selection: &Selection, packed: &[u8]| {
            let bytes = packed.len() as u64;
            let written = || place.array.write(selection, MemoryView::packed(packed), TransferMode::Independent);
            self.times.work(bytes, || caught(written)?)?;
            if mover == Mover::Background {
                self.pace.moved(bytes);
            }
            Ok(())
        };
        let (memory, pool) = (self.options.buffer, &self.pool);
        let left = match self.staging.images(&named.spec()) {
            None => named.drain(mover, only_safe, memory, pool, &mut write)?,
            Some(images) => named.drain_by(mover, only_safe, |batch| {
                let chunks = Chunks { batch, place: &place, pool, memory };
                chunks.drain(images, &self.staging, &mut write)
            })?,
        };
        self.account(left);
        Ok(())
    }

    /// Makes a call of the format below past the log, when everything that is there has been moved and a recovery would change
    /// nothing any more. Nobody moves anything meanwhile.
    pub fn past_the_log(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        self.drain_now(None)?;
        self.staging.clear()?;
        call()
    }

    /// Makes an array grow along its first dimension by `call`, which returns what it is then. Its writes stay in the log; nobody
    /// moves any meanwhile.
    pub fn grow(&self, place: &Place, named: &Named, call: impl FnOnce() -> Result<ArraySpec>) -> Result<()> {
        let _one = self.times.wait(|| self.take_over());
        let spec = call()?;
        let pinned = named.grow(spec, place.array.allows_background_io());
        self.count_in(pinned, false);
        self.count_out(pinned, true);
        Ok(())
    }

    pub(super) fn account(&self, left: Left) {
        self.memory.fetch_sub(left.memory, Ordering::AcqRel);
        self.count_out(left.bytes, left.allows_background_io);
        let mut moved = lock(&self.moved);
        moved.bytes += left.bytes;
        moved.writes += left.writes;
        moved.counts += left.counts;
    }

    /// Moves the writes of all arrays, all ranks together: their pieces may interleave, and the format below can put them
    /// together. Collective. A rank that failed takes part without data.
    pub fn drain_together(&self) -> Result<()> {
        if self.comm.size() == 1 {
            return self.drain(None);
        }
        let _one = self.times.wait(|| self.take_over());
        let mut result = self.check();
        if result.is_ok() && self.staging.before_moving().is_err() {
            // Each rank for itself, with what it takes.
            result = self.drain_now(None);
        }
        for named in self.arrays() {
            // A chunk must have one writer, which the exchange sees to.
            let group = self.group.as_ref().filter(|_| named.spec().chunk.is_none());
            let shared = group.map_or(Ok(false), |group| self.is_shareable(group, &named));
            let drained = match (group, shared) {
                (Some(group), Ok(true)) => self.drain_array_shared(group, &named, result.is_err()),
                (_, Ok(_)) => self.drain_array_together(&named, result.is_err()),
                (_, Err(error)) => Err(error),
            };
            result = result.and(drained);
        }
        self.failing(agree(&*self.comm, result.and_then(|()| self.staging.settle())))
    }

    /// Ranks have different numbers of rounds. Before each they tell each other who has one, and who failed: then it is over
    /// for all.
    fn drain_array_together(&self, named: &Named, failed: bool) -> Result<()> {
        let place =
            named.handle().ok_or_else(|| Error::invalid("drain log", "the array is closed").target(&named.name))?;
        let over = Cell::new(false);
        let turn = |more: bool, failed: bool| -> Result<bool> {
            let mut all = [u64::from(more), u64::from(failed)];
            // Where the group is gone, nobody goes on.
            over.set(true);
            self.comm.all_reduce(&mut all, Reduce::Max)?;
            let [more, failed] = all.map(|number| number > 0);
            over.set(failed || !more);
            match failed {
                true => Err(Error::new(ErrorKind::Peer, "drain log", "another rank failed").target(&named.name)),
                false => Ok(more),
            }
        };
        let write = |selection: &Selection, packed: &[u8]| {
            let call = || place.array.write(selection, MemoryView::packed(packed), TransferMode::Collective);
            self.times.work(packed.len() as u64, || caught(call)).unwrap_or_else(|panic| {
                // The others may wait for this rank inside the call.
                self.comm.abort(&panic);
                Err(panic)
            })
        };
        let mut mine = Ok(());
        if !failed {
            let mut each =
                |selection: &Selection, packed: &[u8]| turn(true, false).and_then(|_| write(selection, packed));
            mine = named
                .drain(Mover::Program, false, self.options.buffer, &self.pool, &mut each)
                .map(|left| self.account(left));
        }
        let nothing = Selection::empty(named.spec().shape.len());
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
