//! Cursors: iterating over a rank's selection in storage order.

use super::storage_order::StorageOrder;
use hyperslab_core::{ChunkGrid, ChunkSubset, ChunkSubsets, Result, Row, Runs, Selection, SlabRuns};

/// A lazy cursor over the rows of a selection of an unchunked array. A clone continues from the same position.
#[derive(Debug, Clone)]
pub(super) struct RowCursor<'a> {
    source: Source<'a>,
    /// The rest of the current row; count 0 at the end.
    row: Row,
    /// Bytes of the first run of `row` already visited.
    used: u64,
    packed: u64,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    Regular(SlabRuns),
    Union(Runs<'a>),
}

impl<'a> RowCursor<'a> {
    pub fn new(selection: &'a Selection, order: &StorageOrder) -> Result<Self> {
        let runs = selection.runs(&order.shape, order.element)?;
        let source = runs.clone().into_rows().map_or(Source::Union(runs), Source::Regular);
        let mut walk = Self { source, row: Row { offset: 0, len: 0, count: 0, stride: 0 }, used: 0, packed: 0 };
        walk.refill();
        Ok(walk)
    }

    fn refill(&mut self) {
        let next = match &mut self.source {
            Source::Regular(rows) => rows.next_row(),
            Source::Union(runs) => {
                runs.next().map(|run| Row { offset: run.offset, len: run.len, count: 1, stride: run.len })
            }
        };
        self.row = next.unwrap_or(Row { count: 0, ..self.row });
    }

    /// The next byte in storage order, if there is one.
    pub fn peek(&self) -> Option<u64> {
        (self.row.count > 0).then_some(self.row.offset + self.used)
    }

    /// Number of bytes visited, which is the packed offset of the next byte.
    pub fn packed(&self) -> u64 {
        self.packed
    }

    /// The next row of regular runs before `end`, splitting a run that reaches beyond; contiguous in packed memory. `None`
    /// if nothing is left before `end`.
    pub fn next_before(&mut self, end: u64) -> Option<Row> {
        let at = self.peek()?;
        if at >= end {
            return None;
        }
        let (room, Row { len, count, stride, .. }) = (end - at, self.row);
        if self.used > 0 || room < len {
            let taken = (len - self.used).min(room);
            self.used += taken;
            self.packed += taken;
            if self.used == len {
                self.pass(1);
            }
            return Some(Row { offset: at, len: taken, count: 1, stride: taken });
        }
        let whole = if count == 1 { 1 } else { ((room - len) / stride + 1).min(count) };
        self.packed += len * whole;
        self.pass(whole);
        Some(Row { offset: at, len, count: whole, stride })
    }

    fn pass(&mut self, runs: u64) {
        self.used = 0;
        self.row.count -= runs;
        if self.row.count == 0 {
            self.refill();
        } else {
            self.row.offset += runs * self.row.stride;
        }
    }
}

/// A lazy cursor over the chunks of a selection of a chunked array. A clone continues from the same position.
#[derive(Debug, Clone)]
pub(super) struct ChunkCursor<'a> {
    grid: &'a ChunkGrid,
    frame_bytes: u64,
    parts: ChunkSubsets<'a>,
    next: Option<(u64, ChunkSubset)>,
}

impl<'a> ChunkCursor<'a> {
    pub fn new(selection: &'a Selection, grid: &'a ChunkGrid, frame_bytes: u64) -> Result<Self> {
        let mut walk = Self { grid, frame_bytes, parts: selection.split_by_chunk(grid)?, next: None };
        walk.refill()?;
        Ok(walk)
    }

    fn refill(&mut self) -> Result<()> {
        self.next = match self.parts.next().transpose()? {
            Some(part) => Some((self.grid.linear(&part.chunk)? * self.frame_bytes, part)),
            None => None,
        };
        Ok(())
    }

    /// Begin of the next chunk in storage order, if there is one.
    pub fn peek(&self) -> Option<u64> {
        self.next.as_ref().map(|(begin, _)| *begin)
    }

    /// The next chunk that begins before `end`, with its begin and selected subset. Ends after an error.
    pub fn next_before(&mut self, end: u64) -> Result<Option<(u64, ChunkSubset)>> {
        let Some(next) = self.next.take_if(|(begin, _)| *begin < end) else { return Ok(None) };
        self.refill()?;
        Ok(Some(next))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{ArraySpec, Datatype, Run, Slab};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_cut_anywhere_are_the_runs_of_the_selection(
            slabs in prop::collection::vec(((0u64..5, 0u64..9), (1u64..4, 1u64..4), (1u64..4, 1u64..4)), 0..4),
            step in 1u64..60,
        ) {
            let shape = [16, 20];
            let slabs = slabs.into_iter().filter_map(|(start, count, gap)| {
                let stride = [gap.0 + 1, gap.1 + 1];
                Slab::strided(&[start.0, start.1], &stride, &[count.0, count.1], &[1, 1]).unwrap()
            });
            let selection = Selection::union(2, slabs).unwrap();
            let order = StorageOrder::new(&ArraySpec::new(Datatype::Opaque(2), &shape)).unwrap().unwrap();
            let bytes = |run: Run| run.offset..run.end();
            let expected: Vec<u64> = selection.runs(&shape, 2).unwrap().flat_map(bytes).collect();
            let (mut walk, mut found, mut end) = (RowCursor::new(&selection, &order).unwrap(), Vec::new(), 0);
            while walk.peek().is_some() {
                end += step;
                while let Some(row) = walk.next_before(end) {
                    for i in 0..row.count {
                        found.extend(bytes(Run { offset: row.offset + i * row.stride, len: row.len }));
                    }
                    prop_assert!(found.last().is_some_and(|last| *last < end));
                    prop_assert_eq!(walk.packed(), found.len() as u64);
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn chunks_come_in_order_and_once() {
        let selection = Selection::dense(&[1, 1], &[3, 4]).unwrap();
        let grid = ChunkGrid::new(&[4, 6], &[2, 4]).unwrap();
        let mut walk = ChunkCursor::new(&selection, &grid, 100).unwrap();
        let (mut begins, mut elements) = (Vec::new(), 0);
        for end in [150, 1000] {
            while let Some((begin, part)) = walk.next_before(end).unwrap() {
                begins.push((end, begin));
                elements += part.within.len();
            }
        }
        assert_eq!(begins, [(150, 0), (150, 100), (1000, 200), (1000, 300)]);
        assert_eq!((elements, walk.peek()), (12, None));
    }
}
