//! Zarr: files of whole chunks, or of shards, read and replaced one by one. Nothing is kept between calls.

use super::device::Device;
use super::hdf5_chunks::renumbered;
use super::{CostModel, Request, beyond_caches, system_calls};
use crate::chunk_bitmap::ChunkBitmap;
use crate::chunk_pieces::{Piece, for_each_piece};
use crate::configuration::Codec;
use crate::counts::{Count, Counts};
use hyperslab_core::{ChunkGrid, Dims, Result, dims};
use std::collections::HashMap;

/// Bytes of an index entry of a shard.
const PAIR: u64 = 16;
/// As many files have their places together, in ext4.
const MOST_PASSED: u64 = 8192;
/// Bytes of the index's checksum.
const CHECKSUM: u64 = 4;

/// Calls that read a file of unknown length: 8 KiB first, then each twice as much; one more finds the end.
fn calls_to_the_end(bytes: u64) -> u64 {
    u64::from(64 - (bytes.div_ceil(8 << 10)).leading_zeros()) + 1
}

#[derive(Debug)]
pub(crate) struct ZarrFiles {
    /// Files.
    grid: ChunkGrid,
    element: u64,
    file_bytes: u64,
    /// What is inside a file, unless it is one chunk.
    shard: Option<Shard>,
    codecs: Vec<Codec>,
    directories: bool,
    files: ChunkBitmap,
    made_directories: ChunkBitmap,
    partial: Partial,
    device: Device,
    /// Files that were replaced.
    freed: u64,
}

/// Chunks inside a file.
#[derive(Debug)]
struct Shard {
    chunk: Dims,
    chunk_bytes: u64,
    chunks: u64,
}

impl Shard {
    fn index_bytes(&self) -> u64 {
        self.chunks * PAIR + CHECKSUM
    }

    /// Counts rows of chunks, each copied by itself between the chunk and the decoded shard.
    fn count_rows(&self, chunks: u64, file: &[u64], counts: &mut Counts) {
        // Dimensions that chunk and shard have in common are copied together, and so is the next one.
        let apart = (0..self.chunk.len()).rev().find(|&d| self.chunk[d] != file[d]).unwrap_or(0);
        let rows: u64 = self.chunk[..apart].iter().product();
        counts.add(Count::Runs, chunks.saturating_mul(rows));
    }

    /// Chunks that the box around a piece touches.
    fn touched(&self, piece: &Piece) -> u64 {
        let along = |(&(from, to), &chunk): (&(u64, u64), &u64)| to.div_ceil(chunk) - from / chunk;
        piece.bounds.iter().zip(&self.chunk).map(along).product()
    }

    /// Calls `visit` with the numbers of these chunks within the file.
    fn for_each_touched(&self, piece: &Piece, file: &[u64], mut visit: impl FnMut(u64)) {
        let along = |d: usize| piece.bounds[d].0 / self.chunk[d]..piece.bounds[d].1.div_ceil(self.chunk[d]);
        let mut at: Dims = (0..file.len()).map(|d| along(d).start).collect();
        loop {
            visit((0..file.len()).fold(0, |number, d| number * (file[d] / self.chunk[d]) + at[d]));
            let mut d = file.len();
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                at[d] += 1;
                if at[d] < along(d).end {
                    break;
                }
                at[d] = along(d).start;
            }
        }
    }
}

/// What is in shards that are not full.
#[derive(Debug, Default)]
struct Partial {
    /// How many chunks each has.
    counts: HashMap<u64, u64>,
    /// Which, numbered through all files.
    chunks: ChunkBitmap,
}

