//! Unfiltered chunks: each is a contiguous byte range at its own address.

use crate::chunk_index::ChunkState;
use crate::coalesce::{Coalescer, WORTH_A_CALL};
use crate::direct_dataset::DirectDataset;
use crate::fallback::FallbackReason;
use crate::memory::{Source, Target};
use crate::metadata_backend::MetadataBackend;
use crate::raw_io;
use hyperslab_core::{ChunkGrid, ChunkSubset, Result, Selection};
use std::ops::Range;

impl DirectDataset {
    pub(crate) fn read_unfiltered_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        selection: &Selection,
        mut target: Target<'_>,
    ) -> Result<Option<FallbackReason>> {
        self.prepare_index(grid, control, selection)?;
        let mut buffer = Vec::new();
        let mut reading = self.reading(&target, &mut buffer);
        let mut grouping = Coalescer::new(WORTH_A_CALL, &mut reading);
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            match self.chunk_state(grid, &part)?.1 {
                ChunkState::At(place) => raw_io::add_part(&mut grouping, &part, self.element, place.address)?,
                ChunkState::Absent => raw_io::fill(&part, self.element, &mut target, &self.fill)?,
                ChunkState::AddressUnknown(_) => {
                    self.state().index.note_lookup_failed();
                    return Ok(Some(FallbackReason::ChunkAddressUnknown));
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    pub(crate) fn write_unfiltered_chunks(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
        selection: &Selection,
        source: Source<'_>,
        whole: bool,
        read_modify_write: bool,
    ) -> Result<Option<FallbackReason>> {
        self.prepare_index(grid, control, selection)?;
        let (mut buffer, mut new_chunk) = (Vec::new(), Vec::new());
        let mut writing = self.writing(&source, read_modify_write, &mut buffer);
        let mut grouping = Coalescer::new(if read_modify_write { WORTH_A_CALL } else { 0 }, &mut writing);
        let mut new_chunk_source = source.clone();
        for part in selection.split_by_chunk(grid)? {
            let part = part?;
            let (number, mut known) = self.chunk_state(grid, &part)?;
            if known == ChunkState::Absent {
                if !self.single_writer {
                    return Ok(Some(FallbackReason::OtherWriters));
                }
                // Another thread may be allocating the same chunk.
                let lock = self.locks.write(number);
                known = self.state().index.get(number);
                if known == ChunkState::Absent {
                    self.make_chunk(grid, control, &part, &mut new_chunk_source, whole, &mut new_chunk)
                        .map_err(|error| self.chunk_error(error, grid, number))?;
                    self.state().index.note_written(number, Some(0));
                    self.notify_relocated();
                    continue;
                }
                drop(lock);
            }
            match known {
                ChunkState::At(place) => raw_io::add_part(&mut grouping, &part, self.element, place.address)?,
                _ => {
                    self.state().index.note_lookup_failed();
                    return Ok(Some(FallbackReason::ChunkAddressUnknown));
                }
            }
        }
        grouping.finish().map(|()| None)
    }

    /// The number of a subset's chunk, and its state in the index.
    pub(crate) fn chunk_state(&self, grid: &ChunkGrid, part: &ChunkSubset) -> Result<(u64, ChunkState)> {
        let number = grid.linear(&part.chunk)?;
        Ok((number, self.state().index.get(number)))
    }

    /// Has the library allocate and store a new chunk.
    fn make_chunk(
        &self,
        grid: &ChunkGrid,
        control: &dyn MetadataBackend,
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

    /// The bytes of a complete chunk, if the caller's memory holds them as the file does.
    pub(crate) fn chunk_in_memory<'m>(&self, part: &ChunkSubset, source: &Source<'m>) -> Result<Option<&'m [u8]>> {
        let Some(packed) = source.as_packed() else { return Ok(None) };
        Ok(self.packed_chunk(part)?.and_then(|range| packed.get(range)))
    }

    /// The range of the packed elements that is a complete chunk, if it is contiguous there.
    pub(crate) fn packed_chunk(&self, part: &ChunkSubset) -> Result<Option<Range<usize>>> {
        let mut found = None;
        if part.covers_chunk {
            part.for_each_row(self.element, |chunk, memory| {
                // A single row that is the whole chunk.
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

    /// Builds a new chunk in `buffer`: fill values, overlaid with the subset's elements.
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

    /// Overlays a subset's elements on a chunk.
    pub(crate) fn overlay(&self, part: &ChunkSubset, source: &mut Source<'_>, chunk: &mut [u8]) -> Result<()> {
        raw_io::for_each_row(part, self.element, 0, &mut |pair| source.copy_to(pair.memory, chunk, pair.file))
    }

    /// Fills a chunk with the fill value.
    pub(crate) fn fill_chunk(&self, chunk: &mut [u8]) {
        if self.fill.iter().all(|byte| *byte == self.fill[0]) {
            return chunk.fill(self.fill[0]);
        }
        chunk.chunks_exact_mut(self.fill.len()).for_each(|element| element.copy_from_slice(&self.fill));
    }
}
