//! Chunked arrays, moved by libhdf5 through its chunk cache, or around it where chunks do not fit.

use super::chunk_cache::{ChunkCache, Evicted};
use super::device::Device;
use super::sieve::{Extent, Sieve};
use super::{CostModel, Request, system_calls};
use crate::chunk_bitmap::ChunkBitmap;
use crate::chunk_pieces::{Piece, for_each_piece};
use crate::configuration::{Codec, Libhdf5, LibraryVersion};
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Result, dims};

/// Chunks that a block of the index describes: a node of the tree has room for 64, and is left nine tenths full.
pub(crate) const CHUNKS_OF_AN_INDEX_BLOCK: u64 = 57;

#[derive(Debug)]
pub(crate) struct Hdf5Chunks {
    grid: ChunkGrid,
    element: u64,
    chunk_bytes: u64,
    codecs: Vec<Codec>,
    cache: ChunkCache,
    cache_limits: (u64, u64, f64),
    sieve: Sieve,
    stored: Stored,
    gone: Vec<Evicted>,
}

/// What is in the file.
#[derive(Debug)]
struct Stored {
    chunks: ChunkBitmap,
    index_blocks: ChunkBitmap,
    codecs: Vec<Codec>,
    chunk_bytes: u64,
    device: Device,
}

impl Stored {
    fn look_up(&mut self, chunk: u64, counts: &mut Counts) {
        if self.index_blocks.insert(chunk / CHUNKS_OF_AN_INDEX_BLOCK) {
            counts.add(Count::IndexBlocks, 1);
        }
    }

    fn read(&mut self, chunk: u64, counts: &mut Counts) {
        counts.add(Count::ReadCalls, system_calls(1, self.chunk_bytes));
        counts.add(Count::ReadBytes, self.chunk_bytes);
        self.device.read(chunk.saturating_mul(self.chunk_bytes), self.chunk_bytes, counts);
        Codec::decode(&self.codecs, self.chunk_bytes, counts);
    }

    fn write(&mut self, chunk: u64, counts: &mut Counts) {
        counts.add(Count::WriteCalls, system_calls(1, self.chunk_bytes));
        counts.add(Count::WriteBytes, self.chunk_bytes);
        Codec::encode(&self.codecs, self.chunk_bytes, counts);
        self.allocate(chunk, counts);
    }

    fn allocate(&mut self, chunk: u64, counts: &mut Counts) {
        if self.chunks.insert(chunk) {
            counts.add(Count::NewBytes, self.chunk_bytes);
        }
    }
}

impl Hdf5Chunks {
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
        let limits = (library.cache_bytes(), library.cache_slots(), library.cost.preemption);
        Ok(Self {
            cache: ChunkCache::new(&grid, chunk_bytes, limits.0, limits.1, limits.2),
            cache_limits: limits,
            // Before 2.0 runs of chunks that do not fit into the cache were moved one by one.
            sieve: Sieve::new(if library.version == LibraryVersion::V2 { library.cost.sieve } else { 0 }),
            stored: Stored {
                chunks: if made { ChunkBitmap::default() } else { ChunkBitmap::all() },
                index_blocks: ChunkBitmap::default(),
                codecs: codecs.clone(),
                chunk_bytes,
                device: Device::default(),
            },
            grid,
            element,
            chunk_bytes,
            codecs,
            gone: Vec::new(),
        })
    }

    fn piece(&mut self, piece: &Piece, request: Request<'_>, counts: &mut Counts) {
        let writes = request.writes;
        counts.add(Count::ChunkVisits, 1);
        let bytes = piece.elements * self.element;
        if self.cache.hit(piece.chunk, &piece.at, bytes, writes) {
            counts.add(Count::CacheHits, 1);
            return self.copy(piece, request, counts);
        }
        self.stored.look_up(piece.chunk, counts);
        let there = self.stored.chunks.contains(piece.chunk);
        if !there && !writes {
            // Fill values, straight to memory.
            return self.copy(piece, request, counts);
        }
        // A new chunk must be filled, so that it goes through memory even if it does not fit into the cache.
        if self.codecs.is_empty() && !self.cache.takes_chunks() && there {
            let extent = Extent { begin: piece.chunk.saturating_mul(self.chunk_bytes), bytes: self.chunk_bytes };
            for rows in &piece.rows {
                let rows = rows.split(request.memory_run);
                rows.count_runs(counts);
                self.sieve.access(&rows, extent, writes, counts);
            }
            return;
        }
        let replaces = writes && request.whole && bytes == self.chunk_bytes;
        if there && !replaces {
            self.stored.read(piece.chunk, counts);
        } else {
            counts.add(Count::ClearedBytes, self.chunk_bytes);
        }
        self.copy(piece, request, counts);
        if self.cache.takes_chunks() {
            self.cache.put(piece.chunk, &piece.at, bytes, writes, &mut self.gone);
            for evicted in self.gone.drain(..).filter(|evicted| evicted.dirty) {
                self.stored.write(evicted.chunk, counts);
            }
        } else if writes {
            self.stored.write(piece.chunk, counts);
        }
    }

    fn copy(&self, piece: &Piece, request: Request<'_>, counts: &mut Counts) {
        piece.count_runs(request.memory_run, counts);
        counts.add(Count::CopiedBytes, piece.elements.saturating_mul(self.element));
    }
}

impl CostModel for Hdf5Chunks {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let grid = self.grid.clone();
        let element = self.element;
        for_each_piece(request.selection, &grid, element, &mut |piece| {
            self.piece(piece, request, counts);
            Ok(())
        })?;
        // The window over chunks that are not cached lives as long as the call.
        self.sieve.reset(counts);
        Ok(())
    }

    fn flush(&mut self, counts: &mut Counts) {
        for chunk in self.cache.flush() {
            self.stored.write(chunk, counts);
        }
    }

    fn close(&mut self, counts: &mut Counts) {
        self.flush(counts);
        self.cache.clear();
        self.stored.index_blocks = ChunkBitmap::default();
    }

    fn resize(&mut self, shape: &[u64], counts: &mut Counts) -> Result<()> {
        self.flush(counts);
        let grid = ChunkGrid::new(shape, self.grid.chunk())?;
        self.stored.chunks = renumbered(&self.stored.chunks, &self.grid, &grid);
        let (bytes, slots, w0) = self.cache_limits;
        self.cache = ChunkCache::new(&grid, self.chunk_bytes, bytes, slots, w0);
        self.grid = grid;
        Ok(())
    }
}

/// The chunks that are there after a change of shape. Exact where the slowest dimension changes; otherwise numbers
/// change, and those that existed are taken to exist.
pub(crate) fn renumbered(chunks: &ChunkBitmap, before: &ChunkGrid, after: &ChunkGrid) -> ChunkBitmap {
    let same = before.counts().iter().skip(1).eq(after.counts().iter().skip(1));
    if same || chunks.len(before.len()) == 0 { chunks.clone().without_all(before.len()) } else { ChunkBitmap::all() }
}
