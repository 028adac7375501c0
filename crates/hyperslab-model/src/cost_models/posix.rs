//! Raw files: every run is written by itself, small runs near each other are read as one.

use super::coalescing::{Call, Groups, Limits};
use super::device::Device;
use super::{CostModel, Request, one_piece};
use crate::chunk_pieces::for_each_piece;
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Result, dims};

/// Runs at least this long are read straight to where they belong.
const LONG: u64 = 64 << 10;
/// Gaps up to this are read over.
const GAP: u64 = 16 << 10;
/// Most runs taken out of one read.
const RUNS: u64 = 4096;

#[derive(Debug)]
pub(crate) struct PosixFile {
    grid: ChunkGrid,
    element: u64,
    buffer: u64,
    /// Bytes of the file that were never written, as far as that can be told from how much was.
    unwritten: u64,
    device: Device,
}

impl PosixFile {
    pub(crate) fn new(shape: &[u64], element: u64, buffer: u64) -> Result<Self> {
        let unwritten = dims::byte_count(shape, element)?;
        Ok(Self { grid: one_piece(shape)?, element, buffer, unwritten, device: Device::default() })
    }
}

impl CostModel for PosixFile {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let bytes = request.selection.len().saturating_mul(self.element);
        let scattered = request.memory_run.is_some();
        let (call, gap) = match (request.writes, request.whole) {
            (false, _) => (Call::Read, GAP),
            (true, true) => (Call::Write, 0),
            (true, false) => (Call::Change, GAP),
        };
        if request.writes {
            let new = bytes.min(self.unwritten);
            counts.add(Count::NewBytes, new);
            self.unwritten -= new;
        }
        let limits = if request.writes && request.whole {
            // Nothing is joined, not even runs that touch.
            Limits { gap, bytes: 0, entries: 1, runs_are_entries: true, long: 0 }
        } else {
            Limits { gap, bytes: self.buffer, entries: RUNS, runs_are_entries: true, long: LONG }
        };
        let mut groups = Groups::new(limits, call, false, std::mem::take(&mut self.device));
        if scattered {
            counts.add(Count::CopiedBytes, bytes);
        }
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
        let before = dims::byte_count(self.grid.shape(), self.element)?;
        let now = dims::byte_count(shape, self.element)?;
        self.unwritten = self.unwritten.saturating_add(now.saturating_sub(before));
        self.grid = one_piece(shape)?;
        Ok(())
    }
}
