//! Chunks without filters: each an array in one piece, at a place of its own.

use crate::control::Control;
use crate::grouping::{Grouping, WORTH_A_CALL};
use crate::index::Known;
use crate::memory::{Source, Target};
use crate::plain;
use crate::plane::Plane;
use crate::refusal::Refusal;
use hyperslab_core::{ChunkGrid, ChunkSubset, Result, Selection};
use std::ops::Range;

impl Plane {
    pub(crate) fn read_plain_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        selection: &Selection,
        mut target: Target<'_>,
    ) -> Result<Option<Refusal>> {
        self.prepare_index(grid, control, selection)?;
        let mut buffer = Vec::new();
        let mut reading = self.reading(&target, &mut buffer);
        let mut grouping = Grouping::new(WORTH_A_CALL, &mut reading);
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            match self.known(grid, &part)?.1 {
                Known::At(place) => plain::add_part(&mut grouping, &part, self.element, place.address)?,
                Known::Absent => plain::fill(&part, self.element, &mut target, &self.fill)?,
                Known::Somewhere(_) => {
                    self.state().index.note_missed();
                    return Ok(Some(Refusal::PlacesNotKnown));
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    pub(crate) fn write_plain_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
        keeping: bool,
    ) -> Result<Option<Refusal>> {
        self.prepare_index(grid, control, selection)?;
        let (mut buffer, mut new_chunk) = (Vec::new(), Vec::new());
        let mut writing = self.writing(&source, keeping, &mut buffer);
        let mut grouping = Grouping::new(if keeping { WORTH_A_CALL } else { 0 }, &mut writing);
        let mut elsewhere = source.clone();
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            let (number, mut known) = self.known(grid, &part)?;
            if known == Known::Absent {
                if !self.alone {
                    return Ok(Some(Refusal::OtherWriters));
                }
                // Another rank may be making the same chunk.
                let claim = self.claims.write(number);
                known = self.state().index.get(number);
                if known == Known::Absent {
                    self.make_chunk(grid, control, &part, &mut elsewhere, whole, &mut new_chunk)
                        .map_err(|error| self.mark(error, grid, number))?;
                    self.state().index.note_written(number, Some(0));
                    self.note_moved();
                    continue;
                }
                drop(claim);
            }
            match known {
                Known::At(place) => plain::add_part(&mut grouping, &part, self.element, place.address)?,
                _ => {
                    self.state().index.note_missed();
                    return Ok(Some(Refusal::PlacesNotKnown));
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    /// The number of a part's chunk, and what is known of it.
    pub(crate) fn known(&self, grid: &ChunkGrid, part: &ChunkSubset) -> Result<(u64, Known)> {
        let number = grid.linear(&part.chunk)?;
        Ok((number, self.state().index.get(number)))
    }

    /// Hands a chunk to the library that has no place yet.
    fn make_chunk(
        &self,
        grid: &ChunkGrid,
        control: &dyn Control,
        part: &ChunkSubset,
        source: &mut Source<'_>,
        whole: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let origin = grid.origin(&part.chunk)?;
        if whole && let Some(chunk) = self.chunk_in_memory(part, source)? {
            return control.write_chunk(&origin, chunk, 0);
        }
        self.assemble(part, source, whole, buffer)?;
        control.write_chunk(&origin, buffer, 0)
    }

    /// The bytes of a whole chunk, if they lie in memory as in the file.
    pub(crate) fn chunk_in_memory<'m>(&self, part: &ChunkSubset, source: &Source<'m>) -> Result<Option<&'m [u8]>> {
        let Some(packed) = source.as_packed() else { return Ok(None) };
        Ok(self.packed_chunk(part)?.and_then(|range| packed.get(range)))
    }

    /// Where among the packed elements a whole chunk is, if all of them lie there as in the file.
    pub(crate) fn packed_chunk(&self, part: &ChunkSubset) -> Result<Option<Range<usize>>> {
        let mut found = None;
        if part.covers_chunk {
            part.for_each_row(self.element, |chunk, memory| {
                // One row that is the chunk has no other beside it.
                let one = chunk.offset == 0
                    && chunk.len * chunk.count == self.chunk_bytes as u64
                    && (chunk.count == 1 || chunk.stride == chunk.len && memory.stride == memory.len);
                if one {
                    found = Some(memory.offset as usize..memory.offset as usize + self.chunk_bytes);
                }
            })?;
        }
        Ok(found)
    }

    /// A chunk that was never written, with the part's elements in it.
    pub(crate) fn assemble(
        &self,
        part: &ChunkSubset,
        source: &mut Source<'_>,
        whole: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if buffer.len() != self.chunk_bytes {
            *buffer = crate::file::buffer(self.chunk_bytes)?;
        }
        if !whole || part.within.len() * self.element < self.chunk_bytes as u64 {
            self.fill_chunk(buffer);
        }
        self.overlay(part, source, buffer)
    }

    /// Puts the part's elements over a chunk.
    pub(crate) fn overlay(&self, part: &ChunkSubset, source: &mut Source<'_>, chunk: &mut [u8]) -> Result<()> {
        plain::for_each_row(part, self.element, 0, &mut |pair| source.copy_to(pair.memory, chunk, pair.file))
    }

    /// Makes a buffer of chunk size what a chunk is that was never written.
    pub(crate) fn fill_chunk(&self, chunk: &mut [u8]) {
        if self.fill.iter().all(|byte| *byte == self.fill[0]) {
            return chunk.fill(self.fill[0]);
        }
        chunk.chunks_exact_mut(self.fill.len()).for_each(|element| element.copy_from_slice(&self.fill));
    }
}
