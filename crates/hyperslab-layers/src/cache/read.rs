//! Reads: cached blocks from memory, the rest from the format below.

use super::block::{Block, Charge, charge};
use super::block_cache::{BlockCache, BlockKey, LoadTicket};
use super::boxes::{IndexBox, contiguous};
use super::geometry::Geometry;
use super::read_plan::{BlockSource, Purpose, ReadPlan, Step};
use hyperslab_core::{
    Array, ChunkSubset, Dims, MemoryLayout, MemoryViewMut, Result, Scatter, Selection, Slab, TransferMode,
};
use std::sync::Arc;

/// Maximum number of blocks of a read; larger reads bypass the cache.
const MOST_BLOCKS: u64 = 4096;
/// Plans of up to this many blocks are free; beyond it, bytes counted per block.
const FREE_PARTS: u64 = 64;
const PART_BYTES: u64 = 1024;
/// Maximum number of requests below; more fragmented reads are read as a whole.
const MOST_STEPS: usize = 64;
/// Maximum size of a buffer, for unpacked memory and blocks read together.
const BUFFER_BYTES: u64 = 4 << 20;

/// A running read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    pub store: &'a Arc<BlockCache>,
    pub geometry: &'a Geometry,
    pub inner: &'a dyn Array,
    pub transfer: TransferMode,
}

