//! Arrays in one piece, moved by libhdf5 through its sieve.

use super::sieve::{Extent, Sieve};
use super::{CostModel, Request, one_piece};
use crate::chunk_pieces::for_each_piece;
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Result, dims};

#[derive(Debug)]
pub(crate) struct Hdf5Contiguous {
    grid: ChunkGrid,
    element: u64,
    sieve: Sieve,
    /// It has its place in the file.
    allocated: bool,
}

impl Hdf5Contiguous {
    pub(crate) fn new(shape: &[u64], element: u64, sieve: u64, made: bool) -> Result<Self> {
        Ok(Self { grid: one_piece(shape)?, element, sieve: Sieve::new(sieve), allocated: !made })
    }

    fn bytes(&self) -> u64 {
        dims::byte_count(self.grid.shape(), self.element).unwrap_or(u64::MAX)
    }
}

impl CostModel for Hdf5Contiguous {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let (extent, allocated) = (Extent { begin: 0, bytes: self.bytes() }, self.allocated);
        if request.writes && !allocated {
            counts.add(Count::NewBytes, extent.bytes);
            self.allocated = true;
        }
        let (sieve, writes) = (&mut self.sieve, request.writes);
        for_each_piece(request.selection, &self.grid, self.element, &mut |piece| {
            counts.add(Count::ChunkVisits, 1);
            for rows in &piece.rows {
                let rows = rows.split(request.memory_run);
                rows.count_runs(counts);
                if writes || allocated {
                    sieve.access(&rows, extent, writes, counts);
                }
            }
            Ok(())
        })
    }

    fn flush(&mut self, counts: &mut Counts) {
        self.sieve.flush(counts);
    }

    fn close(&mut self, counts: &mut Counts) {
        self.sieve.reset(counts);
    }

    fn resize(&mut self, shape: &[u64], _: &mut Counts) -> Result<()> {
        self.grid = one_piece(shape)?;
        Ok(())
    }
}
