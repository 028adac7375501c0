//! Chunks with filters: coded on several threads, stored by the calling one.

use crate::cache::Cache;
use crate::claims::Claim;
use crate::control::{Control, Place};
use crate::file;
use crate::index::{Known, chunks_around};
use crate::memory::{Source, Target};
use crate::plane::{Extent, Plane};
use crate::refusal::Refusal;
use crate::workers::{FirstError, Helpers, with_helpers};
use hyperslab_core::{ChunkGrid, ChunkSubset, ChunkSubsets, Error, ErrorKind, Result, Selection};
use hyperslab_filters::Workspace;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Calls on less than this are not worth a thread.
const WORTH_A_THREAD: u64 = 256 << 10;

/// How many chunks the system is asked to read ahead.
const CHUNKS_AHEAD: usize = 16;

/// Memory of one thread.
#[derive(Default)]
struct Desk {
    workspace: Workspace,
    stored: Vec<u8>,
    chunk: Vec<u8>,
}

/// What is to be done with a chunk.
enum Job<'a> {
    /// Its elements come from memory.
    Part(Claim<'a>, Box<ChunkSubset>),
    /// It waited in the cache.
    Waited(Claim<'a>, Arc<Vec<u8>>),
}

impl Job<'_> {
    fn chunk(&self) -> u64 {
        let (Self::Part(claim, _) | Self::Waited(claim, _)) = self;
        claim.chunk()
    }
}

/// What becomes of a chunk, for the calling thread to do.
enum Made<'a> {
    Stored {
        claim: Claim<'a>,
        bytes: Vec<u8>,
        mask: u32,
        waited: Option<Arc<Vec<u8>>>,
    },
    /// What the chunk holds must be asked of the library first.
    Incomplete(Claim<'a>, Box<ChunkSubset>),
    /// Its mask must be.
    Maskless(Job<'a>),
}

/// Where the jobs of a call come from.
struct Jobs<'a> {
    parts: Option<ChunkSubsets<'a>>,
    /// Chunks of the cache to be stored, the next one last.
    waiting: Vec<u64>,
}

impl Plane {
    /// How many threads besides the calling one are of use for a selection.
    fn helpers(&self, grid: &ChunkGrid, selection: &Selection) -> Helpers {
        self.helpers_for(chunks_around(selection, grid))
    }

    fn helpers_for(&self, chunks: u64) -> Helpers {
        let worth = chunks.saturating_mul(self.chunk_bytes as u64) / WORTH_A_THREAD;
        Helpers::ask(chunks.min(worth).min(self.threads as u64).saturating_sub(1) as usize)
    }

