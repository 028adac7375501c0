//! Draining by whole chunks, for arrays whose chunks must not be rewritten in part: see
//! [`chunk_images`](hyperslab_journal::chunk_images).

use super::pending_writes::PendingWrites;
use super::read_windows::ReadWindows;
use super::reorder::{Counts, ExtentPart};
use crate::background::{ArrayHandle, Pool, Staging};
use hyperslab_core::{ChunkGrid, Error, MemoryViewMut, Result, Selection, TransferMode, packed_intersection};
use hyperslab_journal::ChunkImages;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A drain of one array by chunks.
pub(super) struct ChunkDrain<'a> {
    pub batch: &'a PendingWrites,
    pub place: &'a ArrayHandle,
    pub pool: &'a Arc<Pool>,
    /// Memory for partly needed writes, in bytes.
    pub memory: u64,
}

impl ChunkDrain<'_> {
    /// Stores every chunk that the writes overlap once, with all writes applied. One chunk is in memory at a time.
    pub fn drain(
        &self,
        images: &ChunkImages,
        staging: &Staging,
        write: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
    ) -> Result<Counts> {
        let spec = &self.batch.spec;
        let chunk = spec.chunk.as_ref().ok_or_else(|| Error::invalid("drain log", "filters without chunks"))?;
        let grid = ChunkGrid::new(&spec.shape, chunk)?;
        let mut windows = ReadWindows::new(self.memory);
        let touched = self.touched(&grid)?;
        // Nothing may be unflushed when the first chunk is stored.
        staging.write_back_container()?;
        for number in &touched {
            let at = grid.coordinates(*number)?;
            let whole = Selection::dense(&grid.origin(&at)?, &grid.extent(&at)?)?;
            let len = (whole.len() * spec.dtype.size()) as usize;
            let mut packed = self.pool.take(len, len as u64)?;
            self.fill(&whole, packed.as_mut(), &mut windows)?;
            let packed = packed.as_ref();
            let store = || write(&whole, packed).and_then(|()| staging.write_back_container());
            images.store(&self.place.name, &spec.dtype, &whole, packed, store)?;
        }
        images.clear()?;
        Ok(Counts { writes: touched.len() as u64, ..Counts::default() })
    }

    /// Numbers of all chunks to be written.
    fn touched(&self, grid: &ChunkGrid) -> Result<BTreeSet<u64>> {
        let mut numbers = BTreeSet::new();
        for write in &self.batch.writes {
            for part in write.selection(&self.batch.spec)?.split_by_chunk(grid)? {
                numbers.insert(grid.linear(&part?.chunk)?);
            }
        }
        Ok(numbers)
    }

    /// Assembles a chunk: present elements, overlaid by the writes, oldest first.
    fn fill(&self, whole: &Selection, packed: &mut [u8], windows: &mut ReadWindows) -> Result<()> {
        let spec = &self.batch.spec;
        let size = spec.dtype.size();
        let mut parts = Vec::new();
        for number in self.batch.numbers_overlapping(whole, usize::MAX).unwrap_or_default() {
            let common = whole.intersect(&*self.batch.writes[number as usize].selection(spec)?)?;
            if common.len() == whole.len() {
                // Earlier writes are fully covered.
                parts.clear();
            }
            if !common.is_empty() {
                parts.push((number, common));
            }
        }
        if parts.first().is_none_or(|(_, first)| first.len() < whole.len()) {
            self.place.array.read(whole, MemoryViewMut::packed(&mut *packed), TransferMode::Independent)?;
        }
        for (request, common) in &parts {
            let write = &self.batch.writes[*request as usize];
            packed_intersection(common, &*write.selection(spec)?, whole, &spec.shape, |at, to, count| {
                let part = ExtentPart { offset: 0, len: count * size, request: *request, at: at * size };
                let to = (to * size) as usize;
                windows.copy(&part, &write.record, &mut packed[to..to + part.len as usize])
            })?;
        }
        Ok(())
    }
}
