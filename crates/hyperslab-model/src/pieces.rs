//! What a transfer takes of every chunk that it touches: sizes and shapes, without listing elements.

mod along;
mod rows;

use crate::counts::Counts;
use along::Along;
use hyperslab_core::{ChunkGrid, Datatype, Dims, MemoryLayout, Result, Selection, Slab};
pub(crate) use rows::Rows;

/// What a transfer takes of one chunk.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Row-major number of the chunk.
    pub(crate) chunk: u64,
    /// Coordinates of the chunk in the grid.
    pub(crate) at: Dims,
    /// Elements taken.
    pub(crate) elements: u64,
    /// Whether that is every element of the chunk that lies in the array.
    pub(crate) covers: bool,
    /// Where the elements lie in the chunk, rising; one entry for each slab of a union.
    pub(crate) rows: Vec<Rows>,
    /// The smallest box around them: in each dimension the first index in the chunk and one past the last.
    pub(crate) bounds: Vec<(u64, u64)>,
}

impl Piece {
    /// Counts what is copied by itself, of memory in pieces of `memory_run`.
    pub(crate) fn count_runs(&self, memory_run: Option<u64>, counts: &mut Counts) {
        self.rows.iter().for_each(|rows| rows.split(memory_run).count_runs(counts));
    }

    /// Pieces that lie together in the chunk and in packed memory.
    pub(crate) fn runs(&self) -> u64 {
        self.rows.iter().map(Rows::runs).fold(0, u64::saturating_add)
    }
}

/// How long pieces of memory are that hold elements one after another; `None` if it is packed.
pub(crate) fn memory_run(layout: &MemoryLayout, dtype: &Datatype) -> Result<Option<u64>> {
    if layout.is_packed() {
        return Ok(None);
    }
    let plan = layout.plan(dtype)?;
    if !plan.is_identity() {
        // Each member by itself.
        return Ok(Some(plan.pieces.iter().map(|piece| piece.len).min().unwrap_or(plan.element)));
    }
    let Some(within) = &layout.within else { return Ok(None) };
    let Some(mut rows) = within.selection.runs(&within.shape, plan.element)?.into_rows() else {
        return Ok(Some(plan.element));
    };
    Ok(rows.next_row().filter(|row| row.len < within.selection.len() * plan.element).map(|row| row.len))
}

/// Calls `visit` with every chunk that the selection touches, row-major. The work is in proportion to the chunks, and to
/// the slabs of a union; elements do not matter.
pub(crate) fn for_each_piece(
    selection: &Selection,
    grid: &ChunkGrid,
    element: u64,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    selection.check_inside(grid.shape())?;
    match selection.slabs() {
        [] => Ok(()),
        [slab] => pieces_of_slab(slab, grid, element, visit),
        _ => pieces_of_union(selection, grid, element, visit),
    }
}

fn pieces_of_slab(
    slab: &Slab,
    grid: &ChunkGrid,
    element: u64,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let (ranges, chunk, rank) = (slab.ranges(), grid.chunk(), grid.rank());
    let packed = slab.counts();
    let mut along: Vec<Along> =
        (0..rank).map(|d| Along::in_chunk(&ranges[d], ranges[d].start() / chunk[d], chunk[d])).collect();
    let at: Dims = ranges.iter().zip(chunk).map(|(span, extent)| span.start() / extent).collect();
    let mut piece =
        Piece { chunk: 0, at, elements: 0, covers: false, rows: Vec::with_capacity(1), bounds: vec![(0, 1); rank] };
    loop {
        piece.chunk = piece.at.iter().zip(grid.counts()).fold(0, |number, (c, n)| number * n + c);
        piece.elements = along.iter().map(|a| a.count).product();
        piece.covers = (0..rank).all(|d| along[d].count == chunk[d].min(grid.shape()[d] - piece.at[d] * chunk[d]));
        piece.bounds.iter_mut().zip(&along).for_each(|(bounds, a)| *bounds = (a.first, a.end));
        piece.rows.clear();
        piece.rows.push(Rows::new(&along, chunk, &packed, element));
        visit(&piece)?;
        // The next chunk, fastest dimension first.
        let mut d = rank;
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            let next = along::chunk_after(&ranges[d], piece.at[d], chunk[d]);
            let number = next.unwrap_or(ranges[d].start() / chunk[d]);
            if number != piece.at[d] {
                piece.at[d] = number;
                along[d] = Along::in_chunk(&ranges[d], number, chunk[d]);
            }
            if next.is_some() {
                break;
            }
        }
    }
}

