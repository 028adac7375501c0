//! The contiguous byte ranges (runs) of a selection, lazily and in increasing order.

use crate::slab::Slab;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A contiguous range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Run {
    /// First byte.
    pub offset: u64,
    /// Number of bytes; never 0.
    pub len: u64,
}

impl Run {
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Runs of one slab. The innermost loop level is a regular row of runs, returned whole by [`SlabRuns::next_row`].
/// The last run of a row may be adjacent to the first of the next; [`Runs`] coalesces those.
#[derive(Debug, Clone)]
pub struct SlabRuns {
    /// Loop levels outside the row, slowest first, with their counters.
    levels: SmallVec<[Level; 3]>,
    row: Row,
    /// Offset of the next row; `None` when exhausted.
    next: Option<u64>,
    /// Runs of the current row already returned by `next`.
    taken: u64,
    /// Whether some row ends where the next begins.
    touching: bool,
}

/// `count` runs of `len` bytes, `stride` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// First byte of the first run.
    pub offset: u64,
    /// Bytes of each run.
    pub len: u64,
    /// Number of runs.
    pub count: u64,
    /// Bytes from the start of one run to the start of the next.
    pub stride: u64,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    count: u64,
    step: u64,
    at: u64,
}

impl SlabRuns {
    pub(crate) fn new(slab: &Slab, shape: &[u64], element: u64) -> Self {
        // From the fastest dimension outward, every range is a repetition of blocks of contiguous indices.
        // `len` is the contiguous length so far; levels that extend it are folded into it.
        let mut offset = 0;
        let mut len = element;
        let mut pitch = element;
        let mut levels: SmallVec<[Level; 3]> = SmallVec::new(); // fastest first
        for (range, &extent) in slab.ranges.iter().zip(shape).rev() {
            offset += range.start * pitch;
            for (count, step) in [(range.block, pitch), (range.count, range.stride * pitch)] {
                if count == 1 {
                    continue;
                }
                match levels.last_mut() {
                    None if step == len => len *= count,
                    Some(last) if step == last.step * last.count => last.count *= count,
                    _ => levels.push(Level { count, step, at: 0 }),
                }
            }
            pitch *= extent;
        }
        let row = if levels.is_empty() { Level { count: 1, step: len, at: 0 } } else { levels.remove(0) };
        let mut extent = (row.count - 1) * row.step + len;
        let mut touching = false;
        for level in &levels {
            touching |= level.step == extent;
            extent += (level.count - 1) * level.step;
        }
        levels.reverse();
        let row = Row { offset, len, count: row.count, stride: row.step };
        Self { levels, row, next: Some(offset), taken: 0, touching }
    }

    /// A single run; none when its length is 0.
    pub(crate) fn once(run: Run) -> Self {
        let row = Row { offset: run.offset, len: run.len, count: 1, stride: run.len };
        Self { levels: SmallVec::new(), row, next: (run.len > 0).then_some(run.offset), taken: 0, touching: false }
    }

    /// The next regular row of runs. Do not mix with `next`.
    pub fn next_row(&mut self) -> Option<Row> {
        let offset = self.next?;
        self.advance(offset);
        Some(Row { offset, ..self.row })
    }

    /// Seeks to byte `at` of the concatenated runs. Returns the rest of that byte's row, and how many bytes of its first run are
    /// before the byte. At or past the end, the row is empty.
    pub(crate) fn seek(&mut self, at: u64) -> (Row, u64) {
        let per_row = self.row.len * self.row.count;
        let (mut row, inside) = (at / per_row, at % per_row);
        let mut offset = self.row.offset;
        for level in self.levels.iter_mut().rev() {
            level.at = row % level.count;
            row /= level.count;
            offset += level.at * level.step;
        }
        self.taken = 0;
        if row > 0 {
            self.next = None;
            return (Row { count: 0, ..self.row }, 0);
        }
        self.advance(offset);
        let runs = inside / self.row.len;
        let first = offset + runs * self.row.stride;
        (Row { offset: first, count: self.row.count - runs, ..self.row }, inside % self.row.len)
    }

    fn advance(&mut self, offset: u64) {
        let mut offset = offset;
        for level in self.levels.iter_mut().rev() {
            level.at += 1;
            if level.at < level.count {
                self.next = Some(offset + level.step);
                return;
            }
            offset -= level.step * (level.count - 1);
            level.at = 0;
        }
        self.next = None;
    }
}

impl Iterator for SlabRuns {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let offset = self.next?;
        let run = Run { offset: offset + self.taken * self.row.stride, len: self.row.len };
        self.taken += 1;
        if self.taken == self.row.count {
            self.taken = 0;
            self.advance(offset);
        }
        Some(run)
    }
}