    pub(crate) fn read_coded(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        selection: &Selection,
        target: Target<'_>,
    ) -> Result<Option<Refusal>> {
        self.prepare_index(grid, control, selection)?;
        let parts = Mutex::new(self.scouted(grid, selection)?);
        let (left, errors) = (Mutex::new(Vec::new()), FirstError::default());
        let drain = || {
            let (mut desk, mut target) = (Desk::default(), target.clone());
            while !errors.is_set() {
                let Some(part) = parts.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
                match part.and_then(|part| Ok((self.read_part(grid, None, &part, &mut target, &mut desk)?, part))) {
                    Ok((true, _)) => {}
                    Ok((false, part)) => left.lock().unwrap_or_else(PoisonError::into_inner).push(part),
                    Err(error) => errors.note(error),
                }
            }
        };
        with_helpers(&self.helpers(grid, selection), || &drain, drain)?;
        errors.into_result()?;
        let (mut desk, mut target) = (Desk::default(), target.clone());
        for part in left.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.state().index.note_missed();
            self.read_part(grid, Some(control), &part, &mut target, &mut desk)?;
        }
        Ok(None)
    }

    /// The parts of a selection. If the first chunk is not in the page cache, the system is asked to read some ahead.
    fn scouted<'a>(
        &'a self,
        grid: &'a ChunkGrid,
        selection: &'a Selection,
    ) -> Result<impl Iterator<Item = Result<ChunkSubset>> + 'a> {
        let parts = selection.split_by_chunk(grid)?;
        let place = |part: Option<Result<ChunkSubset>>| match self.known(grid, &part?.ok()?).ok()?.1 {
            Known::At(place) => Some(place),
            _ => None,
        };
        let mut scout = parts.clone();
        let first = place(scout.next());
        let cold = first.is_some_and(|place| file::read_cached(&self.file, &mut [0], place.address) == Some(false));
        let mut hint = move || {
            if let Some(place) = place(scout.next()) {
                file::will_need(&self.file, place.address, place.bytes);
            }
        };
        if cold {
            (0..CHUNKS_AHEAD).for_each(|_| hint());
        }
        Ok(parts.inspect(move |_| {
            if cold {
                hint();
            }
        }))
    }

    /// Reads a part; false if its chunk must be asked of the library, and this is not the thread to do it.
    fn read_part(
        &self,
        grid: &ChunkGrid,
        control: Option<&dyn Control>,
        part: &ChunkSubset,
        target: &mut Target<'_>,
        desk: &mut Desk,
    ) -> Result<bool> {
        let number = grid.linear(&part.chunk)?;
        let _claim = self.claims.read(number);
        let (kept, known) = {
            let mut state = self.state();
            (state.cache.get(number), state.index.get(number))
        };
        if let Some(kept) = kept {
            self.hand_out(part, &kept, target)?;
            return Ok(true);
        }
        let mark = |error: Error| self.mark(error, grid, number);
        let found = match (known, control) {
            (Known::Absent, _) => None,
            (Known::At(place), _) => Some(self.load(place, &mut desk.stored).map_err(mark)?),
            (Known::Somewhere(_), Some(control)) => {
                let origin = grid.origin(&part.chunk)?;
                let limit = self.pipeline.stored_limit();
                Some(control.read_chunk(&origin, limit, &mut desk.stored).map_err(mark)?)
            }
            (Known::Somewhere(_), None) => return Ok(false),
        };
        let Some(mask) = found else {
            crate::plain::fill(part, self.element, target, &self.fill)?;
            return Ok(true);
        };
        let in_place = match target.as_packed() {
            Some(packed) => self.packed_chunk(part)?.map(|range| (packed, range)),
            None => None,
        };
        if let Some((packed, range)) = in_place {
            // SAFETY: no two parts of a transfer have elements in common.
            let chunk = unsafe { packed.slice(range) };
            let decoded = self.pipeline.decode(&desk.stored, mask, chunk, &mut desk.workspace);
            decoded.map_err(mark)?;
        } else if part.covers_chunk {
            if desk.chunk.len() != self.chunk_bytes {
                desk.chunk = file::buffer(self.chunk_bytes)?;
            }
            self.decode(grid, number, mask, desk)?;
            self.hand_out(part, &desk.chunk, target)?;
        } else {
            // It may be wanted again.
            desk.chunk = file::buffer(self.chunk_bytes)?;
            self.decode(grid, number, mask, desk)?;
            self.hand_out(part, &desk.chunk, target)?;
            self.state().cache.keep(number, Arc::new(std::mem::take(&mut desk.chunk)));
        }
        Ok(true)
    }

    fn decode(&self, grid: &ChunkGrid, number: u64, mask: u32, desk: &mut Desk) -> Result<()> {
        let Desk { workspace, stored, chunk } = desk;
        self.pipeline.decode(stored, mask, chunk, workspace).map_err(|error| self.mark(error, grid, number))
    }

    /// Reads a stored chunk; returns its mask.
    fn load(&self, place: Place, stored: &mut Vec<u8>) -> Result<u32> {
        if place.bytes > self.pipeline.stored_limit() as u64 {
            let message = format!("it is said to have {} bytes, more than its filters can make of it", place.bytes);
            return Err(Error::new(ErrorKind::Corrupt, "read", message));
        }
        stored.resize(place.bytes as usize, 0);
        file::read(&self.file, stored, place.address)?;
        Ok(place.mask)
    }

    /// Copies a part's elements out of its chunk.
    fn hand_out(&self, part: &ChunkSubset, chunk: &[u8], target: &mut Target<'_>) -> Result<()> {
        match target.as_packed() {
            // SAFETY: no two parts of a transfer have elements in common.
            Some(packed) => unsafe { part.copy_from_chunk_shared(chunk, packed, self.element) },
            None => crate::plain::for_each_row(part, self.element, 0, &mut |pair| {
                // SAFETY: as above.
                unsafe { target.copy_from(pair.memory, chunk, pair.file) }
            }),
        }
    }

    pub(crate) fn write_coded(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
    ) -> Result<Option<Refusal>> {
        if !(whole && self.only_stores_in(grid, selection)?) {
            self.prepare_index(grid, control, selection)?;
        }
        let jobs = Jobs { parts: Some(selection.split_by_chunk(grid)?), waiting: Vec::new() };
        self.run_jobs(grid, control, jobs, &source, whole, self.helpers(grid, selection)).map(|()| None)
    }

    /// Whether writing the selected elements asks nothing of the library but to store chunks.
    pub(crate) fn only_stores_in(&self, grid: &ChunkGrid, selection: &Selection) -> Result<bool> {
        {
            let state = self.state();
            if !state.index.is_loaded() || !state.cache.changed().is_empty() {
                return Ok(false);
            }
        }
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            if !part.covers_chunk || self.state().index.get(grid.linear(&part.chunk)?) == Known::Somewhere(None) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores the chunks that wait in the cache.
    pub(crate) fn store_changed(&self, extent: &Extent, control: &dyn Control) -> Result<()> {
        let Some(grid) = &extent.grid else { return Ok(()) };
        let mut waiting = self.state().cache.changed();
        if waiting.is_empty() {
            return Ok(());
        }
        waiting.sort_unstable_by_key(|&number| std::cmp::Reverse(number)); // claimed in rising order
        let helpers = self.helpers_for(waiting.len() as u64);
        let nothing = Source::packed(&[], self.element);
        self.run_jobs(grid, control, Jobs { parts: None, waiting }, &nothing, true, helpers)
    }

    fn run_jobs(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        jobs: Jobs<'_>,
        source: &Source<'_>,
        whole: bool,
        helpers: Helpers,
    ) -> Result<()> {
        let (jobs, errors) = (Mutex::new(jobs), FirstError::default());
        let run = Run { plane: self, grid, jobs: &jobs, source, whole, errors: &errors, spare: Mutex::default() };
        let (mut desk, mut own_source) = (Desk::default(), source.clone());
        if helpers.count() > 0 {
            // The calling thread only stores.
            let helpers = helpers.and_one();
            // Every helper may have one chunk waiting while it codes the next.
            let (sender, receiver) = sync_channel(helpers.count());
            let sender = RefCell::new(Some(sender));
            let serve = || {
                let (run, sender) = (&run, sender.borrow().clone());
                move || {
                    if let Some(sender) = sender {
                        run.serve(&sender);
                    }
                }
            };
            with_helpers(&helpers, serve, || {
                sender.take(); // so that the last helper ends the channel
                run.store(control, &receiver, &mut own_source, &mut desk);
            })?;
        }
        // Everything, or what is left where no helper could start.
        while let Some(job) = run.next() {
            let made = run.make(job, &mut own_source, &mut desk);
            let stored = made.and_then(|made| match made {
                Some(made) => run.finish(control, made, &mut own_source, &mut desk),
                None => Ok(()),
            });
            if let Err(error) = stored {
                errors.note(error);
            }
        }
        errors.into_result()
    }

    /// The chunk of a part that covers it only partly, as it is now; `None` if the library must be asked.
    fn present(&self, grid: &ChunkGrid, number: u64, desk: &mut Desk) -> Result<Option<Vec<u8>>> {
        let (kept, known) = {
            let mut state = self.state();
            (state.cache.get(number), state.index.get(number))
        };
        if let Some(kept) = kept {
            // Taken out only now that it will be put back: an error before leaves it where it was.
            let taken = self.state().cache.lend(number);
            drop(kept);
            let data = taken.map(|data| Arc::try_unwrap(data).unwrap_or_else(|shared| shared.to_vec()));
            return Ok(data);
        }
        match known {
            Known::Somewhere(_) => Ok(None),
            Known::Absent => {
                let mut chunk = file::buffer(self.chunk_bytes)?;
                self.fill_chunk(&mut chunk);
                Ok(Some(chunk))
            }
            Known::At(place) => {
                let mask = self.load(place, &mut desk.stored).map_err(|error| self.mark(error, grid, number))?;
                desk.chunk = file::buffer(self.chunk_bytes)?;
                self.decode(grid, number, mask, desk)?;
                Ok(Some(std::mem::take(&mut desk.chunk)))
            }
        }
    }
}

