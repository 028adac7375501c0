//! Transfers of many small pieces, given as byte runs: sorted by chunk, and coalesced into few large calls.

use crate::chunk_index::ChunkState;
use crate::coalesce::{Coalescer, Pair, WORTH_A_CALL};
use crate::contiguous::SHORT;
use crate::direct_dataset::DirectDataset;
use crate::fallback::FallbackReason;
use crate::file;
use crate::filtered_chunks::WorkerScratch;
use crate::memory::{Source, Target, Types};
use crate::metadata_backend::MetadataBackend;
use crate::workers::{FirstError, with_workers};
use hyperslab_core::{ChunkGrid, Datatype, Error, ErrorKind, MemoryView, MemoryViewMut, Result, Row, Run, dims};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Part of a run within one chunk.
#[derive(Debug, Clone, Copy)]
struct Piece {
    chunk: u64,
    /// First byte in the chunk.
    within: u64,
    /// First byte in the packed elements, in the file's type.
    packed: u64,
    len: u64,
}

impl Piece {
    fn pair(&self, base: u64) -> Pair {
        Pair { file: row(base + self.within, self.len), memory: row(self.packed, self.len) }
    }
}

fn row(offset: u64, len: u64) -> Row {
    Row { offset, len, count: 1, stride: len }
}

/// The pieces of one chunk, a range of all pieces.
struct Share {
    chunk: u64,
    pieces: Range<usize>,
}

/// The runs divided at the borders of chunks, sorted by chunk and position there.
fn pieces_of(grid: &ChunkGrid, element: u64, runs: &[Run]) -> Vec<Piece> {
    let (shape, chunk, counts) = (grid.shape(), grid.chunk(), grid.counts());
    let mut pieces = Vec::with_capacity(runs.len());
    let mut packed = 0;
    for run in runs {
        let (mut at, mut left) = (run.offset / element, run.len / element);
        while left > 0 {
            let (mut rest, mut number, mut within) = (at, 0, 0);
            let (mut chunk_pitch, mut pitch, mut take) = (1, 1, left);
            for d in (0..shape.len()).rev() {
                let index = rest % shape[d];
                rest /= shape[d];
                if d + 1 == shape.len() {
                    take = left.min(shape[d] - index).min(chunk[d] - index % chunk[d]);
                }
                number += index / chunk[d] * chunk_pitch;
                within += index % chunk[d] * pitch;
                chunk_pitch *= counts[d];
                pitch *= chunk[d];
            }
            pieces.push(Piece { chunk: number, within: within * element, packed, len: take * element });
            packed += take * element;
            (at, left) = (at + take, left - take);
        }
    }
    // Stable: of elements that are written twice, the last wins.
    pieces.sort_by_key(|piece| (piece.chunk, piece.within));
    pieces
}

fn shares(pieces: &[Piece]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match shares.last_mut() {
            Some(share) if share.chunk == piece.chunk => share.pieces.end = at + 1,
            _ => shares.push(Share { chunk: piece.chunk, pieces: at..at + 1 }),
        }
    }
    shares
}

/// Whether reading and writing back the bytes in between takes less than a call for each run.
fn is_dense(runs: &[Run]) -> bool {
    let bytes: u64 = runs.iter().map(|run| run.len).sum();
    let first = runs.iter().map(|run| run.offset).min().unwrap_or(0);
    let end = runs.iter().map(|run| run.offset + run.len).max().unwrap_or(0);
    let number = runs.len() as u64;
    number > 8 && bytes / number < SHORT && (end - first).saturating_sub(bytes) / number < WORTH_A_CALL
}

impl DirectDataset {
    /// The number of elements in the runs, which must be whole elements inside the dataset.
    fn elements_in(&self, shape: &[u64], runs: &[Run]) -> Result<u64> {
        let bytes = dims::byte_count(shape, self.element)?;
        let inside = |run: &Run| {
            run.len.is_multiple_of(self.element)
                && run.offset.is_multiple_of(self.element)
                && run.offset.checked_add(run.len).is_some_and(|end| end <= bytes)
        };
        match runs.iter().all(inside) {
            true => Ok(runs.iter().map(|run| run.len / self.element).sum()),
            false => Err(Error::invalid("transfer", "a run lies outside of the array")),
        }
    }