impl ZarrFiles {
    pub(crate) fn new(
        directories: bool,
        shape: &[u64],
        file: &[u64],
        chunk: Option<Dims>,
        element: u64,
        codecs: Vec<Codec>,
        made: bool,
    ) -> Result<Self> {
        let file: Dims = file.iter().map(|&extent| extent.max(1)).collect();
        let shard = chunk.map(|chunk| {
            let chunks = file.iter().zip(&chunk).map(|(file, chunk)| file / chunk).product();
            Ok(Shard { chunk_bytes: dims::byte_count(&chunk, element)?, chunk, chunks })
        });
        let known = || if made { ChunkBitmap::default() } else { ChunkBitmap::all() };
        Ok(Self {
            grid: ChunkGrid::new(shape, &file)?,
            element,
            file_bytes: dims::byte_count(&file, element)?,
            shard: shard.transpose()?,
            codecs,
            directories,
            files: known(),
            made_directories: known(),
            partial: Partial::default(),
            device: Device::default(),
            freed: 0,
        })
    }

    /// Reads what a piece needs of its file, or all of it.
    fn load(&mut self, piece: &Piece, all: bool, counts: &mut Counts) {
        counts.add(Count::FilesOpened, 1);
        counts.add(Count::ClearedBytes, self.file_bytes);
        counts.add(Count::LargeBytes, beyond_caches(self.file_bytes));
        if !self.files.contains(piece.chunk) {
            return;
        }
        // Files do not touch each other.
        let begin = piece.chunk.saturating_mul(self.file_bytes.saturating_add(1 << 20));
        if let Some(shard) = &self.shard {
            counts.add(Count::ReadCalls, 1);
            counts.add(Count::ReadBytes, shard.index_bytes());
            counts.add(Count::Checksummed, shard.index_bytes());
            self.device.read(begin, shard.index_bytes(), counts);
            let (bytes, device) = (shard.chunk_bytes, &mut self.device);
            shard.for_each_touched(piece, self.grid.chunk(), |number| {
                device.read(begin + shard.index_bytes() + number * bytes, bytes, counts);
            });
            if !all {
                self.decode(shard, shard.touched(piece), counts);
            }
        } else if self.codecs.is_empty() {
            let rows = self.grid.chunk().first().copied().unwrap_or(1);
            let (from, to) = piece.bounds.first().filter(|_| !all).copied().unwrap_or((0, rows));
            let bytes = self.file_bytes / rows * (to - from);
            counts.add(Count::ReadCalls, system_calls(1, bytes));
            counts.add(Count::ReadBytes, bytes);
            self.device.read(begin + self.file_bytes / rows * from, bytes, counts);
        } else {
            counts.add(Count::ReadCalls, calls_to_the_end(self.file_bytes));
            counts.add(Count::ReadBytes, self.file_bytes);
            self.device.read(begin, self.file_bytes, counts);
            Codec::decode(&self.codecs, self.file_bytes, counts);
        }
    }

    /// Reads and decodes chunks of a shard.
    fn decode(&self, shard: &Shard, chunks: u64, counts: &mut Counts) {
        let bytes = chunks * shard.chunk_bytes;
        shard.count_rows(chunks, self.grid.chunk(), counts);
        counts.add(Count::ReadCalls, chunks);
        counts.add(Count::ReadBytes, bytes);
        counts.add(Count::CopiedBytes, bytes);
        Codec::decode(&self.codecs, bytes, counts);
    }

