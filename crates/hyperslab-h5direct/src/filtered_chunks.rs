//! Filtered chunks: encoded and decoded on several threads, stored by the calling one.

use crate::cache::Cache;
use crate::chunk_index::{ChunkState, chunks_in_bounds};
use crate::chunk_locks::ChunkLock;
use crate::direct_dataset::{DirectDataset, Extent};
use crate::fallback::FallbackReason;
use crate::file;
use crate::memory::{Source, Target};
use crate::metadata_backend::{ChunkAddress, MetadataBackend};
use crate::workers::{FirstError, WorkerPermits, with_workers};
use hyperslab_core::{ChunkGrid, ChunkSubset, ChunkSubsets, Error, ErrorKind, Result, Selection};
use hyperslab_filters::Workspace;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum bytes per thread: smaller calls use fewer threads.
const WORTH_A_THREAD: u64 = 256 << 10;

/// Number of chunks to read ahead.
const CHUNKS_AHEAD: usize = 16;

/// Buffers of one thread, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct WorkerScratch {
    workspace: Workspace,
    pub(crate) stored: Vec<u8>,
    pub(crate) chunk: Vec<u8>,
}

/// A chunk to be written.
enum Job<'a> {
    /// A subset of its elements comes from the caller's memory.
    Subset(ChunkLock<'a>, Box<ChunkSubset>),
    /// A dirty chunk of the cache.
    WriteBack(ChunkLock<'a>, Arc<Vec<u8>>),
}

impl Job<'_> {
    fn chunk(&self) -> u64 {
        let (Self::Subset(lock, _) | Self::WriteBack(lock, _)) = self;
        lock.chunk()
    }
}

/// A chunk that the calling thread must finish, since only it may call the library.
enum EncodedChunk<'a> {
    Ready {
        lock: ChunkLock<'a>,
        bytes: Vec<u8>,
        mask: u32,
        cached: Option<Arc<Vec<u8>>>,
        /// Its elements, if the library would leave out a filter that does not make them smaller. Only the library itself
        /// stores such chunks reliably.
        elements: Option<Vec<u8>>,
    },
    /// Partly covered, and its stored data must be read through the library first.
    NeedsOldData(ChunkLock<'a>, Box<ChunkSubset>),
    /// Its filter mask must be queried first.
    NeedsMask(Job<'a>),
}

/// Queue of the chunks of one call.
struct Jobs<'a> {
    parts: Option<ChunkSubsets<'a>>,
    /// Dirty chunks to write back, the next one last.
    waiting: Vec<u64>,
}

impl DirectDataset {
    /// Permits for additional threads, as many as pay off for a selection.
    fn helpers(&self, grid: &ChunkGrid, selection: &Selection) -> WorkerPermits {
        self.permits_for(chunks_in_bounds(selection, grid))
    }

    pub(crate) fn permits_for(&self, chunks: u64) -> WorkerPermits {
        let worth = chunks.saturating_mul(self.chunk_bytes as u64) / WORTH_A_THREAD;
        WorkerPermits::acquire(chunks.min(worth).min(self.threads as u64).saturating_sub(1) as usize)
    }

