//! From the log to whole chunks, for arrays whose chunks must not be changed in part: see [`images`](crate::images).

use super::batch::Batch;
use super::reorder::{Counts, Part};
use super::windows::Windows;
use crate::background::{Place, Pool, Staging};
use crate::images::Images;
use crate::pairing::pair;
use hyperslab_core::{ChunkGrid, Error, MemoryViewMut, Result, Selection, TransferMode};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Writes of one array, and where they go.
pub(super) struct Chunks<'a> {
    pub batch: &'a Batch,
    pub place: &'a Place,
    pub pool: &'a Arc<Pool>,
    /// Bytes for writes of which only parts are needed.
    pub memory: u64,
}

impl Chunks<'_> {
    /// Stores every chunk that the writes touch, each once, with all of them in it. A chunk is in memory at a time.
    pub fn drain(
        &self,
        images: &Images,
        staging: &Staging,
        write: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
    ) -> Result<Counts> {
        let spec = &self.batch.spec;
        let chunk = spec.chunk.as_ref().ok_or_else(|| Error::invalid("drain log", "filters without chunks"))?;
        let grid = ChunkGrid::new(&spec.shape, chunk)?;
        let mut windows = Windows::new(self.memory);
        let touched = self.touched(&grid)?;
        // Whatever else the program has changed must not be in the way of a chunk.
        staging.settle_container()?;
        for number in &touched {
            let at = grid.coordinates(*number)?;
            let whole = Selection::dense(&grid.origin(&at)?, &grid.extent(&at)?)?;
            let len = (whole.len() * spec.dtype.size()) as usize;
            let mut packed = self.pool.take(len, len as u64)?;
            self.fill(&whole, packed.as_mut(), &mut windows)?;
            let packed = packed.as_ref();
            let store = || write(&whole, packed).and_then(|()| staging.settle_container());
            images.store(&self.place.name, &spec.dtype, &whole, packed, store)?;
        }
        images.clear()?;
        Ok(Counts { writes: touched.len() as u64, ..Counts::default() })
    }

    /// The numbers of all chunks that have elements to be written.
    fn touched(&self, grid: &ChunkGrid) -> Result<BTreeSet<u64>> {
        let mut numbers = BTreeSet::new();
        for write in &self.batch.writes {
            for part in write.selection(&self.batch.spec)?.split_by_chunk(grid)? {
                numbers.insert(grid.linear(&part?.chunk)?);
            }
        }
        Ok(numbers)
    }

    /// The elements of a chunk: those that are there, and the writes over them, oldest first.
    fn fill(&self, whole: &Selection, packed: &mut [u8], windows: &mut Windows) -> Result<()> {
        let spec = &self.batch.spec;
        let size = spec.dtype.size();
        let mut parts = Vec::new();
        for number in self.batch.numbers_touching(whole, usize::MAX).unwrap_or_default() {
            let common = whole.intersect(&*self.batch.writes[number as usize].selection(spec)?)?;
            if common.len() == whole.len() {
                // Nothing below it is seen.
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
            pair(common, &*write.selection(spec)?, whole, &spec.shape, |at, to, count| {
                let part = Part { offset: 0, len: count * size, request: *request, at: at * size };
                let to = (to * size) as usize;
                windows.copy(&part, &write.record, &mut packed[to..to + part.len as usize])
            })?;
        }
        Ok(())
    }
}