/// One call that stores chunks.
struct Run<'a, 's> {
    plane: &'a Plane,
    grid: &'a ChunkGrid,
    jobs: &'a Mutex<Jobs<'a>>,
    source: &'a Source<'s>,
    /// Whether the memory has every byte of the elements.
    whole: bool,
    errors: &'a FirstError,
    /// Buffers to use again.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl<'a> Run<'a, '_> {
    /// The next job, its chunk claimed. Chunks that the cache has no room for come first.
    fn next(&self) -> Option<Job<'a>> {
        if self.errors.is_set() {
            return None;
        }
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(job) = self.over_limit() {
            return Some(job);
        }
        while let Some(number) = jobs.waiting.pop() {
            let claim = self.plane.claims.write(number);
            let waited = self.plane.state().cache.get(number);
            if let Some(data) = waited {
                return Some(Job::Waited(claim, data));
            }
        }
        let part = jobs.parts.as_mut()?.next();
        match part {
            None => {
                jobs.parts = None;
                None
            }
            Some(part) => match part.and_then(|part| Ok((self.grid.linear(&part.chunk)?, part))) {
                Ok((number, part)) => Some(Job::Part(self.plane.claims.write(number), Box::new(part))),
                Err(error) => {
                    self.errors.note(error);
                    None
                }
            },
        }
    }

    fn over_limit(&self) -> Option<Job<'a>> {
        let mut state = self.plane.state();
        let limit = state.cache.limit();
        let number = Cache::over(&mut state.cache, limit)?;
        let claim = self.plane.claims.try_write(number)?;
        let data = state.cache.get(number)?;
        Some(Job::Waited(claim, data))
    }

    /// Codes a chunk, or puts it into the cache.
    fn make(&self, job: Job<'a>, source: &mut Source<'_>, desk: &mut Desk) -> Result<Option<Made<'a>>> {
        let plane = self.plane;
        if let Job::Part(claim, part) = &job
            && !(self.whole && part.covers_chunk)
        {
            return match plane.present(self.grid, claim.chunk(), desk)? {
                Some(chunk) => self.change(claim, part, chunk, source).map(|()| None),
                None => {
                    let Job::Part(claim, part) = job else { return Ok(None) };
                    Ok(Some(Made::Incomplete(claim, part)))
                }
            };
        }
        let number = job.chunk();
        let mask = match plane.state().index.get(number) {
            Known::Absent => 0,
            Known::At(Place { mask, .. }) | Known::Somewhere(Some(mask)) => mask,
            Known::Somewhere(None) => return Ok(Some(Made::Maskless(job))),
        };
        self.encode(job, mask, source, desk).map(Some).map_err(|error| plane.mark(error, self.grid, number))
    }

    /// Codes a whole chunk.
    fn encode(&self, job: Job<'a>, mask: u32, source: &mut Source<'_>, desk: &mut Desk) -> Result<Made<'a>> {
        let plane = self.plane;
        match job {
            Job::Waited(claim, data) => {
                let bytes = self.copy(plane.pipeline.encode_with(&data, mask, &mut desk.workspace)?);
                Ok(Made::Stored { claim, bytes, mask, waited: Some(data) })
            }
            Job::Part(claim, part) => {
                let chunk = match plane.chunk_in_memory(&part, source)? {
                    Some(chunk) => chunk,
                    None => {
                        plane.assemble(&part, source, true, &mut desk.chunk)?;
                        &desk.chunk
                    }
                };
                let bytes = self.copy(plane.pipeline.encode_with(chunk, mask, &mut desk.workspace)?);
                Ok(Made::Stored { claim, bytes, mask, waited: None })
            }
        }
    }

    /// Changes a chunk, which then waits in the cache.
    fn change(&self, claim: &Claim<'_>, part: &ChunkSubset, mut chunk: Vec<u8>, source: &mut Source<'_>) -> Result<()> {
        let changed = self.plane.overlay(part, source, &mut chunk);
        self.plane.state().cache.hold(claim.chunk(), chunk);
        changed
    }

    /// The calling thread's part of the work on a chunk.
    fn finish(&self, control: &dyn Control, made: Made<'a>, source: &mut Source<'_>, desk: &mut Desk) -> Result<()> {
        let plane = self.plane;
        match made {
            Made::Stored { claim, bytes, mask, waited } => {
                let number = claim.chunk();
                let origin = self.grid.origin(&self.grid.coordinates(number)?)?;
                control.write_chunk(&origin, &bytes, mask).map_err(|error| plane.mark(error, self.grid, number))?;
                let mut state = plane.state();
                state.index.note_written(number, Some(mask));
                state.cache.take(number);
                if let Some(data) = waited {
                    state.cache.keep(number, data);
                }
                drop(state);
                drop(claim);
                let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
                spare.push(bytes);
                Ok(())
            }
            Made::Maskless(job) => {
                let mask = self.ask(control, job.chunk(), desk)?;
                let made = self.encode(job, mask, source, desk)?;
                self.finish(control, made, source, desk)
            }
            Made::Incomplete(claim, part) => {
                let number = claim.chunk();
                plane.state().index.note_missed();
                let mask = self.ask(control, number, desk)?;
                desk.chunk = file::buffer(plane.chunk_bytes)?;
                plane.decode(self.grid, number, mask, desk)?;
                self.change(&claim, &part, std::mem::take(&mut desk.chunk), source)
            }
        }
    }

    /// Asks the library for a stored chunk; returns its mask.
    fn ask(&self, control: &dyn Control, number: u64, desk: &mut Desk) -> Result<u32> {
        let plane = self.plane;
        let origin = self.grid.origin(&self.grid.coordinates(number)?)?;
        let limit = plane.pipeline.stored_limit();
        let asked = control.read_chunk(&origin, limit, &mut desk.stored);
        asked.map_err(|error| plane.mark(error, self.grid, number))
    }

    /// A helper's whole work.
    fn serve(&self, sender: &SyncSender<Made<'a>>) {
        let (mut desk, mut source) = (Desk::default(), self.source.clone());
        while let Some(job) = self.next() {
            match self.make(job, &mut source, &mut desk) {
                Ok(Some(made)) => {
                    if sender.send(made).is_err() {
                        return;
                    }
                }
                Ok(None) => {}
                Err(error) => self.errors.note(error),
            }
        }
    }

    /// The calling thread's whole work.
    fn store(&self, control: &dyn Control, made: &Receiver<Made<'a>>, source: &mut Source<'_>, desk: &mut Desk) {
        while let Ok(made) = made.recv() {
            // After an error what waited stays in the cache.
            if !self.errors.is_set()
                && let Err(error) = self.finish(control, made, source, desk)
            {
                self.errors.note(error);
            }
        }
    }

    fn copy(&self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        copy
    }
}
