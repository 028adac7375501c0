//! Raw bytes between file and memory, for contiguous datasets and unfiltered chunks.

use crate::coalesce::{Coalescer, Group, Pair, Sink};
use crate::file;
use crate::late_writes::LateWrites;
use crate::memory::{Source, Target};
use crate::write_guard::WriteGuard;
use hyperslab_core::{ChunkSubset, Result, Row, Selection};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;

/// Tile size of long runs that are not packed in memory: a tile fits into a core's cache.
const TILE: u64 = 256 << 10;

/// Calls `each` with the rows of a selection of a dataset whose address is `base`.
pub(crate) fn for_each_run(
    selection: &Selection,
    shape: &[u64],
    element: u64,
    base: u64,
    each: &mut dyn FnMut(Pair) -> Result<()>,
) -> Result<()> {
    let mut packed = 0;
    let mut next = |mut file: Row| {
        file.offset += base;
        let memory = Row { offset: packed, stride: file.len, ..file };
        packed += file.len * file.count;
        each(Pair { file, memory })
    };
    let runs = selection.runs(shape, element)?;
    if selection.as_slab().is_none() {
        let mut runs = runs;
        return runs.try_for_each(|run| next(Row { offset: run.offset, len: run.len, count: 1, stride: run.len }));
    }
    let Some(mut rows) = runs.into_rows() else { return Ok(()) };
    while let Some(row) = rows.next_row() {
        next(row)?;
    }
    Ok(())
}

/// Calls `each` with the rows of a chunk subset whose chunk is at address `base`.
pub(crate) fn for_each_row(
    part: &ChunkSubset,
    element: u64,
    base: u64,
    each: &mut dyn FnMut(Pair) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    part.for_each_row(element, |mut file, memory| {
        if result.is_ok() {
            file.offset += base;
            result = each(Pair { file, memory });
        }
    })?;
    result
}

/// Sink that reads groups into memory.
pub(crate) struct GroupReader<'a, 'm> {
    pub(crate) file: &'a File,
    pub(crate) target: Target<'m>,
    pub(crate) element: u64,
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) ahead: Readahead,
}

/// State of readahead: groups are queued while the kernel prefetches them, so that the device has several requests in
/// flight.
#[derive(Debug, Default)]
pub(crate) struct Readahead {
    residency: Residency,
    /// The last group, which the next one may be merged into.
    held: Option<Group>,
    /// The range of the group before it.
    last: Option<Range<u64>>,
    /// Groups whose prefetch was requested.
    waiting: VecDeque<Group>,
}

/// Fills a buffer from an offset of a file. `false`: it would have blocked, and the buffer is unspecified.
type ReadFn<'a> = dyn FnMut(&File, &mut [u8], u64) -> Result<bool> + 'a;

/// Whether reads are served from memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Residency {
    /// All reads so far hit the page cache.
    #[default]
    PageCache,
    /// A read would have waited for the device.
    Device,
    /// The file system does not support non-blocking reads.
    Unknown,
}

/// Maximum number of queued groups.
const AHEAD: usize = 32;
/// Break-even gap on a device.
const COLD_GAP: u64 = 16 << 10;
/// Size and row limits of groups merged on a device. Longer ones trigger the kernel's own readahead.
const COLD_BYTES: u64 = 256 << 10;
const COLD_ROWS: usize = 4096;
/// The kernel detects a sequential read if the next byte is in the same or the next page. After a long range it pays to
/// read a gap of up to this fraction of the range, so that the kernel's readahead continues.
const PAGE: u64 = 4096;
const NOT_FAR: u64 = 8;

/// Whether the kernel's own readahead covers `next`, which is faster than explicit prefetch.
fn reads_on(before: &Range<u64>, next: u64) -> bool {
    next >= before.end && next - before.end <= PAGE.max((before.end - before.start) / NOT_FAR)
}

/// Whether two groups on a device are merged into one read.
fn joins(before: &Group, next: &Group) -> bool {
    next.start >= before.end
        && next.start - before.end <= COLD_GAP
        && next.end - before.start <= COLD_BYTES
        && before.pairs.len() + next.pairs.len() <= COLD_ROWS
}