    pub(crate) fn read_filtered_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        selection: &Selection,
        target: Target<'_>,
    ) -> Result<Option<FallbackReason>> {
        self.prepare_index(grid, control, selection)?;
        let parts = Mutex::new(self.with_readahead(grid, selection)?);
        let (deferred, errors) = (Mutex::new(Vec::new()), FirstError::default());
        let drain = || {
            let (mut scratch, mut target) = (WorkerScratch::default(), target.clone());
            while !errors.is_set() {
                let Some(part) = parts.lock().unwrap_or_else(PoisonError::into_inner).next() else { return };
                match part.and_then(|part| Ok((self.read_part(grid, None, &part, &mut target, &mut scratch)?, part))) {
                    Ok((true, _)) => {}
                    Ok((false, part)) => deferred.lock().unwrap_or_else(PoisonError::into_inner).push(part),
                    Err(error) => errors.note(error),
                }
            }
        };
        with_workers(&self.helpers(grid, selection), || &drain, drain)?;
        errors.into_result()?;
        let (mut scratch, mut target) = (WorkerScratch::default(), target.clone());
        for part in deferred.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.state().index.note_lookup_failed();
            self.read_part(grid, Some(control), &part, &mut target, &mut scratch)?;
        }
        Ok(None)
    }

    /// The chunk subsets of a selection. If the first chunk is not in the page cache, following ones are read ahead.
    fn with_readahead<'a>(
        &'a self,
        grid: &'a ChunkGrid,
        selection: &'a Selection,
    ) -> Result<impl Iterator<Item = Result<ChunkSubset>> + 'a> {
        let parts = selection.split_by_chunk(grid)?;
        let place = |part: Option<Result<ChunkSubset>>| match self.chunk_state(grid, &part?.ok()?).ok()?.1 {
            ChunkState::At(place) => Some(place),
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

    /// Reads one chunk subset. `false`: the chunk must be read through the library, and `control` is `None`.
    fn read_part(
        &self,
        grid: &ChunkGrid,
        control: Option<&dyn MetadataBackend>,
        part: &ChunkSubset,
        target: &mut Target<'_>,
        scratch: &mut WorkerScratch,
    ) -> Result<bool> {
        let number = grid.linear(&part.chunk)?;
        let _lock = self.locks.read(number);
        let (kept, known) = {
            let mut state = self.state();
            (state.cache.get(number), state.index.get(number))
        };
        if let Some(kept) = kept {
            self.copy_out(part, &kept, target)?;
            return Ok(true);
        }
        let chunk_error = |error: Error| self.chunk_error(error, grid, number);
        let found = match (known, control) {
            (ChunkState::Absent, _) => None,
            (ChunkState::At(place), _) => Some(self.load(place, &mut scratch.stored).map_err(chunk_error)?),
            (ChunkState::AddressUnknown(_), Some(control)) => {
                let origin = grid.origin(&part.chunk)?;
                let limit = self.pipeline.stored_limit();
                Some(control.read_chunk(&origin, limit, &mut scratch.stored).map_err(chunk_error)?)
            }
            (ChunkState::AddressUnknown(_), None) => return Ok(false),
        };
        let Some(mask) = found else {
            crate::raw_io::fill(part, self.element, target, &self.fill)?;
            return Ok(true);
        };
        let in_place = match target.as_packed() {
            Some(packed) => self.packed_chunk(part)?.map(|range| (packed, range)),
            None => None,
        };
        if let Some((packed, range)) = in_place {
            // SAFETY: the chunk subsets of a transfer are disjoint.
            let chunk = unsafe { packed.slice(range) };
            let decoded = self.pipeline.decode(&scratch.stored, mask, chunk, &mut scratch.workspace);
            decoded.map_err(chunk_error)?;
        } else if part.covers_chunk {
            if scratch.chunk.len() != self.chunk_bytes {
                scratch.chunk = file::buffer(self.chunk_bytes)?;
            }
            self.decode(grid, number, mask, scratch)?;
            self.copy_out(part, &scratch.chunk, target)?;
        } else {
            // Cached, since the rest of the chunk is likely to be read next.
            scratch.chunk = file::buffer(self.chunk_bytes)?;
            self.decode(grid, number, mask, scratch)?;
            self.copy_out(part, &scratch.chunk, target)?;
            self.state().cache.insert_clean(number, Arc::new(std::mem::take(&mut scratch.chunk)));
        }
        Ok(true)
    }

    pub(crate) fn decode(&self, grid: &ChunkGrid, number: u64, mask: u32, scratch: &mut WorkerScratch) -> Result<()> {
        let WorkerScratch { workspace, stored, chunk } = scratch;
        self.pipeline.decode(stored, mask, chunk, workspace).map_err(|error| self.chunk_error(error, grid, number))
    }

    /// Reads the stored bytes of a chunk; returns its filter mask.
    pub(crate) fn load(&self, place: ChunkAddress, stored: &mut Vec<u8>) -> Result<u32> {
        if place.bytes > self.pipeline.stored_limit() as u64 {
            let message = format!("it is said to have {} bytes, more than its filters can make of it", place.bytes);
            return Err(Error::new(ErrorKind::Corrupt, "read", message));
        }
        stored.resize(place.bytes as usize, 0);
        file::read(&self.file, stored, place.address)?;
        Ok(place.mask)
    }

    /// Copies a subset's elements from the decoded chunk to the caller's memory.
    fn copy_out(&self, part: &ChunkSubset, chunk: &[u8], target: &mut Target<'_>) -> Result<()> {
        match target.as_packed() {
            // SAFETY: the chunk subsets of a transfer are disjoint.
            Some(packed) => unsafe { part.copy_from_chunk_shared(chunk, packed, self.element) },
            None => crate::raw_io::for_each_row(part, self.element, 0, &mut |pair| {
                // SAFETY: as above.
                unsafe { target.copy_from(pair.memory, chunk, pair.file) }
            }),
        }
    }

    pub(crate) fn write_filtered_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
    ) -> Result<Option<FallbackReason>> {
        if !(whole && self.all_chunks_overwritten(grid, selection)?) {
            self.prepare_index(grid, control, selection)?;
        }
        let jobs = Jobs { parts: Some(selection.split_by_chunk(grid)?), waiting: Vec::new() };
        self.run_jobs(grid, control, jobs, &source, whole, self.helpers(grid, selection)).map(|()| None)
    }

    /// Whether every selected chunk is covered completely, its filter mask known, and nothing is dirty: then a write
    /// needs nothing of the library but to store chunks.
    pub(crate) fn all_chunks_overwritten(&self, grid: &ChunkGrid, selection: &Selection) -> Result<bool> {
        {
            let state = self.state();
            if !state.index.is_loaded() || !state.cache.dirty().is_empty() {
                return Ok(false);
            }
        }
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            if !part.covers_chunk
                || self.state().index.get(grid.linear(&part.chunk)?) == ChunkState::AddressUnknown(None)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes all dirty chunks back.
    pub(crate) fn write_back(&self, extent: &Extent, control: &dyn MetadataBackend) -> Result<()> {
        let Some(grid) = &extent.grid else { return Ok(()) };
        let mut waiting = self.state().cache.dirty();
        if waiting.is_empty() {
            return Ok(());
        }
        waiting.sort_unstable_by_key(|&number| std::cmp::Reverse(number)); // locked in increasing order
        let helpers = self.permits_for(waiting.len() as u64);
        let nothing = Source::packed(&[], self.element);
        self.run_jobs(grid, control, Jobs { parts: None, waiting }, &nothing, true, helpers)
    }

    /// Writes dirty chunks back until the cache is within its limit.
    pub(crate) fn evict(&self, grid: &ChunkGrid, control: &dyn MetadataBackend) -> Result<()> {
        let over = {
            let mut state = self.state();
            let limit = state.cache.limit();
            state.cache.evict_to(limit).is_some()
        };
        if !over {
            return Ok(());
        }
        let nothing = Source::packed(&[], self.element);
        let jobs = Jobs { parts: None, waiting: Vec::new() };
        self.run_jobs(grid, control, jobs, &nothing, true, self.permits_for(0))
    }

    fn run_jobs(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        jobs: Jobs<'_>,
        source: &Source<'_>,
        whole: bool,
        helpers: WorkerPermits,
    ) -> Result<()> {
        let (jobs, errors) = (Mutex::new(jobs), FirstError::default());
        let run = Run { dataset: self, grid, jobs: &jobs, source, whole, errors: &errors, spare: Mutex::default() };
        let (mut scratch, mut own_source) = (WorkerScratch::default(), source.clone());
        if helpers.count() > 0 {
            // The calling thread only stores, so one more thread may encode.
            let helpers = helpers.and_one();
            // Each worker may have one chunk queued while it encodes the next.
            let (sender, receiver) = sync_channel(helpers.count());
            let sender = RefCell::new(Some(sender));
            let run_worker = || {
                let (run, sender) = (&run, sender.borrow().clone());
                move || {
                    if let Some(sender) = sender {
                        run.run_worker(&sender);
                    }
                }
            };
            with_workers(&helpers, run_worker, || {
                sender.take(); // so that the last helper ends the channel
                run.store_encoded(control, &receiver, &mut own_source, &mut scratch);
            })?;
        }
        // All jobs, or those left where no worker could start.
        while let Some(job) = run.next() {
            let encoded = run.encode_or_cache(job, &mut own_source, &mut scratch);
            let stored = encoded.and_then(|encoded| match encoded {
                Some(encoded) => run.store_chunk(control, encoded, &mut own_source, &mut scratch),
                None => Ok(()),
            });
            if let Err(error) = stored {
                errors.note(error);
            }
        }
        errors.into_result()
    }

    /// The current content of a chunk that is covered partly; `None` if it must be read through the library.
    pub(crate) fn current_chunk(
        &self,
        grid: &ChunkGrid,
        number: u64,
        scratch: &mut WorkerScratch,
    ) -> Result<Option<Vec<u8>>> {
        let (kept, known) = {
            let mut state = self.state();
            (state.cache.get(number), state.index.get(number))
        };
        if let Some(kept) = kept {
            // Checked out only here, where no error can prevent it from being inserted again.
            let taken = self.state().cache.check_out(number);
            drop(kept);
            let data = taken.map(|data| Arc::try_unwrap(data).unwrap_or_else(|shared| shared.to_vec()));
            return Ok(data);
        }
        match known {
            ChunkState::AddressUnknown(_) => Ok(None),
            ChunkState::Absent => {
                let mut chunk = file::buffer(self.chunk_bytes)?;
                self.fill_chunk(&mut chunk);
                Ok(Some(chunk))
            }
            ChunkState::At(place) => {
                let mask =
                    self.load(place, &mut scratch.stored).map_err(|error| self.chunk_error(error, grid, number))?;
                scratch.chunk = file::buffer(self.chunk_bytes)?;
                self.decode(grid, number, mask, scratch)?;
                Ok(Some(std::mem::take(&mut scratch.chunk)))
            }
        }
    }
}