    /// As [`Self::read_as`] into packed memory, of the elements in `runs`: byte ranges of the dataset as one row-major array.
    pub fn read_runs(
        &self,
        control: &dyn MetadataBackend,
        runs: &[Run],
        memory: MemoryViewMut<'_>,
        dtype: &Datatype,
    ) -> Result<Option<FallbackReason>> {
        let extent = self.extent();
        let elements = self.elements_in(&extent.shape, runs)?;
        memory.check(dtype, elements)?;
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(false)? {
            Ok(conversion) => conversion,
            Err(reason) => return Ok(Some(reason)),
        };
        let view = MemoryViewMut { data: &mut *memory.data, layout: memory.layout };
        let Some(mut target) = Target::new(view, types, elements, conversion)? else {
            return Ok(Some(FallbackReason::ScatteredMemory));
        };
        let mut buffer = Vec::new();
        let Some(grid) = &extent.grid else {
            let Some(base) = self.address(control, false)? else { return Ok(Some(FallbackReason::NotAllocated)) };
            let mut reading = self.reading(&target, &mut buffer);
            let mut grouping = Coalescer::new(WORTH_A_CALL, &mut reading);
            let mut packed = 0;
            for run in runs {
                grouping.add(Pair { file: row(base + run.offset, run.len), memory: row(packed, run.len) })?;
                packed += run.len;
            }
            return grouping.finish().map(|()| None);
        };
        self.load_index_for(grid, control, runs.len() as u64)?;
        let pieces = pieces_of(grid, self.element, runs);
        if !self.pipeline.is_plain() {
            return self.read_filtered_pieces(grid, control, &pieces, &target).map(|()| None);
        }
        let mut reading = self.reading(&target, &mut buffer);
        let mut grouping = Coalescer::new(WORTH_A_CALL, &mut reading);
        for share in shares(&pieces) {
            let state = self.state().index.get(share.chunk);
            for piece in &pieces[share.pieces] {
                match state {
                    ChunkState::At(place) => grouping.add(piece.pair(place.address))?,
                    ChunkState::Absent => self.fill_piece(piece, &mut target)?,
                    ChunkState::AddressUnknown(_) => {
                        self.state().index.note_lookup_failed();
                        return Ok(Some(FallbackReason::ChunkAddressUnknown));
                    }
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    fn fill_piece(&self, piece: &Piece, target: &mut Target<'_>) -> Result<()> {
        let value = self.fill.repeat((piece.len / self.element) as usize);
        // SAFETY: pieces of a transfer are disjoint in memory.
        unsafe { target.copy_from(row(piece.packed, piece.len), &value, row(0, piece.len)) }
    }

    /// Loads the index if it was never loaded, or if that is cheaper than looking up `wanted` chunks.
    fn load_index_for(&self, grid: &ChunkGrid, control: &dyn MetadataBackend, wanted: u64) -> Result<()> {
        let mut state = self.state();
        if state.index.is_worth_loading(wanted.min(grid.len())) {
            state.index.load(control, grid)?;
        }
        Ok(())
    }

    fn read_filtered_pieces(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        pieces: &[Piece],
        target: &Target<'_>,
    ) -> Result<()> {
        let shares = shares(pieces);
        let (next, errors) = (AtomicUsize::new(0), FirstError::default());
        let deferred = Mutex::new(Vec::new());
        let drain = || {
            let (mut scratch, mut target) = (WorkerScratch::default(), target.clone());
            while !errors.is_set()
                && let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed))
            {
                match self.read_share(grid, None, share, pieces, &mut target, &mut scratch) {
                    Ok(true) => {}
                    Ok(false) => deferred.lock().unwrap_or_else(PoisonError::into_inner).push(share),
                    Err(error) => errors.note(error),
                }
            }
        };
        with_workers(&self.permits_for(shares.len() as u64), || &drain, drain)?;
        errors.into_result()?;
        let (mut scratch, mut target) = (WorkerScratch::default(), target.clone());
        for share in deferred.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.state().index.note_lookup_failed();
            self.read_share(grid, Some(control), share, pieces, &mut target, &mut scratch)?;
        }
        Ok(())
    }

    /// Reads the pieces of one chunk. `false`: it must be read through the library, and `control` is `None`.
    fn read_share(
        &self,
        grid: &ChunkGrid,
        control: Option<&dyn MetadataBackend>,
        share: &Share,
        pieces: &[Piece],
        target: &mut Target<'_>,
        scratch: &mut WorkerScratch,
    ) -> Result<bool> {
        let _lock = self.locks.read(share.chunk);
        let pieces = &pieces[share.pieces.clone()];
        let kept = self.state().cache.get(share.chunk);
        let chunk = match kept {
            Some(kept) => kept,
            None => match self.stored_chunk(grid, control, share.chunk, scratch)? {
                Stored::Absent => {
                    pieces.iter().try_for_each(|piece| self.fill_piece(piece, target))?;
                    return Ok(true);
                }
                Stored::NeedsLibrary => return Ok(false),
                Stored::Decoded(chunk) => {
                    let chunk = Arc::new(chunk);
                    self.state().cache.insert_clean(share.chunk, chunk.clone());
                    chunk
                }
            },
        };
        for piece in pieces {
            // SAFETY: pieces of a transfer are disjoint in memory.
            unsafe { target.copy_from(row(piece.packed, piece.len), &chunk, row(piece.within, piece.len)) }?;
        }
        Ok(true)
    }

    /// As [`Self::write_as`] from packed memory, of the elements in `runs`, as [`Self::read_runs`] takes them.
    pub fn write_runs(
        &self,
        control: &dyn MetadataBackend,
        runs: &[Run],
        memory: MemoryView<'_>,
        dtype: &Datatype,
    ) -> Result<Option<FallbackReason>> {
        if !self.single_writer {
            return Ok(Some(FallbackReason::OtherWriters));
        }
        let extent = self.extent_exclusive();
        let elements = self.elements_in(&extent.shape, runs)?;
        memory.check(dtype, elements)?;
        let types = Types { memory: dtype, file: &self.dtype };
        let conversion = match types.conversion(true)? {
            Ok(conversion) => conversion,
            Err(reason) => return Ok(Some(reason)),
        };
        let Some(mut source) = Source::new(memory, types, elements, conversion)? else {
            return Ok(Some(FallbackReason::ScatteredMemory));
        };
        let mut buffer = Vec::new();
        let dense = is_dense(runs);
        let gap = if dense { WORTH_A_CALL } else { 0 };
        let Some(grid) = &extent.grid else {
            let Some(base) = self.address(control, true)? else { return Ok(Some(FallbackReason::NotAllocated)) };
            let mut writing = self.writing(&source, dense, &mut buffer);
            let mut grouping = Coalescer::new(gap, &mut writing);
            let mut packed = 0;
            for run in runs {
                grouping.add(Pair { file: row(base + run.offset, run.len), memory: row(packed, run.len) })?;
                packed += run.len;
            }
            return grouping.finish().map(|()| None);
        };
        self.load_index_for(grid, control, runs.len() as u64)?;
        let pieces = pieces_of(grid, self.element, runs);
        if !self.pipeline.is_plain() {
            return self.write_filtered_pieces(grid, control, &pieces, &mut source).map(|()| None);
        }
        let mut writing = self.writing(&source, dense, &mut buffer);
        let mut grouping = Coalescer::new(gap, &mut writing);
        let mut new_chunk = Vec::new();
        for share in shares(&pieces) {
            let state = self.state().index.get(share.chunk);
            let pieces = &pieces[share.pieces];
            match state {
                ChunkState::At(place) => {
                    pieces.iter().try_for_each(|piece| grouping.add(piece.pair(place.address)))?;
                }
                ChunkState::Absent => {
                    if new_chunk.len() != self.chunk_bytes {
                        new_chunk = file::buffer(self.chunk_bytes)?;
                    }
                    self.fill_chunk(&mut new_chunk);
                    overlay(pieces, &mut source, &mut new_chunk)?;
                    let origin = grid.origin(&grid.coordinates(share.chunk)?)?;
                    control
                        .write_chunk(&origin, &new_chunk, 0)
                        .map_err(|error| self.chunk_error(error, grid, share.chunk))?;
                    self.state().index.note_written(share.chunk, Some(0));
                    self.notify_relocated();
                }
                ChunkState::AddressUnknown(_) => {
                    self.state().index.note_lookup_failed();
                    return Ok(Some(FallbackReason::ChunkAddressUnknown));
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    /// Changes chunks in the cache, where they stay dirty.
    fn write_filtered_pieces(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        pieces: &[Piece],
        source: &mut Source<'_>,
    ) -> Result<()> {
        let mut scratch = WorkerScratch::default();
        for share in shares(pieces) {
            let lock = self.locks.write(share.chunk);
            let mut chunk = match self.current_chunk(grid, share.chunk, &mut scratch)? {
                Some(chunk) => chunk,
                None => {
                    self.state().index.note_lookup_failed();
                    match self.stored_chunk(grid, Some(control), share.chunk, &mut scratch)? {
                        Stored::Decoded(chunk) => chunk,
                        Stored::Absent | Stored::NeedsLibrary => {
                            return Err(Error::new(ErrorKind::Io, "write", "a chunk has gone that was there"));
                        }
                    }
                }
            };
            let changed = overlay(&pieces[share.pieces], source, &mut chunk);
            self.state().cache.insert_dirty(share.chunk, chunk);
            drop(lock);
            changed?;
            self.evict(grid, control)?;
        }
        Ok(())
    }

    /// The stored content of a chunk, decoded.
    fn stored_chunk(
        &self,
        grid: &ChunkGrid,
        control: Option<&dyn MetadataBackend>,
        number: u64,
        scratch: &mut WorkerScratch,
    ) -> Result<Stored> {
        let known = self.state().index.get(number);
        let mask = match (known, control) {
            (ChunkState::Absent, _) => return Ok(Stored::Absent),
            (ChunkState::At(place), _) => self.load(place, &mut scratch.stored),
            (ChunkState::AddressUnknown(_), Some(control)) => {
                let origin = grid.origin(&grid.coordinates(number)?)?;
                control.read_chunk(&origin, self.pipeline.stored_limit(), &mut scratch.stored)
            }
            (ChunkState::AddressUnknown(_), None) => return Ok(Stored::NeedsLibrary),
        };
        let mask = mask.map_err(|error| self.chunk_error(error, grid, number))?;
        scratch.chunk = file::buffer(self.chunk_bytes)?;
        self.decode(grid, number, mask, scratch)?;
        Ok(Stored::Decoded(std::mem::take(&mut scratch.chunk)))
    }
}

/// A chunk as it is stored.
enum Stored {
    Decoded(Vec<u8>),
    /// Not allocated: it reads as fill values.
    Absent,
    /// It must be read through the library.
    NeedsLibrary,
}

/// Overlays pieces on the chunk that they lie in.
fn overlay(pieces: &[Piece], source: &mut Source<'_>, chunk: &mut [u8]) -> Result<()> {
    pieces
        .iter()
        .try_for_each(|piece| source.copy_to(row(piece.packed, piece.len), chunk, row(piece.within, piece.len)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_divided_at_chunks_and_sorted() {
        let grid = ChunkGrid::new(&[4, 10], &[2, 4]).unwrap();
        // Elements 38 and 39, then 3 to 5 and 9 to 10, of 2 bytes.
        let run = |first: u64, count: u64| Run { offset: first * 2, len: count * 2 };
        let pieces = pieces_of(&grid, 2, &[run(38, 2), run(3, 3), run(9, 2)]);
        let seen: Vec<_> = pieces.iter().map(|p| (p.chunk, p.within / 2, p.packed / 2, p.len / 2)).collect();
        assert_eq!(seen, [(0, 3, 2, 1), (0, 4, 6, 1), (1, 0, 3, 2), (2, 1, 5, 1), (5, 4, 0, 2)]);
        assert_eq!(shares(&pieces).len(), 4);
    }

    #[test]
    fn short_gaps_are_written_over_and_long_ones_are_not() {
        let every = |stride: u64| (0..100).map(|n| Run { offset: n * stride, len: 8 }).collect::<Vec<_>>();
        assert!(is_dense(&every(16)) && !is_dense(&every(1 << 20)) && !is_dense(&every(16)[..5]));
    }
}