/// Sink that writes groups from memory.
pub(crate) struct GroupWriter<'a, 'm> {
    pub(crate) file: &'a File,
    pub(crate) guard: Option<&'a dyn WriteGuard>,
    pub(crate) source: Source<'m>,
    pub(crate) element: u64,
    /// Whether bytes that the source does not cover are read first. The caller excludes other writers.
    pub(crate) read_modify_write: bool,
    pub(crate) buffer: &'a mut Vec<u8>,
    /// Takes whole runs, unless they are guarded.
    pub(crate) late: LateWrites<'a, 'm>,
}

/// The run of a group that consists of a single one.
fn single(group: &Group) -> Option<Pair> {
    match group.pairs.as_slice() {
        [pair] if pair.file.count == 1 => Some(*pair),
        _ => None,
    }
}

fn sized(buffer: &mut Vec<u8>, bytes: u64) -> Result<&mut [u8]> {
    let bytes = bytes as usize;
    if buffer.len() < bytes {
        *buffer = file::buffer(bytes)?;
    }
    Ok(&mut buffer[..bytes])
}

/// Splits a run into tiles of whole elements.
fn tiles(pair: Pair, element: u64) -> impl Iterator<Item = Pair> {
    let tile = (TILE / element).max(1) * element;
    (0..pair.file.len.div_ceil(tile)).map(move |number| {
        let from = number * tile;
        let len = tile.min(pair.file.len - from);
        let of = |row: Row| Row { offset: row.offset + from, len, count: 1, stride: len };
        Pair { file: of(pair.file), memory: of(pair.memory) }
    })
}

/// A file row, relative to a buffer that begins at file offset `start`.
fn in_buffer(row: Row, start: u64) -> Row {
    Row { offset: row.offset - start, ..row }
}

