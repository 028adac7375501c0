//! Splitting a selection by chunk, lazily.

use super::ChunkGrid;
use super::chunk_subset::{ChunkSubset, Packed, RunTable};
use crate::slab::{Slab, product};
use crate::strided_range::StridedRange;
use crate::{Dims, Result, Selection};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

impl Selection {
    /// Splits the selection by the chunks of `grid`: yields each chunk it touches exactly once, in row-major order. Lazy: memory
    /// is independent of the number of chunks, and proportional to the slabs of a union. Refuses a selection outside the array.
    pub fn split_by_chunk<'a>(&'a self, grid: &'a ChunkGrid) -> Result<ChunkSubsets<'a>> {
        self.check_inside(grid.shape())?;
        let source = match self.slabs() {
            [] => Source::One(None),
            [slab] => Source::One(Some((slab, first_chunk(slab, grid)))),
            slabs => {
                let chunks = slabs.iter().enumerate();
                let waiting = chunks.map(|(i, slab)| Reverse((grid.linear_of(&first_chunk(slab, grid)), i))).collect();
                Source::Many { slabs, waiting, table: Arc::new(RunTable::new(self, grid)) }
            }
        };
        Ok(ChunkSubsets { grid, source })
    }
}

/// The subsets of a selection, chunk by chunk; from [`Selection::split_by_chunk`].
#[derive(Debug, Clone)]
pub struct ChunkSubsets<'a> {
    grid: &'a ChunkGrid,
    source: Source<'a>,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    /// A slab and the next chunk it touches.
    One(Option<(&'a Slab, Dims)>),
    Many {
        slabs: &'a [Slab],
        /// Min-heap over unfinished slabs: (next chunk touched, slab number).
        waiting: BinaryHeap<Reverse<(u64, usize)>>,
        table: Arc<RunTable>,
    },
}

impl Iterator for ChunkSubsets<'_> {
    type Item = Result<ChunkSubset>;

    fn next(&mut self) -> Option<Self::Item> {
        let grid = self.grid;
        match &mut self.source {
            Source::One(next) => {
                let (slab, chunk) = next.take()?;
                let part = part_of_slab(slab, grid, &chunk);
                *next = chunk_after(slab, grid, chunk).map(|after| (slab, after));
                Some(part)
            }
            Source::Many { slabs, waiting, table } => {
                let Reverse((linear, _)) = *waiting.peek()?;
                let chunk = grid.coordinates_of(linear);
                let mut pieces = Ok(Vec::new());
                while let Some(mut top) = waiting.peek_mut() {
                    let Reverse((at, i)) = *top;
                    if at != linear {
                        break;
                    }
                    pieces = pieces.and_then(|mut pieces| {
                        pieces.extend(cut(&slabs[i], grid, &chunk)?);
                        Ok(pieces)
                    });
                    match chunk_after(&slabs[i], grid, chunk.clone()) {
                        Some(after) => *top = Reverse((grid.linear_of(&after), i)),
                        None => {
                            PeekMut::pop(top);
                        }
                    }
                }
                Some(pieces.and_then(|pieces| {
                    // Clipping disjoint slabs keeps them disjoint.
                    let within = Selection::of_disjoint(grid.rank(), pieces);
                    ChunkSubset::new(grid, chunk, within, Packed::Table(Arc::clone(table)))
                }))
            }
        }
    }
}

fn part_of_slab(slab: &Slab, grid: &ChunkGrid, chunk: &[u64]) -> Result<ChunkSubset> {
    let within = Selection::of_disjoint(grid.rank(), cut(slab, grid, chunk)?);
    // Along each dimension a chunk holds consecutive selected indices: together, a box of the packed elements.
    let each = |d: usize| {
        let low = chunk[d] * grid.chunk()[d];
        let high = low.saturating_add(grid.chunk()[d]);
        let first = slab.ranges[d].count_below(low);
        (first, slab.ranges[d].count_below(high) - first)
    };
    let start: Dims = (0..grid.rank()).map(|d| each(d).0).collect();
    let count: Dims = (0..grid.rank()).map(|d| each(d).1).collect();
    let packed = Packed::Box { shape: slab.counts(), part: Selection::dense(&start, &count)? };
    ChunkSubset::new(grid, chunk.into(), within, packed)
}

/// The intersection of a slab with a chunk that it touches, relative to the chunk, as disjoint slabs.
fn cut(slab: &Slab, grid: &ChunkGrid, chunk: &[u64]) -> Result<Vec<Slab>> {
    if slab.is_dense() {
        let ranges = (0..grid.rank()).map(|d| {
            let low = chunk[d] * grid.chunk()[d];
            let (start, end) =
                (slab.ranges[d].start.max(low), slab.ranges[d].end().min(low.saturating_add(grid.chunk()[d])));
            StridedRange::dense(start - low, end.saturating_sub(start))
        });
        return Ok(vec![Slab { ranges: ranges.collect() }]);
    }
    let per_dim: Vec<Vec<StridedRange>> = (0..grid.rank())
        .map(|d| {
            let low = chunk[d] * grid.chunk()[d];
            let mut ranges = Vec::new();
            slab.ranges[d].clip(low, low.saturating_add(grid.chunk()[d]), &mut ranges);
            ranges.iter_mut().for_each(|range| range.start -= low);
            ranges
        })
        .collect();
    product(&per_dim)
}

fn first_chunk(slab: &Slab, grid: &ChunkGrid) -> Dims {
    slab.ranges.iter().zip(grid.chunk()).map(|(range, c)| range.start / c).collect()
}

/// The next chunk that the slab touches, in row-major order.
fn chunk_after(slab: &Slab, grid: &ChunkGrid, mut chunk: Dims) -> Option<Dims> {
    for d in (0..chunk.len()).rev() {
        let extent = grid.chunk()[d];
        let range = &slab.ranges[d];
        // No overflow: there is an index beyond this one only if the next chunk begins inside the array.
        match (chunk[d] + 1).checked_mul(extent).and_then(|index| range.first_from(index)) {
            Some(index) => {
                chunk[d] = index / extent;
                return Some(chunk);
            }
            None => chunk[d] = range.start / extent,
        }
    }
    None
}