impl Reading<'_> {
    /// Reads a selection inside the array to memory of its size. Returns the number of elements that came from the cache.
    pub fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<u64> {
        let element = self.geometry.element();
        let bytes = selection.len() * element;
        if memory.layout.is_packed() {
            return self.packed(selection, memory.data);
        }
        let plan = memory.layout.plan(self.geometry.dtype())?;
        if memory.layout.within.is_none() && plan.is_identity() {
            return self.packed(selection, &mut memory.data[..bytes as usize]); // a structure's buffer may be longer
        }
        let limit = self.buffer_bytes().max(element);
        let room = self.store.beside().take(charge(bytes.min(limit)));
        // If no block is concerned, the format below fills unpacked memory itself.
        if room.is_none() || self.concerns_no_block(selection)? {
            return self.inner.read(selection, memory, self.transfer).map(|()| 0);
        }
        let mut scatter = Scatter::new(memory, self.geometry.dtype(), selection.len())?;
        let (mut buffer, mut kept) = (Vec::new(), 0);
        bands(selection, limit / element, &mut |band| {
            buffer.resize((band.len() * element) as usize, 0);
            kept += self.packed(band, &mut buffer)?;
            scatter.next_from(&buffer);
            Ok(())
        })?;
        Ok(kept)
    }

    /// Whether no block of a selection is cached or to be cached.
    fn concerns_no_block(&self, selection: &Selection) -> Result<bool> {
        let Some(_room) = self.room_for_plan(selection) else { return Ok(true) };
        let plan = ReadPlan::new(self.store, self.geometry, selection, Purpose::Hint)?;
        Ok(plan.is_all_straight(self.store, self.geometry))
    }

    fn buffer_bytes(&self) -> u64 {
        BUFFER_BYTES.min(self.store.beside().limit / 2)
    }

    /// Reserves memory for the plan of a read; `None` if there is none, or if it has too many blocks.
    fn room_for_plan(&self, selection: &Selection) -> Option<Charge> {
        let parts = Some(self.geometry.touched(selection)).filter(|parts| *parts <= MOST_BLOCKS)?;
        self.store.beside().take(parts.saturating_sub(FREE_PARTS) * PART_BYTES)
    }

    /// Reads into packed memory.
    fn packed(&self, selection: &Selection, data: &mut [u8]) -> Result<u64> {
        if let Some(kept) = selection.as_slab().and_then(|slab| self.within_one_block(slab, data)) {
            return Ok(kept);
        }
        if self.all_kept(selection, data)? {
            return Ok(selection.len());
        }
        let Some(_room) = self.room_for_plan(selection) else {
            return self.straight(selection, data).map(|()| 0);
        };
        let plan = ReadPlan::new(self.store, self.geometry, selection, Purpose::Read)?;
        let kept = plan.kept;
        match self.steps(&plan, selection)? {
            Some(steps) => self.by_parts(plan, steps, selection, data).map(|()| kept),
            None => {
                self.straight(selection, data)?;
                self.keep(plan, data).map(|()| 0)
            }
        }
    }

    /// The requests of a plan; `None` to read the whole selection.
    fn steps(&self, plan: &ReadPlan, selection: &Selection) -> Result<Option<Vec<Step>>> {
        if plan.straight == selection.len() {
            return Ok(None);
        }
        let whole = match IndexBox::of(selection) {
            Some(whole) => whole,
            // Selections with gaps are not split into requests.
            None if plan.straight > 0 => return Ok(None),
            None => IndexBox { start: Dims::new(), count: Dims::new() },
        };
        let steps = plan.steps(self.geometry, &whole, self.buffer_bytes())?;
        Ok((steps.len() <= MOST_STEPS).then_some(steps))
    }

    /// Fast path: a dense box inside one cached block.
    fn within_one_block(&self, slab: &Slab, data: &mut [u8]) -> Option<u64> {
        let chunk = self.geometry.grid.chunk();
        let (mut start, mut count, mut number) = (Dims::new(), Dims::new(), 0);
        for ((span, extent), blocks) in slab.ranges().iter().zip(chunk).zip(self.geometry.grid.counts()) {
            let block = span.start() / extent;
            let first = span.start() - block * extent;
            if !span.is_dense() || first + span.len() > *extent {
                return None;
            }
            start.push(first);
            count.push(span.len());
            number = number * blocks + block;
        }
        let range = contiguous(&start, &count, chunk, self.geometry.element())?;
        let block = self.store.block(BlockKey { geometry: self.geometry.id, block: number })?;
        data.copy_from_slice(&block[range]);
        Some(slab.len())
    }

    /// Copies a selection from cached blocks; returns early if one is missing.
    fn all_kept(&self, selection: &Selection, data: &mut [u8]) -> Result<bool> {
        if !self.store.contains_all(self.geometry, selection) {
            return Ok(false);
        }
        for part in selection.split_by_chunk(&self.geometry.grid)? {
            let part = part?;
            let key = BlockKey { geometry: self.geometry.id, block: self.geometry.number(&part.chunk) };
            let Some(block) = self.store.block(key) else { return Ok(false) };
            part.copy_from_chunk(&block, data, self.geometry.element())?;
        }
        Ok(true)
    }

    /// Reads a whole selection from the format below.
    fn straight(&self, selection: &Selection, data: &mut [u8]) -> Result<()> {
        self.inner.read(selection, MemoryViewMut::packed(data), self.transfer)
    }

    /// Caches the fully requested blocks of a plan; `data` has the elements of the selection.
    fn keep(&self, plan: ReadPlan, data: &[u8]) -> Result<()> {
        for (part, way) in plan.parts {
            let (ticket, mut block) = match way {
                BlockSource::Covered(Some(mut ticket)) => match ticket.memory(self.geometry.block_bytes) {
                    Some(block) => (ticket, block),
                    None => continue,
                },
                BlockSource::Whole(Some((ticket, block))) if part.covers_chunk => (ticket, block),
                _ => continue,
            };
            part.copy_to_chunk(data, &mut block, self.geometry.element())?;
            ticket.keep(block);
        }
        Ok(())
    }

    /// Reads each part from the source in the plan.
    fn by_parts(&self, mut plan: ReadPlan, steps: Vec<Step>, selection: &Selection, data: &mut [u8]) -> Result<()> {
        let element = self.geometry.element();
        for (part, way) in &plan.parts {
            if let BlockSource::Kept(Some(block)) = way {
                part.copy_from_chunk(block, data, element)?;
            }
        }
        for step in steps {
            match step {
                Step::Straight(piece) => {
                    let whole = IndexBox::of(selection).unwrap_or_else(|| piece.clone());
                    let (range, layout) = piece.within(&whole, element)?;
                    let view = MemoryViewMut { data: &mut data[range], layout: &layout };
                    self.inner.read(&piece.selection()?, view, self.transfer)?;
                }
                Step::Whole(piece, numbers) => {
                    let mut take =
                        |number: usize| match std::mem::replace(&mut plan.parts[number].1, BlockSource::Straight) {
                            BlockSource::Whole(Some((ticket, block))) => Some((number, ticket, block)),
                            _ => None,
                        };
                    let blocks = numbers.into_iter().filter_map(&mut take).collect();
                    self.read_whole(&piece, &plan, blocks, data)?;
                }
            }
        }
        self.keep(plan, data)
    }

    /// Reads the blocks of box `piece` by one request, and copies the requested elements.
    fn read_whole(
        &self,
        piece: &IndexBox,
        plan: &ReadPlan,
        mut blocks: Vec<(usize, LoadTicket, Block)>,
        data: &mut [u8],
    ) -> Result<()> {
        let (element, selection) = (self.geometry.element(), piece.selection()?);
        let bytes = selection.len() * element;
        let room = if blocks.len() > 1 { self.store.beside().take(charge(bytes)) } else { None };
        if room.is_some() {
            let mut buffer = vec![0; bytes as usize];
            self.straight(&selection, &mut buffer)?;
            for (part, (_, _, block)) in selection.split_by_chunk(&self.geometry.grid)?.zip(&mut blocks) {
                part?.copy_to_chunk(&buffer, block, element)?;
            }
        } else {
            for (number, _, block) in &mut blocks {
                self.read_block(&plan.parts[*number].0, block)?;
            }
        }
        drop(room);
        for (number, ticket, block) in blocks {
            plan.parts[number].0.copy_from_chunk(&ticket.keep(block), data, element)?;
        }
        Ok(())
    }

    /// Reads the block of a part.
    fn read_block(&self, part: &ChunkSubset, block: &mut Block) -> Result<()> {
        let (origin, extent) = (self.geometry.grid.origin(&part.chunk)?, self.geometry.grid.extent(&part.chunk)?);
        let shape = self.geometry.grid.chunk();
        let layout = match extent.as_slice() == shape {
            true => MemoryLayout::packed(),
            false => MemoryLayout::strided(shape, Selection::dense(&Dims::from_elem(0, extent.len()), &extent)?),
        };
        let view = MemoryViewMut { data: block, layout: &layout };
        self.inner.read(&Selection::dense(&origin, &extent)?, view, self.transfer)
    }

    /// Forwards a hint for what a read of the selection would request.
    pub fn hint(&self, selection: &Selection) -> Result<()> {
        if self.store.contains_all(self.geometry, selection) {
            return Ok(());
        }
        let Some(_room) = self.room_for_plan(selection) else {
            self.inner.prefetch(selection);
            return Ok(());
        };
        let plan = ReadPlan::new(self.store, self.geometry, selection, Purpose::Hint)?;
        let Some(steps) = self.steps(&plan, selection)? else {
            self.inner.prefetch(selection);
            return Ok(());
        };
        for step in steps {
            let (Step::Straight(piece) | Step::Whole(piece, _)) = step;
            self.inner.prefetch(&piece.selection()?);
        }
        Ok(())
    }
}

/// Calls `each` with consecutive parts of at most `limit` elements (at least 1).
fn bands(selection: &Selection, limit: u64, each: &mut dyn FnMut(&Selection) -> Result<()>) -> Result<()> {
    let Some((low, high)) = selection.bounds() else { return Ok(()) };
    // The first half of the slowest dimension precedes the second.
    let dimension = (0..low.len()).find(|&d| high[d] - low[d] > 1);
    let Some(d) = dimension.filter(|_| selection.len() > limit.max(1)) else { return each(selection) };
    let middle = low[d] + (high[d] - low[d]) / 2;
    for (from, to) in [(low[d], middle), (middle, high[d])] {
        let mut start = low.clone();
        let mut count: Dims = high.iter().zip(&low).map(|(high, low)| high - low).collect();
        (start[d], count[d]) = (from, to - from);
        bands(&selection.intersect(&Selection::dense(&start, &count)?)?, limit, each)?;
    }
    Ok(())
}
