//! Bytes that lie in the file as they are: arrays in one piece, and chunks without filters.

use crate::file;
use crate::grouping::{Group, Grouping, Pair, Sink};
use crate::guard::WriteGuard;
use crate::memory::{Source, Target};
use hyperslab_core::{ChunkSubset, Result, Row, Selection};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;

/// Long runs that are not packed in memory are moved in tiles of about this size, so that they stay in a core's cache.
const TILE: u64 = 256 << 10;

/// Calls `each` with the runs of a selection, at `base` and after in the file.
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

/// Calls `each` with the rows of a part whose chunk is at `base` in the file.
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

/// Reads groups into memory.
pub(crate) struct Reading<'a, 'm> {
    pub(crate) file: &'a File,
    pub(crate) target: Target<'m>,
    pub(crate) element: u64,
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) ahead: Ahead,
}

/// What is known of the file that is read, and groups that wait while the system reads them ahead, so that a device has several
/// requests at once.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    place: Place,
    /// The last group on a device, which the next may join.
    held: Option<Group>,
    /// Where the one before it was.
    last: Option<Range<u64>>,
    /// Those that the system was asked for.
    waiting: VecDeque<Group>,
}

/// Fills a buffer from a place in a file, or leaves it; whether it did.
type Filling<'a> = dyn FnMut(&File, &mut [u8], u64) -> Result<bool> + 'a;

/// Where the bytes are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the page cache, as far as was seen.
    #[default]
    Memory,
    /// On a device, at least some of them.
    Device,
    /// The system does not tell.
    Somewhere,
}

/// The most groups that wait.
const AHEAD: usize = 32;
/// Reading over a gap of this size takes a device less time than another request.
const COLD_GAP: u64 = 16 << 10;
/// The most bytes, and the most rows, of groups that are joined on a device. What is longer the system reads ahead by itself.
const COLD_BYTES: u64 = 256 << 10;
const COLD_ROWS: usize = 4096;
/// The system sees that a file is read on where the next byte is in the same or the next page. Behind a long piece, that is worth
/// reading what lies between: so many times less.
const PAGE: u64 = 4096;
const NOT_FAR: u64 = 8;

/// Whether the system reads what begins at `next` ahead by itself, and faster than it does what it is asked for.
fn reads_on(before: &Range<u64>, next: u64) -> bool {
    next >= before.end && next - before.end <= PAGE.max((before.end - before.start) / NOT_FAR)
}

/// Whether a group on a device is read together with the one before it.
fn joins(before: &Group, next: &Group) -> bool {
    next.start >= before.end
        && next.start - before.end <= COLD_GAP
        && next.end - before.start <= COLD_BYTES
        && before.pairs.len() + next.pairs.len() <= COLD_ROWS
}

/// Writes groups from memory.
pub(crate) struct Writing<'a, 'm> {
    pub(crate) file: &'a File,
    pub(crate) guard: Option<&'a dyn WriteGuard>,
    pub(crate) source: Source<'m>,
    pub(crate) element: u64,
    /// Bytes of the group that the source does not cover are read first. The caller keeps other writers away.
    pub(crate) keeping: bool,
    pub(crate) buffer: &'a mut Vec<u8>,
}

/// The run of a group that is nothing else.
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

/// Cuts a run into tiles of whole elements.
fn tiles(pair: Pair, element: u64) -> impl Iterator<Item = Pair> {
    let tile = (TILE / element).max(1) * element;
    (0..pair.file.len.div_ceil(tile)).map(move |number| {
        let from = number * tile;
        let len = tile.min(pair.file.len - from);
        let of = |row: Row| Row { offset: row.offset + from, len, count: 1, stride: len };
        Pair { file: of(pair.file), memory: of(pair.memory) }
    })
}

/// The row in a buffer that begins at `start` of the file.
fn in_buffer(row: Row, start: u64) -> Row {
    Row { offset: row.offset - start, ..row }
}

impl Sink for Reading<'_, '_> {
    fn take(&mut self, group: &mut Group) -> Result<()> {
        if self.ahead.place == Place::Memory && group.end - group.start <= COLD_BYTES {
            if self.read_if_cached(group)? {
                return Ok(());
            }
            self.ahead.place = Place::Device;
        }
        if self.ahead.place != Place::Device {
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

impl Reading<'_, '_> {
    /// Reads a group, at once or after the system was asked for others. `next`: where the one after it begins.
    fn read_from_device(&mut self, group: Group, next: Option<u64>) -> Result<()> {
        let range = group.start..group.end;
        let begins = self.ahead.waiting.is_empty() && next.is_none_or(|next| reads_on(&range, next));
        let before = self.ahead.last.replace(range);
        if let Some(before) = before.filter(|before| reads_on(before, group.start)) {
            self.read_waiting(0)?;
            // Of a page that is left out the system would think that the file is read here and there.
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

    /// Reads groups that wait until so many are left.
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

    /// Reads a group if it need not wait for a device. Whether it did.
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
            self.ahead.place = Place::Somewhere;
        }
        Ok(read)
    }

    /// Reads a group by a function that may leave it. Then the group is left unfinished.
    fn read_by(&mut self, group: &Group, fill: &mut Filling<'_>) -> Result<bool> {
        if let Some(pair) = single(group) {
            if let Some(packed) = self.target.as_packed() {
                let range = pair.memory.offset as usize..(pair.memory.offset + pair.memory.len) as usize;
                // SAFETY: these are elements of this transfer, and no two runs of it share any.
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

impl Writing<'_, '_> {
    fn write_tile(&mut self, start: u64, end: u64, pairs: &[Pair]) -> Result<()> {
        let buffer = sized(self.buffer, end - start)?;
        if self.keeping {
            file::read(self.file, buffer, start)?;
        }
        for pair in pairs {
            self.source.copy_to(pair.memory, buffer, in_buffer(pair.file, start))?;
        }
        file::write(self.file, self.guard, buffer, start)
    }
}

impl Sink for Writing<'_, '_> {
    fn take(&mut self, group: &mut Group) -> Result<()> {
        match single(group) {
            Some(pair) => match self.source.as_packed() {
                Some(packed) => {
                    let range = pair.memory.offset as usize..(pair.memory.offset + pair.memory.len) as usize;
                    file::write(self.file, self.guard, &packed[range], pair.file.offset)
                }
                None => tiles(pair, self.element)
                    .try_for_each(|tile| self.write_tile(tile.file.offset, tile.file.offset + tile.file.len, &[tile])),
            },
            None => self.write_tile(group.start, group.end, &group.pairs),
        }
    }
}

/// Puts the fill value where a part of a chunk that was never written goes.
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
            // SAFETY: elements of this transfer, which no other part shares.
            unsafe { target.copy_from(memory, &copies, Row { offset: 0, len, count: memory.count, stride: 0 }) }?;
            from += len;
        }
        Ok(())
    })
}

/// Adds the rows of a part to a grouping.
pub(crate) fn add_part(grouping: &mut Grouping<'_>, part: &ChunkSubset, element: u64, base: u64) -> Result<()> {
    for_each_row(part, element, base, &mut |pair| grouping.add(pair))
}