/// Runs of a selection, in increasing order and coalesced.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    source: Source<'a>,
    /// Lookahead, to coalesce adjacent runs.
    pending: Option<Run>,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    Empty,
    One(SlabRuns),
    Many {
        waiting: &'a [Slab],
        shape: SmallVec<[u64; 4]>,
        element: u64,
        /// Min-heap of the next run of each active slab: (offset, length, slot in `active`).
        heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
        active: Vec<SlabRuns>,
        /// Free slots of `active`.
        free: Vec<usize>,
        /// First byte of the first waiting slab.
        begins: u64,
    },
}

impl<'a> Runs<'a> {
    pub(crate) fn new(slabs: &'a [Slab], shape: &[u64], element: u64) -> Self {
        let source = match slabs {
            [] => Source::Empty,
            [slab] => Source::One(SlabRuns::new(slab, shape, element)),
            [first, ..] => Source::Many {
                waiting: slabs,
                shape: shape.into(),
                element,
                heap: BinaryHeap::new(),
                active: Vec::new(),
                free: Vec::new(),
                begins: first_offset(first, shape, element),
            },
        };
        Self { source, pending: None }
    }

    /// The bytes `0..len`.
    pub(crate) fn contiguous(len: u64) -> Self {
        Self { source: Source::One(SlabRuns::once(Run { offset: 0, len })), pending: None }
    }

    /// The next runs as a regular row: for a slab a whole row, for a union a single run. Do not mix with `next`.
    pub(crate) fn next_row(&mut self) -> Option<Row> {
        match &mut self.source {
            Source::One(runs) => runs.next_row(),
            _ => self.next().map(|run| Row { offset: run.offset, len: run.len, count: 1, stride: run.len }),
        }
    }

    /// The rows of a selection that is one slab, for random access; `None` for unions.
    pub(crate) fn rows_mut(&mut self) -> Option<&mut SlabRuns> {
        match &mut self.source {
            Source::One(runs) if self.pending.is_none() => Some(runs),
            _ => None,
        }
    }

    /// The rows of a selection that is one slab; `None` for unions.
    pub fn into_rows(self) -> Option<SlabRuns> {
        match self.source {
            Source::One(runs) if self.pending.is_none() => Some(runs),
            _ => None,
        }
    }
}

fn first_offset(slab: &Slab, shape: &[u64], element: u64) -> u64 {
    let linear = slab.ranges.iter().zip(shape).fold(0, |at, (range, extent)| at * extent + range.start);
    linear * element
}

impl Source<'_> {
    fn next(&mut self) -> Option<Run> {
        match self {
            Self::Empty => None,
            Self::One(runs) => runs.next(),
            Self::Many { waiting, shape, element, heap, active, free, begins } => {
                // Slabs are sorted by first element, so only those that begin before the earliest run matter.
                while let Some((slab, rest)) = waiting.split_first() {
                    if heap.peek().is_some_and(|Reverse((offset, ..))| offset < begins) {
                        break;
                    }
                    let mut runs = SlabRuns::new(slab, shape, *element);
                    if let Some(run) = runs.next() {
                        let place = match free.pop() {
                            Some(place) => {
                                active[place] = runs;
                                place
                            }
                            None => {
                                active.push(runs);
                                active.len() - 1
                            }
                        };
                        heap.push(Reverse((run.offset, run.len, place)));
                    }
                    *waiting = rest;
                    if let Some(next) = rest.first() {
                        *begins = first_offset(next, shape, *element);
                    }
                }
                let Reverse((offset, len, from)) = heap.pop()?;
                match active[from].next() {
                    Some(run) => heap.push(Reverse((run.offset, run.len, from))),
                    None => free.push(from),
                }
                Some(Run { offset, len })
            }
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if let Source::One(runs) = &mut self.source
            && !runs.touching
        {
            return runs.next();
        }
        let mut run = self.pending.take().or_else(|| self.source.next())?;
        while let Some(next) = self.source.next() {
            if next.offset != run.end() {
                self.pending = Some(next);
                break;
            }
            run.len += next.len;
        }
        Some(run)
    }
}

/// Zips two lists of runs over the same bytes, split at the boundaries of both: (offset in a, offset in b, length).
pub fn zip_runs(
    mut a: impl Iterator<Item = Run>,
    mut b: impl Iterator<Item = Run>,
) -> impl Iterator<Item = (u64, u64, u64)> {
    let (mut x, mut y) = (Run { offset: 0, len: 0 }, Run { offset: 0, len: 0 });
    std::iter::from_fn(move || {
        if x.len == 0 {
            x = a.next()?;
        }
        if y.len == 0 {
            y = b.next()?;
        }
        let len = x.len.min(y.len);
        let out = (x.offset, y.offset, len);
        x = Run { offset: x.offset + len, len: x.len - len };
        y = Run { offset: y.offset + len, len: y.len - len };
        Some(out)
    })
}
