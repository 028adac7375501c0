//! The variables of the published model of array libraries, counted by its algorithm: three sets (the library's cache, the
//! cache of the system, index blocks seen) and the last chunk read. Kept as what our own counts are compared with.
//!
//! `runs` and `copied_bytes` are its memory copies, `cache_hits` chunks found in the system's cache, `read_calls`,
//! `read_jumps` and `index_blocks` chunks, seeks and index blocks of reads, `write_calls` chunks written.

use super::lru::Lru;
use super::{CostModel, Request, one_piece};
use crate::chunk_bitmap::ChunkBitmap;
use crate::chunk_pieces::{Piece, for_each_piece};
use crate::configuration::{Configuration, Counting, Mechanism, Storage};
use crate::counts::{Count, Counts};
use hyperslab_core::storage::StoredLayout;
use hyperslab_core::{ArraySpec, ChunkGrid, Result, dims};

/// Chunks that an index block describes.
const CHUNKS_OF_AN_INDEX_BLOCK: u64 = 64;

#[derive(Debug)]
pub(crate) struct LiteratureModel {
    grid: ChunkGrid,
    element: u64,
    chunk_bytes: u64,
    /// Only HDF5 has a library's cache, seeks and an index.
    hdf5: bool,
    as_printed: bool,
    library: Lru,
    system: ChunkBitmap,
    stored: ChunkBitmap,
    index_blocks: ChunkBitmap,
    /// The chunk after the last one that was read from the file.
    next: u64,
}

impl LiteratureModel {
    pub(crate) fn new(configuration: &Configuration, storage: &Storage, spec: &ArraySpec, made: bool) -> Result<Self> {
        let element = spec.dtype.size();
        let grid = match &storage.layout {
            StoredLayout::Contiguous | StoredLayout::Compact => one_piece(&spec.shape)?,
            StoredLayout::Chunks(chunk) => ChunkGrid::new(&spec.shape, chunk)?,
            StoredLayout::Shards { file, .. } => ChunkGrid::new(&spec.shape, file)?,
        };
        let chunk_bytes = dims::byte_count(grid.chunk(), element)?;
        let kept = match &configuration.mechanism {
            Mechanism::ChunkedFile(library) => (library.cache_bytes() / chunk_bytes.max(1)).min(library.cache_slots()),
            _ => 0,
        };
        Ok(Self {
            grid,
            element,
            chunk_bytes,
            hdf5: matches!(configuration.mechanism, Mechanism::ChunkedFile(_)),
            as_printed: configuration.counting == Counting::PublishedAsPrinted,
            library: Lru::new(kept),
            system: ChunkBitmap::default(),
            stored: if made { ChunkBitmap::default() } else { ChunkBitmap::all() },
            index_blocks: ChunkBitmap::default(),
            next: 0,
        })
    }

    fn fetch(&mut self, chunk: u64, counts: &mut Counts) {
        if self.system.contains(chunk) {
            return counts.add(Count::CacheHits, 1);
        }
        counts.add(Count::ReadCalls, 1);
        counts.add(Count::ReadBytes, self.chunk_bytes);
        self.system.insert(chunk);
        let seeks = chunk != self.next;
        self.next = chunk + 1;
        if !self.hdf5 {
            return;
        }
        counts.add(Count::ReadJumps, u64::from(seeks));
        if (seeks || !self.as_printed) && self.index_blocks.insert(chunk / CHUNKS_OF_AN_INDEX_BLOCK) {
            counts.add(Count::IndexBlocks, 1);
        }
    }

    fn store(&mut self, chunk: u64, counts: &mut Counts) {
        counts.add(Count::WriteCalls, 1);
        counts.add(Count::WriteBytes, self.chunk_bytes);
        self.system.insert(chunk);
        if self.stored.insert(chunk) {
            counts.add(Count::NewBytes, self.chunk_bytes);
        }
    }

    fn piece(&mut self, piece: &Piece, request: Request<'_>, counts: &mut Counts) {
        counts.add(Count::Runs, piece.runs());
        counts.add(Count::CopiedBytes, piece.elements.saturating_mul(self.element));
        if self.library.hit(piece.chunk, request.writes) {
            return;
        }
        let replaces = request.writes && request.whole && piece.covers;
        if self.stored.contains(piece.chunk) && !replaces {
            self.fetch(piece.chunk, counts);
        }
        // Changed chunks are counted when they leave the cache, at the latest when the array is closed.
        if let Some((gone, true)) = self.library.put(piece.chunk, request.writes) {
            self.store(gone, counts);
        }
    }
}

impl CostModel for LiteratureModel {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        let (grid, element) = (self.grid.clone(), self.element);
        for_each_piece(request.selection, &grid, element, &mut |piece| {
            self.piece(piece, request, counts);
            Ok(())
        })
    }

    fn flush(&mut self, counts: &mut Counts) {
        for chunk in self.library.flush() {
            self.store(chunk, counts);
        }
    }

    fn close(&mut self, counts: &mut Counts) {
        self.flush(counts);
        self.library.clear();
    }

    fn resize(&mut self, shape: &[u64], counts: &mut Counts) -> Result<()> {
        self.close(counts);
        self.grid = ChunkGrid::new(shape, self.grid.chunk())?;
        Ok(())
    }
}