fn pieces_of_union(
    selection: &Selection,
    grid: &ChunkGrid,
    element: u64,
    visit: &mut dyn FnMut(&Piece) -> Result<()>,
) -> Result<()> {
    let chunk = grid.chunk();
    for part in selection.split_by_chunk(grid)? {
        let part = part?;
        let rows = part.within.slabs().iter().map(|slab| {
            let along: Vec<Along> =
                slab.ranges().iter().zip(chunk).map(|(span, &e)| Along::in_chunk(span, 0, e)).collect();
            // Elsewhere in packed memory lie the elements of the other slabs, between the rows of this one.
            Rows::new(&along, chunk, &Dims::from_elem(u64::MAX, chunk.len()), element)
        });
        let (low, high) = part.within.bounds().unwrap_or_default();
        let piece = Piece {
            chunk: grid.linear(&part.chunk)?,
            elements: part.within.len(),
            covers: part.covers_chunk,
            rows: rows.collect(),
            bounds: low.into_iter().zip(high).collect(),
            at: part.chunk,
        };
        visit(&piece)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Chunk, elements, whether covered, runs together in chunk and packed memory: by looking at every run.
    fn naive(selection: &Selection, grid: &ChunkGrid, element: u64) -> Vec<(u64, u64, bool, u64)> {
        let parts = selection.split_by_chunk(grid).unwrap().map(|part| {
            let part = part.unwrap();
            let (mut runs, mut ends) = (0, (u64::MAX, u64::MAX));
            part.for_each_row(element, |chunk, memory| {
                for i in 0..chunk.count {
                    let begins = (chunk.offset + i * chunk.stride, memory.offset + i * memory.stride);
                    runs += u64::from(begins != ends);
                    ends = (begins.0 + chunk.len, begins.1 + memory.len);
                }
            })
            .unwrap();
            (grid.linear(&part.chunk).unwrap(), part.within.len(), part.covers_chunk, runs)
        });
        parts.collect()
    }

    fn counted(selection: &Selection, grid: &ChunkGrid, element: u64) -> Vec<(u64, u64, bool, u64)> {
        let mut found = Vec::new();
        for_each_piece(selection, grid, element, &mut |piece| {
            let bytes: u64 = piece.rows.iter().map(|rows| rows.runs() * rows.len).sum();
            // Runs cut at the edges of a chunk make the last ones shorter.
            assert!(bytes >= piece.elements * element);
            found.push((piece.chunk, piece.elements, piece.covers, piece.runs()));
            Ok(())
        })
        .unwrap();
        found
    }

    proptest! {
        #[test]
        fn boxes_and_slabs_are_counted_right(
            dims in prop::collection::vec((1u64..12, 1u64..5, 0u64..12, 1u64..12), 1..4),
        ) {
            let shape: Dims = dims.iter().map(|d| d.0).collect();
            let chunk: Dims = dims.iter().map(|d| d.1).collect();
            let start: Dims = dims.iter().map(|d| d.2 % d.0).collect();
            let count: Dims = dims.iter().zip(&start).map(|(d, s)| d.3.min(d.0 - s)).collect();
            let selection = Selection::dense(&start, &count).unwrap();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            prop_assert_eq!(counted(&selection, &grid, 4), naive(&selection, &grid, 4));
        }

        #[test]
        fn strided_slabs_are_counted_right(
            dims in prop::collection::vec((1u64..6, 0u64..3, 1u64..4, 1u64..4, 1u64..4), 1..3),
        ) {
            let chunk: Dims = dims.iter().map(|d| d.0).collect();
            let start: Dims = dims.iter().map(|d| d.1).collect();
            let block: Dims = dims.iter().map(|d| d.2).collect();
            let stride: Dims = dims.iter().map(|d| d.2 + d.3).collect();
            let count: Dims = dims.iter().map(|d| d.4).collect();
            let shape: Dims = (0..dims.len()).map(|d| start[d] + stride[d] * count[d]).collect();
            let selection = Selection::strided(&start, &stride, &count, &block).unwrap();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let (mine, right) = (counted(&selection, &grid, 8), naive(&selection, &grid, 8));
            prop_assert_eq!(mine.len(), right.len());
            for (mine, right) in mine.iter().zip(&right) {
                prop_assert_eq!((mine.0, mine.1, mine.2), (right.0, right.1, right.2));
                // The end of one row may touch the beginning of the next.
                prop_assert!(mine.3 >= right.3 && mine.3 <= 2 * right.3, "{mine:?} {right:?}");
            }
        }

        #[test]
        fn unions_touch_the_right_chunks(
            boxes in prop::collection::vec((0u64..20, 1u64..6, 0u64..20, 1u64..6), 2..6),
            chunk in (1u64..6, 1u64..6),
        ) {
            let slabs = boxes.iter().filter_map(|b| Slab::dense(&[b.0, b.2], &[b.1, b.3]).unwrap());
            let selection = Selection::union(2, slabs).unwrap();
            let grid = ChunkGrid::new(&[26, 26], &[chunk.0, chunk.1]).unwrap();
            let (mine, right) = (counted(&selection, &grid, 4), naive(&selection, &grid, 4));
            prop_assert_eq!(mine.len(), right.len());
            for (mine, right) in mine.iter().zip(&right) {
                prop_assert_eq!((mine.0, mine.1, mine.2), (right.0, right.1, right.2));
                prop_assert!(mine.3 >= right.3 && mine.3 <= mine.1);
            }
        }
    }

    #[test]
    fn memory_that_is_not_packed_has_short_runs() {
        let run = |layout: &MemoryLayout| memory_run(layout, &Datatype::F32).unwrap();
        assert_eq!(run(&MemoryLayout::packed()), None);
        assert_eq!(run(&MemoryLayout::member(32, 8)), Some(4));
        let part =
            |start: &[u64], count: &[u64]| MemoryLayout::strided(&[10, 10], Selection::dense(start, count).unwrap());
        assert_eq!(run(&part(&[0, 0], &[10, 5])), Some(20));
        assert_eq!(run(&part(&[2, 0], &[5, 10])), None);
    }
}