/// State of one call that writes chunks, shared by its threads.
struct Run<'a, 's> {
    dataset: &'a DirectDataset,
    grid: &'a ChunkGrid,
    jobs: &'a Mutex<Jobs<'a>>,
    source: &'a Source<'s>,
    /// Whether the memory supplies every byte of the elements.
    whole: bool,
    errors: &'a FirstError,
    /// Buffers for reuse.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl<'a> Run<'a, '_> {
    /// The next job, with its chunk write-locked. Evictions from an overfull cache come first.
    fn next(&self) -> Option<Job<'a>> {
        if self.errors.is_set() {
            return None;
        }
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(job) = self.next_eviction() {
            return Some(job);
        }
        while let Some(number) = jobs.waiting.pop() {
            let lock = self.dataset.locks.write(number);
            let cached = self.dataset.state().cache.get(number);
            if let Some(data) = cached {
                return Some(Job::WriteBack(lock, data));
            }
        }
        let part = jobs.parts.as_mut()?.next();
        match part {
            None => {
                jobs.parts = None;
                None
            }
            Some(part) => match part.and_then(|part| Ok((self.grid.linear(&part.chunk)?, part))) {
                Ok((number, part)) => Some(Job::Subset(self.dataset.locks.write(number), Box::new(part))),
                Err(error) => {
                    self.errors.note(error);
                    None
                }
            },
        }
    }

    fn next_eviction(&self) -> Option<Job<'a>> {
        let mut state = self.dataset.state();
        let limit = state.cache.limit();
        let number = Cache::evict_to(&mut state.cache, limit)?;
        let lock = self.dataset.locks.try_write(number)?;
        let data = state.cache.get(number)?;
        Some(Job::WriteBack(lock, data))
    }

    /// Encodes a chunk, or inserts it into the cache as dirty (`None`) if it is covered partly.
    fn encode_or_cache(
        &self,
        job: Job<'a>,
        source: &mut Source<'_>,
        scratch: &mut WorkerScratch,
    ) -> Result<Option<EncodedChunk<'a>>> {
        let dataset = self.dataset;
        if let Job::Subset(lock, part) = &job
            && !(self.whole && part.covers_chunk)
        {
            return match dataset.current_chunk(self.grid, lock.chunk(), scratch)? {
                Some(chunk) => self.cache_dirty(lock, part, chunk, source).map(|()| None),
                None => {
                    let Job::Subset(lock, part) = job else { return Ok(None) };
                    Ok(Some(EncodedChunk::NeedsOldData(lock, part)))
                }
            };
        }
        let number = job.chunk();
        let mask = match dataset.state().index.get(number) {
            ChunkState::Absent => 0,
            ChunkState::At(ChunkAddress { mask, .. }) | ChunkState::AddressUnknown(Some(mask)) => mask,
            ChunkState::AddressUnknown(None) => return Ok(Some(EncodedChunk::NeedsMask(job))),
        };
        self.encode(job, mask, source, scratch).map(Some).map_err(|error| dataset.chunk_error(error, self.grid, number))
    }

    /// Encodes a complete chunk.
    fn encode(
        &self,
        job: Job<'a>,
        mask: u32,
        source: &mut Source<'_>,
        scratch: &mut WorkerScratch,
    ) -> Result<EncodedChunk<'a>> {
        let dataset = self.dataset;
        match job {
            Job::WriteBack(lock, data) => {
                let encoded = dataset.pipeline.encode_with(&data, mask, &mut scratch.workspace)?;
                let elements = encoded.gave_up.then(|| data.to_vec());
                let bytes = self.copy(encoded.bytes);
                Ok(EncodedChunk::Ready { lock, bytes, mask, cached: Some(data), elements })
            }
            Job::Subset(lock, part) => {
                let chunk = match dataset.chunk_in_memory(&part, source)? {
                    Some(chunk) => chunk,
                    None => {
                        dataset.assemble(&part, source, true, &mut scratch.chunk)?;
                        &scratch.chunk
                    }
                };
                let encoded = dataset.pipeline.encode_with(chunk, mask, &mut scratch.workspace)?;
                let elements = encoded.gave_up.then(|| chunk.to_vec());
                let bytes = self.copy(encoded.bytes);
                Ok(EncodedChunk::Ready { lock, bytes, mask, cached: None, elements })
            }
        }
    }

    /// Overlays a subset's elements on a chunk and inserts it into the cache as dirty.
    fn cache_dirty(
        &self,
        lock: &ChunkLock<'_>,
        part: &ChunkSubset,
        mut chunk: Vec<u8>,
        source: &mut Source<'_>,
    ) -> Result<()> {
        let changed = self.dataset.overlay(part, source, &mut chunk);
        self.dataset.state().cache.insert_dirty(lock.chunk(), chunk);
        changed
    }

    /// Finishes a chunk on the calling thread: stores it, or reads what was missing through the library first.
    fn store_chunk(
        &self,
        control: &dyn MetadataBackend,
        encoded: EncodedChunk<'a>,
        source: &mut Source<'_>,
        scratch: &mut WorkerScratch,
    ) -> Result<()> {
        let dataset = self.dataset;
        match encoded {
            EncodedChunk::Ready { lock, bytes, mask, cached, elements } => {
                let number = lock.chunk();
                let origin = self.grid.origin(&self.grid.coordinates(number)?)?;
                let chunk_error = |error| dataset.chunk_error(error, self.grid, number);
                let by_library = match &elements {
                    Some(chunk) => {
                        let extents = self.grid.chunk();
                        control.write_elements(&origin, extents, chunk, (&bytes, mask)).map_err(chunk_error)?
                    }
                    None => false,
                };
                if !by_library {
                    control.write_chunk(&origin, &bytes, mask).map_err(chunk_error)?;
                }
                let mut state = dataset.state();
                state.index.note_written(number, (!by_library).then_some(mask));
                state.cache.take(number);
                if let Some(data) = cached {
                    state.cache.insert_clean(number, data);
                }
                drop(state);
                drop(lock);
                let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
                spare.push(bytes);
                Ok(())
            }
            EncodedChunk::NeedsMask(job) => {
                let mask = self.read_stored(control, job.chunk(), scratch)?;
                let encoded = self.encode(job, mask, source, scratch)?;
                self.store_chunk(control, encoded, source, scratch)
            }
            EncodedChunk::NeedsOldData(lock, part) => {
                let number = lock.chunk();
                dataset.state().index.note_lookup_failed();
                let mask = self.read_stored(control, number, scratch)?;
                scratch.chunk = file::buffer(dataset.chunk_bytes)?;
                dataset.decode(self.grid, number, mask, scratch)?;
                self.cache_dirty(&lock, &part, std::mem::take(&mut scratch.chunk), source)
            }
        }
    }

    /// Reads a stored chunk through the library; returns its filter mask.
    fn read_stored(&self, control: &dyn MetadataBackend, number: u64, scratch: &mut WorkerScratch) -> Result<u32> {
        let dataset = self.dataset;
        let origin = self.grid.origin(&self.grid.coordinates(number)?)?;
        let limit = dataset.pipeline.stored_limit();
        let asked = control.read_chunk(&origin, limit, &mut scratch.stored);
        asked.map_err(|error| dataset.chunk_error(error, self.grid, number))
    }

    /// Loop of a worker: encodes chunks and sends them to the calling thread.
    fn run_worker(&self, sender: &SyncSender<EncodedChunk<'a>>) {
        let (mut scratch, mut source) = (WorkerScratch::default(), self.source.clone());
        while let Some(job) = self.next() {
            match self.encode_or_cache(job, &mut source, &mut scratch) {
                Ok(Some(encoded)) => {
                    if sender.send(encoded).is_err() {
                        return;
                    }
                }
                Ok(None) => {}
                Err(error) => self.errors.note(error),
            }
        }
    }

    /// Loop of the calling thread: stores what workers send.
    fn store_encoded(
        &self,
        control: &dyn MetadataBackend,
        encoded: &Receiver<EncodedChunk<'a>>,
        source: &mut Source<'_>,
        scratch: &mut WorkerScratch,
    ) {
        while let Ok(encoded) = encoded.recv() {
            // After an error the remaining dirty chunks stay in the cache.
            if !self.errors.is_set()
                && let Err(error) = self.store_chunk(control, encoded, source, scratch)
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
