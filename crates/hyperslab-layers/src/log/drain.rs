//! From the log to few large writes.

use super::batch::Batch;
use super::reorder::{Counts, Limits, Part, Write, reorder, selection_of};
use super::windows::Windows;
use crate::background::{Buffer, Pool};
use hyperslab_core::{Result, Selection, Slab};
use std::sync::Arc;

/// Pieces of one write to the format below: each costs memory and time there.
const MOST_SLABS: usize = 1 << 14;

/// Hands the writes of a batch on, in rounds of at most `memory` bytes: elements, packed. As much memory again is used for
/// writes of which only parts are needed at a time.
pub(super) fn drain(
    batch: &Batch,
    memory: u64,
    pool: &Arc<Pool>,
    each: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
) -> Result<Counts> {
    let mut entries = batch.entries()?;
    let longest = batch.writes.iter().map(|write| write.record.len()).max().unwrap_or(0);
    let len = usize::try_from(batch.bytes.min(memory).max(longest)).unwrap_or(usize::MAX);
    let mut round = Round {
        batch,
        buffer: pool.take(len, memory)?,
        used: 0,
        run: None,
        slabs: Vec::new(),
        windows: Windows::new(memory),
        each,
    };
    let limits = Limits { bytes: memory, ..Limits::default() };
    // Rounds of one group overlap, and must not be mixed.
    let mut reached = 0;
    let counts = reorder(&mut entries, batch, &limits, &mut |write| match write {
        Write::Whole(number) => round.whole(number),
        Write::Stretch(parts) => {
            if parts.first().is_some_and(|part| part.offset < reached) {
                round.end()?;
            }
            reached = parts.last().map_or(reached, |part| part.offset + part.len);
            parts.iter().try_for_each(|part| round.part(part))
        }
    })?;
    round.end()?;
    Ok(counts)
}

/// What is written together.
struct Round<'a> {
    batch: &'a Batch,
    buffer: Buffer,
    used: usize,
    /// The bytes of the array that were added last and follow each other.
    run: Option<(u64, u64)>,
    slabs: Vec<Slab>,
    windows: Windows,
    each: &'a mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
}

impl Round<'_> {
    /// All of a write that nothing else touches.
    fn whole(&mut self, number: u32) -> Result<()> {
        let write = &self.batch.writes[number as usize];
        let to = self.room(write.record.len())?;
        write.record.read_into(&mut self.buffer.as_mut()[to.clone()])?;
        self.end_run()?;
        let selection = write.selection(&self.batch.spec)?;
        self.slabs.extend(selection.slabs().iter().cloned());
        Ok(())
    }

    /// Contiguous bytes of a write.
    fn part(&mut self, part: &Part) -> Result<()> {
        let to = self.room(part.len)?;
        let record = &self.batch.writes[part.request as usize].record;
        let into = &mut self.buffer.as_mut()[to];
        match part.len == record.len() {
            true => record.read_into(into)?,
            false => self.windows.copy(part, record, into)?,
        }
        match &mut self.run {
            Some((_, end)) if *end == part.offset => *end += part.len,
            _ => {
                self.end_run()?;
                self.run = Some((part.offset, part.offset + part.len));
            }
        }
        Ok(())
    }

    /// Where `len` bytes more go.
    fn room(&mut self, len: u64) -> Result<std::ops::Range<usize>> {
        if self.used as u64 + len > self.buffer.as_ref().len() as u64 || self.slabs.len() >= MOST_SLABS {
            self.end()?;
        }
        let from = self.used;
        self.used += len as usize;
        Ok(from..self.used)
    }

    fn end_run(&mut self) -> Result<()> {
        let Some((from, to)) = self.run.take() else { return Ok(()) };
        let spec = &self.batch.spec;
        self.slabs.extend_from_slice(selection_of(&spec.shape, spec.dtype.size(), from, to - from)?.slabs());
        Ok(())
    }

    /// Writes what was collected.
    fn end(&mut self) -> Result<()> {
        self.end_run()?;
        if self.slabs.is_empty() {
            return Ok(());
        }
        let selection = Selection::union(self.batch.spec.shape.len(), self.slabs.drain(..))?;
        let packed = &self.buffer.as_ref()[..std::mem::take(&mut self.used)];
        (self.each)(&selection, packed)
    }
}
