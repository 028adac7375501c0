//! Draining: assembling pending writes into few large writes.

use super::pending_writes::{PendingWrite, PendingWrites};
use super::read_windows::ReadWindows;
use super::reorder::{Counts, Entry, ExtentPart, ReorderLimits, Requests, Write, reorder, selection_of};
use crate::background::{Buffer, Pool, StagedWrite};
use hyperslab_core::{ArraySpec, Result, Selection, Slab};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of slabs of one write, each of which costs memory and time below.
const MOST_SLABS: usize = 1 << 14;

/// Passes the packed elements of pending writes to `each`, in rounds of at most `memory` bytes. Uses as much memory again
/// for partly needed writes.
pub(super) fn drain(
    batch: &PendingWrites,
    memory: u64,
    pool: &Arc<Pool>,
    each: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
) -> Result<Counts> {
    let limits = ReorderLimits { bytes: memory, ..ReorderLimits::default() };
    drain_some(batch, &mut batch.entries()?, &limits, pool, each)
}

/// Logged writes of one array.
pub(super) trait Source: Requests {
    fn spec(&self) -> &ArraySpec;
    fn write(&self, number: u32) -> &PendingWrite;
}

impl Source for PendingWrites {
    fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    fn write(&self, number: u32) -> &PendingWrite {
        &self.writes[number as usize]
    }
}

/// Passes writes within the limits on, in rounds of at most `limits.bytes` bytes.
pub(super) fn drain_some(
    source: &dyn Source,
    entries: &mut [Entry],
    limits: &ReorderLimits,
    pool: &Arc<Pool>,
    each: &mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
) -> Result<Counts> {
    let lengths = || entries.iter().map(|entry| source.write(entry.number()).record.len());
    let (all, longest) = lengths().fold((0, 0), |(all, longest): (u64, u64), len| (all + len, longest.max(len)));
    let len = usize::try_from(all.min(limits.bytes).max(longest)).unwrap_or(usize::MAX);
    let mut round = Round {
        source,
        buffer: pool.take(len, limits.bytes)?,
        used: 0,
        to_read: Vec::new(),
        run: None,
        slabs: Vec::new(),
        windows: ReadWindows::new(limits.bytes),
        each,
    };
    // Rounds of one group overlap and must not be combined.
    let mut reached = 0;
    let counts = reorder(entries, source, limits, &mut |write| match write {
        Write::Whole(number) => round.whole(number),
        Write::Extent(parts) => {
            if parts.first().is_some_and(|part| part.offset < reached) {
                round.end()?;
            }
            round.make_room(parts.iter().map(|part| part.len).sum())?;
            reached = parts.last().map_or(reached, |part| part.offset + part.len);
            parts.iter().try_for_each(|part| round.part(part))
        }
    })?;
    round.end()?;
    Ok(counts)
}

/// One round: what is written by one call.
struct Round<'a> {
    source: &'a dyn Source,
    buffer: Buffer,
    used: usize,
    /// Whole writes and their buffer offsets, increasing. Read at the end of the round, since those of one log are
    /// adjacent.
    to_read: Vec<(u32, Range<usize>)>,
    /// The last contiguous byte range of the array.
    run: Option<(u64, u64)>,
    slabs: Vec<Slab>,
    windows: ReadWindows,
    each: &'a mut dyn FnMut(&Selection, &[u8]) -> Result<()>,
}

impl Round<'_> {
    /// Adds a whole write that no other overlaps.
    fn whole(&mut self, number: u32) -> Result<()> {
        let write = self.source.write(number);
        let to = self.room(write.record.len())?;
        self.to_read.push((number, to));
        self.end_run()?;
        let selection = write.selection(self.source.spec())?;
        self.slabs.extend(selection.slabs().iter().cloned());
        Ok(())
    }

    /// Adds contiguous bytes of a write.
    fn part(&mut self, part: &ExtentPart) -> Result<()> {
        let to = self.room(part.len)?;
        let record = &self.source.write(part.request).record;
        match part.len == record.len() {
            true => self.to_read.push((part.request, to)),
            false => self.windows.copy(part, record, &mut self.buffer.as_mut()[to])?,
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

    /// Ends the round if `len` more bytes do not fit.
    fn make_room(&mut self, len: u64) -> Result<()> {
        let buffer = self.buffer.as_ref().len() as u64;
        if self.used as u64 + len > buffer && len <= buffer { self.end() } else { Ok(()) }
    }

    /// Allocates `len` bytes of the buffer.
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
        let spec = self.source.spec();
        self.slabs.extend_from_slice(selection_of(&spec.shape, spec.dtype.size(), from, to - from)?.slabs());
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let (source, mut rest, mut at) = (self.source, self.buffer.as_mut(), 0);
        let wanted = self.to_read.drain(..).map(|(number, to)| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(to.start - at);
            let (into, behind) = from.split_at_mut(to.len());
            (rest, at) = (behind, to.end);
            (&source.write(number).record, into)
        });
        StagedWrite::read_all(wanted)
    }

    /// Writes the round.
    fn end(&mut self) -> Result<()> {
        self.end_run()?;
        if self.slabs.is_empty() {
            return Ok(());
        }
        self.read()?;
        let selection = Selection::union(self.source.spec().shape.len(), self.slabs.drain(..))?;
        let packed = &self.buffer.as_ref()[..std::mem::take(&mut self.used)];
        (self.each)(&selection, packed)
    }
}
