//! Transfers between memory and chunk files.

use super::array_state::{ArrayState, Current};
use super::atomic_files::AtomicFiles;
use super::partial_write_owners;
use super::region::{self, Region};
use super::row_bands;
use hyperslab_core::{
    ChunkGrid, ChunkSubset, ChunkSubsets, Communicator, ElementPlan, Error, ErrorKind, Gather, MemoryView,
    MemoryViewMut, Result, Scatter, Selection, agree,
};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A transfer of one rank on one array.
#[derive(Clone, Copy)]
pub struct Transferring<'a> {
    /// The array.
    pub state: &'a ArrayState,
    /// Its current layout, read-locked during the transfer.
    pub current: &'a Current,
    /// Writes files and tracks changes.
    pub files: &'a AtomicFiles,
    /// Number of threads.
    pub threads: usize,
    /// Whether ranks of other processes, which the chunk locks do not exclude, may write the same files.
    pub many_processes: bool,
}

/// Bytes of an element that a write does not change.
type Untouched = Vec<Range<usize>>;

impl Transferring<'_> {
    /// Validates a write.
    fn check_write(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<ElementPlan> {
        let layout = &self.current.layout;
        selection.check_inside(&layout.shape)?;
        memory.check(&layout.dtype, selection.len())?;
        memory.layout.plan(&layout.dtype)
    }

    /// Collective write of ranks in separate processes: a rank may cover a file partly if no other rank writes it.
    /// Fails on all ranks alike.
    pub fn write_collective(
        &self,
        comm: &dyn Communicator,
        selection: &Selection,
        memory: MemoryView<'_>,
    ) -> Result<()> {
        let plan = agree(comm, self.check_write(selection, memory))?;
        let grid = ChunkGrid::new(&self.current.layout.shape, &self.current.layout.file)?;
        partial_write_owners::check(comm, selection, &grid, !plan.covers_element())?;
        Transferring { many_processes: false, ..*self }.write(selection, memory)
    }

    /// Writes the selected elements.
    pub fn write(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let layout = &self.current.layout;
        let plan = self.check_write(selection, memory)?;
        if selection.is_empty() {
            return Ok(());
        }
        let untouched = untouched(&plan);
        if memory.layout.is_packed() || memory.layout.within.is_none() && plan.is_identity() {
            let bytes = (selection.len() * layout.dtype.size()) as usize; // a structure's buffer may be longer
            return self.write_packed(selection, &memory.data[..bytes], &untouched);
        }
        let mut gather = Gather::new(memory, &layout.dtype, selection.len())?;
        let mut buffer = Vec::new();
        row_bands::for_each_band(selection, layout, &mut |band| {
            buffer.resize((band.len() * layout.dtype.size()) as usize, 0);
            gather.next_into(&mut buffer);
            self.write_packed(band, &buffer, &untouched)
        })
    }

    /// Reads the selected elements.
    pub fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let layout = &self.current.layout;
        selection.check_inside(&layout.shape)?;
        memory.check(&layout.dtype, selection.len())?;
        if selection.is_empty() {
            return Ok(());
        }
        let plan = memory.layout.plan(&layout.dtype)?;
        if memory.layout.is_packed() || memory.layout.within.is_none() && plan.is_identity() {
            let bytes = (selection.len() * layout.dtype.size()) as usize; // a structure's buffer may be longer
            return self.read_packed(selection, &mut memory.data[..bytes]);
        }
        let mut scatter = Scatter::new(memory, &layout.dtype, selection.len())?;
        let mut buffer = Vec::new();
        row_bands::for_each_band(selection, layout, &mut |band| {
            buffer.resize((band.len() * layout.dtype.size()) as usize, 0);
            self.read_packed(band, &mut buffer)?;
            scatter.next_from(&buffer);
            Ok(())
        })
    }

    fn write_packed(&self, selection: &Selection, packed: &[u8], untouched: &Untouched) -> Result<()> {
        let grid = ChunkGrid::new(&self.current.layout.shape, &self.current.layout.file)?;
        self.on_threads(selection.split_by_chunk(&grid)?, |part| self.write_part(&part, packed, untouched))
    }

    fn read_packed(&self, selection: &Selection, packed: &mut [u8]) -> Result<()> {
        let grid = ChunkGrid::new(&self.current.layout.shape, &self.current.layout.file)?;
        let packed = Mutex::new(packed);
        self.on_threads(selection.split_by_chunk(&grid)?, |part| self.read_part(&part, &packed))
    }

    /// Runs `work` for every part; with several threads an error stops the others at their next part.
    fn on_threads(&self, mut parts: ChunkSubsets<'_>, work: impl Fn(ChunkSubset) -> Result<()> + Sync) -> Result<()> {
        if self.threads <= 1 {
            return parts.try_for_each(|part| work(part?));
        }
        let waiting = Mutex::new(Some(parts));
        let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(Iterator::next);
        let drain = || {
            while let Some(part) = take() {
                if let Err(error) = part.and_then(&work) {
                    *waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return Err(error);
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads).map(|_| scope.spawn(drain)).collect();
            let mine = drain();
            others.into_iter().fold(mine, |all, other| {
                let panicked = |_| Err(Error::new(ErrorKind::Io, "transfer", "a thread failed unexpectedly"));
                all.and(other.join().unwrap_or_else(panicked))
            })
        })
    }

    fn write_part(&self, part: &ChunkSubset, packed: &[u8], untouched: &Untouched) -> Result<()> {
        let Current { layout, chunks, .. } = self.current;
        let whole = untouched.is_empty() && part.covers_chunk;
        self.refuse_shared_part(whole)?;
        // A rank that reads, changes and replaces this file meanwhile would bring back what is replaced here, so
        // whole files are locked too.
        let _lock = self.state.identity.writing(&part.chunk);
        let everything = Region::all(&layout.file);
        if !whole {
            return self.merge_part(part, packed, untouched);
        }
        let bytes = layout.file_bytes();
        let inside_array = part.within.len() * layout.dtype.size() == bytes as u64;
        if inside_array && packed.len() == bytes {
            // The one file of the call: its bytes are the caller's.
            return chunks.store(self.files, layout, &part.chunk, packed, &everything, None);
        }
        let mut data = if inside_array { vec![0; bytes] } else { region::filled(bytes, &layout.fill) };
        part.copy_to_chunk(packed, &mut data, layout.dtype.size())?;
        chunks.store(self.files, layout, &part.chunk, &data, &everything, None)
    }

    /// Refuses writing part of a file that ranks of other processes may write.
    pub(super) fn refuse_shared_part(&self, whole: bool) -> Result<()> {
        if !self.many_processes || whole {
            return Ok(());
        }
        let message = "part of a chunk, while ranks are separate processes: another rank's part of it could be lost";
        Err(Error::unsupported("write", message)
            .target(&self.state.name)
            .hint("write collectively, or choose chunks (or shards) that each are written whole by one rank"))
    }

    /// Changes some elements, or some bytes of elements, of a file. The caller holds its lock.
    fn merge_part(&self, part: &ChunkSubset, packed: &[u8], untouched: &Untouched) -> Result<()> {
        let Current { layout, chunks, .. } = self.current;
        // A shard keeps the chunks that the part does not touch; any other file is decoded in full.
        let needed = if layout.sharding.is_some() { region_of(part)? } else { Region::all(&layout.file) };
        let (mut data, shard) = match chunks.load(layout, &part.chunk, &needed)? {
            Some(loaded) => (loaded.data, loaded.shard),
            None => (region::filled(layout.file_bytes(), &layout.fill), None),
        };
        let before = if untouched.is_empty() { Vec::new() } else { data.clone() };
        part.copy_to_chunk(packed, &mut data, layout.dtype.size())?;
        let element = layout.dtype.size() as usize;
        for (new, old) in data.chunks_exact_mut(element).zip(before.chunks_exact(element)) {
            for range in untouched {
                new[range.clone()].copy_from_slice(&old[range.clone()]);
            }
        }
        chunks.store(self.files, layout, &part.chunk, &data, &needed, shard.as_ref())
    }

    fn read_part(&self, part: &ChunkSubset, packed: &Mutex<&mut [u8]>) -> Result<()> {
        let Current { layout, chunks, .. } = self.current;
        let region = region_of(part)?;
        let loaded = {
            let _lock = self.state.identity.reading(&part.chunk);
            chunks.load(layout, &part.chunk, &region)?
        };
        let data = match loaded {
            Some(loaded) => loaded.data,
            None => region::filled(layout.file_bytes(), &layout.fill),
        };
        let mut packed = packed.lock().unwrap_or_else(PoisonError::into_inner);
        part.copy_from_chunk(&data, &mut packed, layout.dtype.size())
    }
}

/// The smallest box around the part.
fn region_of(part: &ChunkSubset) -> Result<Region> {
    let (start, end) = part.within.bounds().ok_or_else(|| Error::invalid("transfer", "a part without elements"))?;
    Ok(Region { start, end })
}

/// The bytes of an element that the plan does not transfer.
fn untouched(plan: &ElementPlan) -> Untouched {
    let mut covered: Vec<(usize, usize)> =
        plan.pieces.iter().map(|p| (p.element as usize, (p.element + p.len) as usize)).collect();
    covered.sort_unstable();
    let mut out = Vec::new();
    let mut at = 0;
    for (start, end) in covered {
        if start > at {
            out.push(at..start);
        }
        at = end;
    }
    if at < plan.element as usize {
        out.push(at..plan.element as usize);
    }
    out
}
