//! The data plane on bytes that lie in the file as they are: arrays in one piece, and chunks without filters.

use super::coalescing::{Call, Groups, Limits};
use super::device::Device;
use super::direct_index::{DirectIndex, chunks_around};
use super::hdf5_chunks::renumbered;
use super::sieve::{Extent, Sieve};
use super::{CostModel, Request, one_piece, system_calls};
use crate::chunk_pieces::{Piece, for_each_piece};
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Result, dims};

/// Gaps up to this are moved over.
const GAP: u64 = 4 << 10;
/// Runs shorter than this are worth reading what lies between them, so that they are written in one call.
const SHORT: u64 = 1 << 10;

/// How the plane joins accesses.
fn limits(gap: u64) -> Limits {
    Limits { gap, bytes: 256 << 10, entries: 1024, runs_are_entries: false, long: u64::MAX }
}

/// What a transfer of an array of `shape` does with gaps.
fn call(request: Request<'_>, shape: &[u64], element: u64) -> Result<Call> {
    if !request.writes {
        return Ok(Call::Read);
    }
    if !request.whole {
        return Ok(Call::Change);
    }
    if request.selection.single_run(shape, element).is_some() {
        return Ok(Call::Write);
    }
    let rows = request.selection.runs(shape, element)?.into_rows().and_then(|mut rows| rows.next_row());
    let short = rows.is_some_and(|row| row.len < SHORT && row.count > 8 && row.stride - row.len < GAP);
    Ok(if short { Call::Change } else { Call::Write })
}

fn groups(call: Call, request: Request<'_>, device: &mut Device) -> Groups {
    let gap = if call == Call::Write { 0 } else { GAP };
    Groups::new(limits(gap), call, request.memory_run.is_some(), std::mem::take(device))
}

/// An array in one piece.
#[derive(Debug)]
pub(crate) struct DirectContiguous {
    grid: ChunkGrid,
    element: u64,
    allocated: bool,
    device: Device,
}

impl DirectContiguous {
    pub(crate) fn new(shape: &[u64], element: u64, made: bool) -> Result<Self> {
        Ok(Self { grid: one_piece(shape)?, element, allocated: !made, device: Device::default() })
    }
}

impl CostModel for DirectContiguous {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        if request.writes && !std::mem::replace(&mut self.allocated, true) {
            // It gets its place by a write of one element.
            counts.add(Count::WriteCalls, 1);
            counts.add(Count::WriteBytes, self.element);
            counts.add(Count::NewBytes, dims::byte_count(self.grid.shape(), self.element)?);
        }
        let call = call(request, self.grid.shape(), self.element)?;
        let mut groups = groups(call, request, &mut self.device);
        for_each_piece(request.selection, &self.grid, self.element, &mut |piece| {
            counts.add(Count::ChunkVisits, 1);
            for rows in &piece.rows {
                rows.split(request.memory_run).count_runs(counts);
                groups.add(rows, 0, counts);
            }
            Ok(())
        })?;
        self.device = groups.finish(counts);
        Ok(())
    }

    fn flush(&mut self, _: &mut Counts) {}

    fn close(&mut self, _: &mut Counts) {}

    fn resize(&mut self, shape: &[u64], _: &mut Counts) -> Result<()> {
        self.grid = one_piece(shape)?;
        Ok(())
    }
}

/// Chunks without filters.
#[derive(Debug)]
pub(crate) struct DirectChunks {
    grid: ChunkGrid,
    element: u64,
    chunk_bytes: u64,
    index: DirectIndex,
    device: Device,
}

impl DirectChunks {
    pub(crate) fn new(shape: &[u64], chunk: &[u64], element: u64, made: bool) -> Result<Self> {
        let grid = ChunkGrid::new(shape, chunk)?;
        let index = DirectIndex::new(grid.len(), made);
        Ok(Self { grid, element, chunk_bytes: dims::byte_count(chunk, element)?, index, device: Device::default() })
    }

    /// Where a place is not known the whole call is left to libhdf5, which has neither cache nor sieve here.
    fn by_library(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let grid = self.grid.clone();
        let mut sieve = Sieve::new(0);
        sieve.device = std::mem::take(&mut self.device);
        for_each_piece(request.selection, &grid, self.element, &mut |piece| {
            counts.add(Count::ChunkVisits, 1);
            if !self.index.stored.contains(piece.chunk) {
                if request.writes {
                    self.make(piece, request, counts);
                }
                return Ok(());
            }
            let extent = Extent { begin: piece.chunk.saturating_mul(self.chunk_bytes), bytes: self.chunk_bytes };
            for rows in &piece.rows {
                let rows = rows.split(request.memory_run);
                rows.count_runs(counts);
                sieve.access(&rows, extent, request.writes, counts);
            }
            if request.writes {
                self.index.note_written(piece.chunk);
            }
            Ok(())
        })?;
        self.device = sieve.device;
        Ok(())
    }

    /// A chunk that is new is handed to libhdf5 whole.
    fn make(&mut self, piece: &Piece, request: Request<'_>, counts: &mut Counts) {
        let bytes = piece.elements * self.element;
        let in_memory = request.whole && request.memory_run.is_none() && piece.runs() == 1 && bytes == self.chunk_bytes;
        if !in_memory {
            counts.add(Count::CopiedBytes, bytes);
            if bytes < self.chunk_bytes {
                counts.add(Count::ClearedBytes, self.chunk_bytes);
            }
        }
        counts.add(Count::WriteCalls, system_calls(1, self.chunk_bytes));
        counts.add(Count::WriteBytes, self.chunk_bytes);
        counts.add(Count::NewBytes, self.chunk_bytes);
        self.index.note_written(piece.chunk);
    }
}

impl CostModel for DirectChunks {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let grid = self.grid.clone();
        self.index.prepare(chunks_around(request.selection, &grid), counts);
        let call = call(request, grid.shape(), self.element)?;
        let mut groups = groups(call, request, &mut self.device);
        let mut refused = false;
        for_each_piece(request.selection, &grid, self.element, &mut |piece| {
            if refused {
                return Ok(());
            }
            counts.add(Count::ChunkVisits, 1);
            let there = self.index.stored.contains(piece.chunk);
            if there && self.index.is_somewhere(piece.chunk) {
                self.index.note_missed();
                refused = true;
                return Ok(());
            }
            for rows in &piece.rows {
                let rows = rows.split(request.memory_run);
                rows.count_runs(counts);
                if there {
                    groups.add(&rows, piece.chunk.saturating_mul(self.chunk_bytes), counts);
                }
            }
            match (there, request.writes) {
                (false, true) => self.make(piece, request, counts),
                (false, false) => counts.add(Count::CopiedBytes, piece.elements.saturating_mul(self.element)),
                _ => {}
            }
            Ok(())
        })?;
        if refused {
            // What was grouped so far is not asked for.
            self.device = groups.finish(&mut Counts::default());
            return self.by_library(request, counts);
        }
        self.device = groups.finish(counts);
        Ok(())
    }

    fn flush(&mut self, _: &mut Counts) {}

    fn close(&mut self, _: &mut Counts) {
        self.index.forget();
    }

    fn resize(&mut self, shape: &[u64], _: &mut Counts) -> Result<()> {
        let grid = ChunkGrid::new(shape, self.grid.chunk())?;
        self.index.resized(renumbered(&self.index.stored, &self.grid, &grid), grid.len());
        self.grid = grid;
        Ok(())
    }
}
