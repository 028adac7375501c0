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

/// Size of a window: it fits into a core's cache.
const WINDOW: u64 = 256 << 10;

/// The pieces of one chunk, a range of all pieces.
struct Share {
    chunk: u64,
    pieces: Range<usize>,
}

/// Pieces of a contiguous dataset.
fn undivided(runs: &[Run]) -> Vec<Piece> {
    let mut packed = 0;
    let piece = |run: &Run| {
        let piece = Piece { chunk: 0, within: run.offset, packed, len: run.len };
        packed += run.len;
        piece
    };
    runs.iter().map(piece).collect()
}

/// The row of the array that a run lies in, and where its first element is in the chunks.
#[derive(Default)]
struct ArrayRow {
    elements: Range<u64>,
    chunk: u64,
    within: u64,
}

impl ArrayRow {
    fn of(grid: &ChunkGrid, element: u64) -> Self {
        let (shape, chunk, counts) = (grid.shape(), grid.chunk(), grid.counts());
        let last = shape.len() - 1;
        let start = element - element % shape[last];
        let (mut rest, mut chunk_pitch, mut pitch) = (element / shape[last], counts[last], chunk[last]);
        let mut row = Self { elements: start..start + shape[last], chunk: 0, within: 0 };
        for d in (0..last).rev() {
            let index = rest % shape[d];
            rest /= shape[d];
            row.chunk += index / chunk[d] * chunk_pitch;
            row.within += index % chunk[d] * pitch;
            chunk_pitch *= counts[d];
            pitch *= chunk[d];
        }
        row
    }
}

/// The runs divided at the borders of chunks, sorted by chunk and position there.
fn divided(grid: &ChunkGrid, element: u64, runs: &[Run]) -> Vec<Piece> {
    let width = grid.chunk().last().copied().unwrap_or(1);
    let mut pieces = Vec::with_capacity(runs.len());
    let (mut packed, mut row) = (0, ArrayRow::default());
    for run in runs {
        let (mut at, mut left) = (run.offset / element, run.len / element);
        while left > 0 {
            if !row.elements.contains(&at) {
                row = ArrayRow::of(grid, at);
            }
            let column = at - row.elements.start;
            let (chunk, within) = (column / width, column % width);
            let take = left.min(row.elements.end - at).min(width - within);
            pieces.push(Piece {
                chunk: row.chunk + chunk,
                within: (row.within + within) * element,
                packed,
                len: take * element,
            });
            packed += take * element;
            (at, left) = (at + take, left - take);
        }
    }
    // Stable: of elements that are written twice, the last wins.
    if !runs.is_sorted_by_key(|run| run.offset) {
        pieces.sort_by_key(|piece| (piece.chunk, piece.within));
    } else if grid.len() <= 4 * pieces.len() as u64 {
        pieces = sorted_by_chunk(&pieces, grid.len() as usize);
    } else {
        pieces.sort_by_key(|piece| piece.chunk);
    }
    pieces
}

/// Counting sort by chunk; stable.
fn sorted_by_chunk(pieces: &[Piece], chunks: usize) -> Vec<Piece> {
    let mut next = vec![0; chunks + 1];
    pieces.iter().for_each(|piece| next[piece.chunk as usize + 1] += 1);
    (0..chunks).for_each(|chunk| next[chunk + 1] += next[chunk]);
    let mut sorted = vec![Piece { chunk: 0, within: 0, packed: 0, len: 0 }; pieces.len()];
    for piece in pieces {
        let place = &mut next[piece.chunk as usize];
        sorted[*place] = *piece;
        *place += 1;
    }
    sorted
}

/// Copies a run; the most common lengths by one load and store.
fn copy_run(from: &[u8], to: &mut [u8]) {
    match from.len() {
        4 => to[..4].copy_from_slice(&from[..4]),
        8 => to[..8].copy_from_slice(&from[..8]),
        _ => to.copy_from_slice(from),
    }
}

