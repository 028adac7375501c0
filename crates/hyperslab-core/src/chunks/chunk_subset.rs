//! The subset of a selection in one chunk, and copies between chunk buffer and packed elements.

use super::ChunkGrid;
use crate::copy::cursor::{RowCursor, zip_rows};
use crate::copy::strided_copy::{Through, copy_rows, copy_rows_shared};
use crate::{Dims, DisjointWriteBuffer, Error, Result, Row, Selection, dims, zip_runs};
use std::sync::{Arc, OnceLock};

/// The elements of a selection that lie in one chunk.
#[derive(Debug, Clone)]
pub struct ChunkSubset {
    /// Coordinates of the chunk in the grid.
    pub chunk: Dims,
    /// The elements, relative to the origin of the chunk.
    pub within: Selection,
    /// Whether all of the chunk is selected, as far as it lies in the array: a write then needs no read-modify-write.
    pub covers_chunk: bool,
    /// Extents of a full chunk.
    shape: Dims,
    origin: Dims,
    packed: Packed,
}

/// Positions of the subset's elements in the packed elements of the whole selection.
#[derive(Debug, Clone)]
pub(super) enum Packed {
    /// The selection is one slab: the subset is a box of the packed elements.
    Box { shape: Dims, part: Selection },
    /// The selection is a union: positions are looked up.
    Table(Arc<RunTable>),
}

/// The contiguous runs of a union in the array, with the packed position of each.
#[derive(Debug)]
pub(super) struct RunTable {
    selection: Selection,
    shape: Dims,
    /// (first element in the array, first element in packed memory), increasing. Built on first use: by then the caller holds a
    /// packed buffer, and the table is not larger than in proportion to it.
    runs: OnceLock<Vec<(u64, u64)>>,
}

impl RunTable {
    pub(super) fn new(selection: &Selection, grid: &ChunkGrid) -> Self {
        Self { selection: selection.clone(), shape: grid.shape().into(), runs: OnceLock::new() }
    }

    fn runs(&self) -> Result<&[(u64, u64)]> {
        let list = self.selection.runs(&self.shape, 1)?;
        Ok(self.runs.get_or_init(|| {
            let mut packed = 0;
            list.map(|run| {
                let entry = (run.offset, packed);
                packed += run.len;
                entry
            })
            .collect()
        }))
    }
}

impl ChunkSubset {
    pub(super) fn new(grid: &ChunkGrid, chunk: Dims, within: Selection, packed: Packed) -> Result<Self> {
        let covers_chunk = within.len() == dims::element_count(&grid.extent_of(&chunk))?;
        let origin = grid.origin_of(&chunk);
        Ok(Self { chunk, within, covers_chunk, shape: grid.chunk().into(), origin, packed })
    }

    /// Copies the subset, of `element` bytes per element, from the packed elements of the whole selection to the
    /// buffer of a whole chunk. Refuses buffers of other lengths.
    pub fn copy_to_chunk(&self, packed: &[u8], chunk: &mut [u8], element: u64) -> Result<()> {
        self.check(packed.len(), chunk.len(), element)?;
        self.for_each_row(element, |in_chunk, in_packed| {
            copy_rows(packed, in_packed, chunk, in_chunk, Through::Cache);
        })
    }

    /// Copies the subset, of `element` bytes per element, from the buffer of a whole chunk to the packed elements
    /// of the whole selection. Refuses buffers of other lengths.
    pub fn copy_from_chunk(&self, chunk: &[u8], packed: &mut [u8], element: u64) -> Result<()> {
        // SAFETY: the packed elements are borrowed uniquely.
        unsafe { self.copy_from_chunk_shared(chunk, DisjointWriteBuffer::new(packed), element) }
    }

    /// As [`Self::copy_from_chunk`], to a buffer that other threads write concurrently, to other elements.
    ///
    /// # Safety
    /// No other thread may access the subset's elements in `packed` during the call.
    pub unsafe fn copy_from_chunk_shared(
        &self,
        chunk: &[u8],
        packed: DisjointWriteBuffer<'_>,
        element: u64,
    ) -> Result<()> {
        self.check(packed.len(), chunk.len(), element)?;
        self.for_each_row(element, |in_chunk, in_packed| {
            // SAFETY: the rows are the subset's elements, which no other thread accesses, as the caller promises.
            unsafe { copy_rows_shared(chunk, in_chunk, packed, in_packed, Through::Cache) };
        })
    }

    fn check(&self, packed: usize, chunk: usize, element: u64) -> Result<()> {
        let selected = match &self.packed {
            Packed::Box { shape, .. } => dims::element_count(shape)?,
            Packed::Table(table) => table.selection.len(),
        };
        let expected = [("packed", packed, dims::byte_count(&[selected], element)?), {
            ("chunk", chunk, dims::byte_count(&self.shape, element)?)
        }];
        for (name, have, need) in expected {
            if have as u64 != need {
                return Err(Error::invalid("copy chunk", format!("the {name} buffer has {have} bytes, not {need}")));
            }
        }
        Ok(())
    }

    /// Calls `each` with pairs of rows of equal length and count, one in the chunk and one in the packed elements of the whole
    /// selection, in increasing chunk order.
    pub fn for_each_row(&self, element: u64, mut each: impl FnMut(Row, Row)) -> Result<()> {
        let in_chunk = self.within.runs(&self.shape, element)?;
        match &self.packed {
            Packed::Box { shape, part } => {
                let in_packed = part.runs(shape, element)?;
                zip_rows(RowCursor::new(in_chunk), RowCursor::new(in_packed), each);
            }
            Packed::Table(table) => {
                let runs = table.runs()?;
                let place = self.within.shifted(&self.origin.iter().map(|&o| o as i64).collect::<Vec<_>>())?;
                let mut at = 0;
                for (chunk, array, len) in zip_runs(in_chunk, place.runs(&table.shape, element)?) {
                    let first = array / element;
                    // Increasing, so never before the last entry; most often the next one.
                    if runs.get(at + 1).is_some_and(|next| next.0 <= first) {
                        at += runs[at + 1..].partition_point(|run| run.0 <= first);
                    }
                    let packed = (runs[at].1 + (first - runs[at].0)) * element;
                    let row = |offset| Row { offset, len, count: 1, stride: len };
                    each(row(chunk), row(packed));
                }
            }
        }
        Ok(())
    }
}