impl Sink for GroupReader<'_, '_> {
    fn take(&mut self, group: &mut Group) -> Result<()> {
        if self.ahead.residency == Residency::PageCache && group.end - group.start <= COLD_BYTES {
            if self.read_if_cached(group)? {
                return Ok(());
            }
            self.ahead.residency = Residency::Device;
        }
        if self.ahead.residency != Residency::Device {
            return self.read(group);
        }
        match &mut self.ahead.held {
            Some(held) if joins(held, group) => {
                held.end = group.end;
                held.pairs.append(&mut group.pairs);
                Ok(())
            }
            held => {
                let next = group.start;
                let before = held.replace(std::mem::take(group));
                before.map_or(Ok(()), |before| self.read_from_device(before, Some(next)))
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        match self.ahead.held.take() {
            Some(held) => self.read_from_device(held, None).and_then(|()| self.read_waiting(0)),
            None => Ok(()),
        }
    }
}

impl GroupReader<'_, '_> {
    /// Reads a group now, or queues it for prefetch. `next`: the offset of the following group.
    fn read_from_device(&mut self, group: Group, next: Option<u64>) -> Result<()> {
        let range = group.start..group.end;
        let begins = self.ahead.waiting.is_empty() && next.is_none_or(|next| reads_on(&range, next));
        let before = self.ahead.last.replace(range);
        if let Some(before) = before.filter(|before| reads_on(before, group.start)) {
            self.read_waiting(0)?;
            // A skipped page would make the kernel classify the reads as random.
            if group.start / PAGE > before.end / PAGE + 1 {
                let between = sized(self.buffer, group.start - before.end)?;
                file::read(self.file, between, before.end)?;
            }
            return self.read(&group);
        }
        if begins {
            return self.read(&group);
        }
        file::will_need(self.file, group.start, group.end - group.start);
        self.ahead.waiting.push_back(group);
        self.read_waiting(AHEAD)
    }

    /// Reads queued groups until `left` remain.
    fn read_waiting(&mut self, left: usize) -> Result<()> {
        while self.ahead.waiting.len() > left
            && let Some(group) = self.ahead.waiting.pop_front()
        {
            self.read(&group)?;
        }
        Ok(())
    }

    fn read(&mut self, group: &Group) -> Result<()> {
        self.read_by(group, &mut |file, buffer, at| file::read(file, buffer, at).map(|()| true)).map(|_| ())
    }

    /// Reads a group if all of it is in the page cache; returns whether it was.
    fn read_if_cached(&mut self, group: &Group) -> Result<bool> {
        let mut told = true;
        let read = self.read_by(group, &mut |file, buffer, at| match file::read_cached(file, buffer, at) {
            Some(done) => Ok(done),
            None => {
                told = false;
                file::read(file, buffer, at).map(|()| true)
            }
        })?;
        if !told {
            self.ahead.residency = Residency::Unknown;
        }
        Ok(read)
    }

    /// Reads a group by `fill`. `false` if that returned `false`; memory may be filled partly then.
    fn read_by(&mut self, group: &Group, fill: &mut ReadFn<'_>) -> Result<bool> {
        if let Some(pair) = single(group) {
            if let Some(packed) = self.target.as_packed() {
                let range = pair.memory.offset as usize..(pair.memory.offset + pair.memory.len) as usize;
                // SAFETY: the range holds elements of this transfer, whose runs are disjoint.
                return fill(self.file, unsafe { packed.slice(range) }, pair.file.offset);
            }
            for tile in tiles(pair, self.element) {
                let buffer = sized(self.buffer, tile.file.len)?;
                if !fill(self.file, buffer, tile.file.offset)? {
                    return Ok(false);
                }
                // SAFETY: as above.
                unsafe { self.target.copy_from(tile.memory, buffer, in_buffer(tile.file, tile.file.offset)) }?;
            }
            return Ok(true);
        }
        let buffer = sized(self.buffer, group.end - group.start)?;
        if !fill(self.file, buffer, group.start)? {
            return Ok(false);
        }
        for pair in &group.pairs {
            // SAFETY: as above.
            unsafe { self.target.copy_from(pair.memory, buffer, in_buffer(pair.file, group.start)) }?;
        }
        Ok(true)
    }
}

impl GroupWriter<'_, '_> {
    fn write_tile(&mut self, start: u64, end: u64, pairs: &[Pair]) -> Result<()> {
        let buffer = sized(self.buffer, end - start)?;
        if self.read_modify_write {
            file::read(self.file, buffer, start)?;
        }
        for pair in pairs {
            self.source.copy_to(pair.memory, buffer, in_buffer(pair.file, start))?;
        }
        file::write(self.file, self.guard, buffer, start)
    }
}

impl Sink for GroupWriter<'_, '_> {
    fn take(&mut self, group: &mut Group) -> Result<()> {
        match single(group) {
            Some(pair) => match self.source.as_packed() {
                Some(packed) => {
                    let range = pair.memory.offset as usize..(pair.memory.offset + pair.memory.len) as usize;
                    match self.guard {
                        None => self.late.write(packed, range, pair.file.offset),
                        guard => file::write(self.file, guard, &packed[range], pair.file.offset),
                    }
                }
                None => tiles(pair, self.element)
                    .try_for_each(|tile| self.write_tile(tile.file.offset, tile.file.offset + tile.file.len, &[tile])),
            },
            None => self.write_tile(group.start, group.end, &group.pairs),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.late.finish()
    }
}

/// Writes the fill value to the memory of a chunk subset.
pub(crate) fn fill(part: &ChunkSubset, element: u64, target: &mut Target<'_>, value: &[u8]) -> Result<()> {
    let tile = (TILE / element).max(1) * element;
    let mut copies: Vec<u8> = Vec::new();
    for_each_row(part, element, 0, &mut |pair| {
        let piece = pair.memory.len.min(tile);
        if (copies.len() as u64) < piece {
            copies = value.repeat((piece / element) as usize);
        }
        let mut from = 0;
        while from < pair.memory.len {
            let len = piece.min(pair.memory.len - from);
            let memory = Row { offset: pair.memory.offset + from, len, ..pair.memory };
            // SAFETY: the chunk subsets of a transfer are disjoint.
            unsafe { target.copy_from(memory, &copies, Row { offset: 0, len, count: memory.count, stride: 0 }) }?;
            from += len;
        }
        Ok(())
    })
}

/// Adds the rows of a chunk subset to a coalescer.
pub(crate) fn add_part(grouping: &mut Coalescer<'_>, part: &ChunkSubset, element: u64, base: u64) -> Result<()> {
    for_each_row(part, element, base, &mut |pair| grouping.add(pair))
}