    /// Replaces a file; of a shard `coded` chunks are coded, `stored` are in it then.
    fn store(&mut self, piece: &Piece, coded: u64, stored: u64, counts: &mut Counts) {
        counts.add(Count::FilesCreated, 1);
        counts.add(Count::FreedPassed, self.freed.min(MOST_PASSED));
        let bytes =
            self.shard.as_ref().map_or(self.file_bytes, |shard| stored * shard.chunk_bytes + shard.index_bytes());
        if self.files.insert(piece.chunk) {
            counts.add(Count::NewBytes, bytes);
        } else {
            counts.add(Count::FilesReplaced, 1);
            self.freed += 1;
        }
        counts.add(Count::WriteBytes, bytes);
        if self.directories && piece.at.len() > 1 {
            let last = self.grid.counts().last().copied().unwrap_or(1).max(1);
            if self.made_directories.insert(piece.chunk / last) {
                counts.add(Count::DirectoriesCreated, 1);
            }
        }
        match &self.shard {
            Some(shard) => {
                shard.count_rows(coded, self.grid.chunk(), counts);
                counts.add(Count::WriteCalls, 1 + stored);
                counts.add(Count::Checksummed, shard.index_bytes());
                counts.add(Count::CopiedBytes, 2 * coded * shard.chunk_bytes);
                Codec::encode(&self.codecs, coded * shard.chunk_bytes, counts);
            }
            None => {
                counts.add(Count::WriteCalls, system_calls(1, bytes));
                Codec::encode(&self.codecs, bytes, counts);
            }
        }
    }

    /// Changes a part of a file.
    fn merge(&mut self, piece: &Piece, counts: &mut Counts) {
        self.load(piece, true, counts);
        let Some(shard) = &self.shard else { return self.store(piece, 1, 1, counts) };
        let (chunks, touched) = (shard.chunks, shard.touched(piece));
        let full = self.files.contains(piece.chunk) && !self.partial.counts.contains_key(&piece.chunk);
        let before = if full { chunks } else { self.partial.counts.get(&piece.chunk).copied().unwrap_or(0) };
        let mut changed = touched;
        if !full {
            let inside = &mut self.partial.chunks;
            shard.for_each_touched(piece, self.grid.chunk(), |number| {
                changed -= u64::from(inside.insert(piece.chunk * chunks + number));
            });
        }
        self.decode(shard, changed, counts);
        let kept = before - changed.min(before);
        counts.add(Count::ReadCalls, kept);
        counts.add(Count::ReadBytes, kept * shard.chunk_bytes);
        let stored = kept + touched;
        if stored < chunks {
            self.partial.counts.insert(piece.chunk, stored);
        } else {
            self.partial.counts.remove(&piece.chunk);
        }
        self.store(piece, touched, stored, counts);
    }

    fn piece(&mut self, piece: &Piece, request: Request<'_>, only: bool, counts: &mut Counts) {
        let bytes = piece.elements.saturating_mul(self.element);
        counts.add(Count::ChunkVisits, 1);
        piece.count_runs(None, counts);
        let replaces = request.writes && request.whole && piece.covers;
        if !(replaces && only && bytes == self.file_bytes) {
            counts.add(Count::CopiedBytes, bytes);
        }
        if !request.writes {
            self.load(piece, false, counts);
        } else if replaces {
            if !(only && bytes == self.file_bytes) {
                counts.add(Count::ClearedBytes, self.file_bytes);
                counts.add(Count::LargeBytes, beyond_caches(self.file_bytes));
            }
            let chunks = self.shard.as_ref().map_or(1, |shard| shard.touched(piece));
            self.store(piece, chunks, chunks, counts);
        } else {
            self.merge(piece, counts);
        }
    }
}

impl CostModel for ZarrFiles {
    fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        if request.memory_run.is_some() {
            counts.add(Count::CopiedBytes, request.selection.len().saturating_mul(self.element));
        }
        let (grid, element) = (self.grid.clone(), self.element);
        let total = request.selection.len();
        for_each_piece(request.selection, &grid, element, &mut |piece| {
            self.piece(piece, request, piece.elements == total, counts);
            Ok(())
        })
    }

    fn flush(&mut self, _: &mut Counts) {}

    fn close(&mut self, _: &mut Counts) {}

    fn resize(&mut self, shape: &[u64], _: &mut Counts) -> Result<()> {
        let grid = ChunkGrid::new(shape, self.grid.chunk())?;
        self.files = renumbered(&self.files, &self.grid, &grid);
        self.made_directories = ChunkBitmap::default();
        self.partial = Partial::default();
        self.grid = grid;
        Ok(())
    }
}
