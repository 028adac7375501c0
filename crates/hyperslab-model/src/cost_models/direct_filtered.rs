//! The data plane on chunks with filters: coded whole, kept decoded where only a part is wanted.

use super::device::Device;
use super::direct_index::{DirectIndex, chunks_around};
use super::hdf5_chunks::renumbered;
use super::lru::Lru;
use super::{CostModel, Request, system_calls};
use crate::chunk_pieces::{Piece, for_each_piece};
use crate::configuration::{Codec, Libhdf5};
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Result, dims};

#[derive(Debug)]
pub(crate) struct DirectFiltered {
    grid: ChunkGrid,
    element: u64,
    chunk_bytes: u64,
    codecs: Vec<Codec>,
    cache: Lru,
    index: DirectIndex,
    device: Device,
}

impl DirectFiltered {
    pub(crate) fn new(
        library: &Libhdf5,
        shape: &[u64],
        chunk: &[u64],
        element: u64,
        codecs: Vec<Codec>,
        made: bool,
    ) -> Result<Self> {
        let grid = ChunkGrid::new(shape, chunk)?;
        let chunk_bytes = dims::byte_count(chunk, element)?;
        let index = DirectIndex::new(grid.len(), made);
        let cache = Lru::new(library.cache_bytes() / chunk_bytes.max(1));
        Ok(Self { grid, element, chunk_bytes, codecs, cache, index, device: Device::default() })
    }

    fn read(&mut self, chunk: u64, counts: &mut Counts) {
        if self.index.is_somewhere(chunk) {
            self.index.note_missed();
        }
        counts.add(Count::ReadCalls, system_calls(1, self.chunk_bytes));
        counts.add(Count::ReadBytes, self.chunk_bytes);
        self.device.read(chunk.saturating_mul(self.chunk_bytes), self.chunk_bytes, counts);
        Codec::decode(&self.codecs, self.chunk_bytes, counts);
    }

    fn store(&mut self, chunk: u64, counts: &mut Counts) {
        Codec::encode(&self.codecs, self.chunk_bytes, counts);
        counts.add(Count::WriteCalls, system_calls(1, self.chunk_bytes));
        counts.add(Count::WriteBytes, self.chunk_bytes);
        if self.index.note_written(chunk) {
            counts.add(Count::NewBytes, self.chunk_bytes);
        }
    }

    fn keep(&mut self, chunk: u64, changed: bool, counts: &mut Counts) {
        if let Some((gone, true)) = self.cache.put(chunk, changed) {
            self.store(gone, counts);
        }
    }

    fn piece(&mut self, piece: &Piece, request: Request<'_>, counts: &mut Counts) {
        let bytes = piece.elements.saturating_mul(self.element);
        counts.add(Count::ChunkVisits, 1);
        counts.add(Count::CopiedBytes, bytes);
        piece.count_runs(request.memory_run, counts);
        if request.writes && request.whole && piece.covers {
            self.cache.remove(piece.chunk);
            return self.store(piece.chunk, counts);
        }
        if self.cache.hit(piece.chunk, request.writes) {
            return counts.add(Count::CacheHits, 1);
        }
        match (self.index.stored.contains(piece.chunk), request.writes) {
            (true, _) => self.read(piece.chunk, counts),
            (false, true) => counts.add(Count::ClearedBytes, self.chunk_bytes),
            (false, false) => return,
        }
        if request.writes || !piece.covers {
            self.keep(piece.chunk, request.writes, counts);
        }
    }
}

impl CostModel for DirectFiltered {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let grid = self.grid.clone();
        self.index.prepare(chunks_around(request.selection, &grid), counts);
        let (element, mut first) = (self.element, !request.writes);
        for_each_piece(request.selection, &grid, element, &mut |piece| {
            if std::mem::replace(&mut first, false) && self.index.stored.contains(piece.chunk) {
                // The first access of a read asks whether it must wait for a device.
                counts.add(Count::ReadCalls, 1);
            }
            self.piece(piece, request, counts);
            Ok(())
        })
    }

    fn flush(&mut self, counts: &mut Counts) {
        for chunk in self.cache.flush() {
            self.store(chunk, counts);
        }
    }

    fn close(&mut self, counts: &mut Counts) {
        self.flush(counts);
        self.cache.clear();
        self.index.forget();
    }

    fn resize(&mut self, shape: &[u64], counts: &mut Counts) -> Result<()> {
        self.flush(counts);
        self.cache.clear();
        let grid = ChunkGrid::new(shape, self.grid.chunk())?;
        self.index.resized(renumbered(&self.index.stored, &self.grid, &grid), grid.len());
        self.grid = grid;
        Ok(())
    }
}