/// The first pieces that lie in increasing order with small gaps in so many bytes, and their range of bytes.
fn window(pieces: &[Piece]) -> (&[Piece], Range<u64>) {
    let start = pieces.first().map_or(0, |piece| piece.within);
    let (mut end, mut count) = (start, 0);
    for piece in pieces {
        let after = piece.within + piece.len;
        if piece.within < end || piece.within - end > WORTH_A_CALL || (count > 0 && after - start > WINDOW) {
            break;
        }
        (end, count) = (after, count + 1);
    }
    (&pieces[..count], start..end)
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
        let limit = dims::byte_count(shape, self.element)?;
        let (mut end, mut bytes) = (0, 0);
        let mut odd = 0;
        let power = self.element.is_power_of_two();
        for run in runs {
            let of = |bytes: u64| if power { bytes & (self.element - 1) } else { bytes % self.element };
            odd |= of(run.len) | of(run.offset);
            end = end.max(run.offset.saturating_add(run.len));
            bytes += run.len;
        }
        match odd == 0 && end <= limit {
            true => Ok(bytes / self.element),
            false => Err(Error::invalid("transfer", "a run lies outside of the array")),
        }
    }

    /// Reads pieces of raw bytes from `base`.
    fn read_raw_pieces(
        &self,
        base: u64,
        mut pieces: &[Piece],
        target: &Target<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        // While they are in the page cache.
        while let Some(packed) = target.as_packed()
            && !pieces.is_empty()
        {
            let (near, range) = window(pieces);
            let bytes = (range.end - range.start) as usize;
            if bytes as u64 > WINDOW {
                break;
            }
            if buffer.len() < bytes {
                *buffer = file::buffer(bytes)?;
            }
            let buffer = &mut buffer[..bytes];
            match file::read_cached(&self.file, buffer, base + range.start) {
                Some(true) => {}
                Some(false) => break,
                // The file system does not tell.
                None => file::read(&self.file, buffer, base + range.start)?,
            }
            for piece in near {
                let (from, len) = ((piece.within - range.start) as usize, piece.len as usize);
                let to = piece.packed as usize..piece.packed as usize + len;
                // SAFETY: pieces of a transfer are disjoint in memory.
                copy_run(&buffer[from..from + len], unsafe { packed.slice(to) });
            }
            pieces = &pieces[near.len()..];
        }
        let mut reading = self.reading(target, buffer);
        let mut grouping = Coalescer::new(WORTH_A_CALL, &mut reading);
        pieces.iter().try_for_each(|piece| grouping.add(piece.pair(base)))?;
        grouping.finish()
    }

    /// Writes pieces of raw bytes to `base`; `dense`: the bytes in between are read and written back.
    fn write_raw_pieces(
        &self,
        base: u64,
        mut pieces: &[Piece],
        source: &Source<'_>,
        dense: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        while let Some(packed) = source.as_packed().filter(|_| dense)
            && !pieces.is_empty()
        {
            let (near, range) = window(pieces);
            let bytes = (range.end - range.start) as usize;
            if bytes as u64 > WINDOW {
                break;
            }
            if buffer.len() < bytes {
                *buffer = file::buffer(bytes)?;
            }
            let buffer = &mut buffer[..bytes];
            file::read(&self.file, buffer, base + range.start)?;
            for piece in near {
                let (to, len) = ((piece.within - range.start) as usize, piece.len as usize);
                let from = piece.packed as usize..piece.packed as usize + len;
                copy_run(&packed[from], &mut buffer[to..to + len]);
            }
            file::write(&self.file, self.guard(), buffer, base + range.start)?;
            pieces = &pieces[near.len()..];
        }
        let mut writing = self.writing(source, dense, buffer);
        let mut grouping = Coalescer::new(if dense { WORTH_A_CALL } else { 0 }, &mut writing);
        pieces.iter().try_for_each(|piece| grouping.add(piece.pair(base)))?;
        grouping.finish()
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
            return self.read_raw_pieces(base, &undivided(runs), &target, &mut buffer).map(|()| None);
        };
        self.load_index_for(grid, control, runs.len() as u64)?;
        let pieces = divided(grid, self.element, runs);
        if !self.pipeline.is_plain() {
            return self.read_filtered_pieces(grid, control, &pieces, &target).map(|()| None);
        }
        for share in shares(&pieces) {
            let state = self.state().index.get(share.chunk);
            let pieces = &pieces[share.pieces];
            match state {
                ChunkState::At(place) => self.read_raw_pieces(place.address, pieces, &target, &mut buffer)?,
                ChunkState::Absent => pieces.iter().try_for_each(|piece| self.fill_piece(piece, &mut target))?,
                ChunkState::AddressUnknown(_) => {
                    self.state().index.note_lookup_failed();
                    return Ok(Some(FallbackReason::ChunkAddressUnknown));
                }
            }
        }
        Ok(None)
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
        let Some(grid) = &extent.grid else {
            let Some(base) = self.address(control, true)? else { return Ok(Some(FallbackReason::NotAllocated)) };
            return self.write_raw_pieces(base, &undivided(runs), &source, dense, &mut buffer).map(|()| None);
        };
        self.load_index_for(grid, control, runs.len() as u64)?;
        let pieces = divided(grid, self.element, runs);
        if !self.pipeline.is_plain() {
            return self.write_filtered_pieces(grid, control, &pieces, &mut source).map(|()| None);
        }
        let mut new_chunk = Vec::new();
        for share in shares(&pieces) {
            let state = self.state().index.get(share.chunk);
            let pieces = &pieces[share.pieces];
            match state {
                ChunkState::At(place) => {
                    self.write_raw_pieces(place.address, pieces, &source, dense, &mut buffer)?;
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
        Ok(None)
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
        let pieces = divided(&grid, 2, &[run(38, 2), run(3, 3), run(9, 2)]);
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
