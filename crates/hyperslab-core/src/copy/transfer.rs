//! Sequential copies between the elements of a layout and packed memory.

use super::cursor::RowCursor;
use super::nontemporal::STREAM_FROM;
use super::strided_copy::{Through, copy_rows, copy_rows_shared};
use crate::{Datatype, DisjointWriteBuffer, ElementPlan, MemoryLayout, Result, Row, Runs};

/// Tile size, in bytes of structures: all fields of a tile are copied while it is in the L1 cache.
const TILE: u64 = 16 << 10;

/// The elements of a layout that are not copied yet.
#[derive(Debug, Clone)]
pub(super) struct Elements<'a> {
    plan: ElementPlan,
    identity: bool,
    cursor: RowCursor<'a>,
}

/// One direction of copying.
pub(super) trait Direction {
    /// Copies between rows of equal length and count.
    fn copy(&mut self, memory: Row, packed: Row, through: Through);
}

/// From the caller's memory to packed elements.
pub(super) struct IntoPacked<'a> {
    pub(super) data: &'a [u8],
    pub(super) packed: &'a mut [u8],
}

/// From packed elements to the caller's memory.
pub(super) struct OutOfPacked<'a> {
    data: DisjointWriteBuffer<'a>,
    packed: &'a [u8],
}

impl<'a> OutOfPacked<'a> {
    /// # Safety
    /// No other thread may access the copied elements as long as this exists.
    pub(super) unsafe fn new(data: DisjointWriteBuffer<'a>, packed: &'a [u8]) -> Self {
        Self { data, packed }
    }
}

impl Direction for IntoPacked<'_> {
    #[inline]
    fn copy(&mut self, memory: Row, packed: Row, through: Through) {
        copy_rows(self.data, memory, self.packed, packed, through);
    }
}

impl Direction for OutOfPacked<'_> {
    #[inline]
    fn copy(&mut self, memory: Row, packed: Row, through: Through) {
        // SAFETY: no other thread accesses these elements, as promised to `new`.
        unsafe { copy_rows_shared(self.packed, packed, self.data, memory, through) };
    }
}

impl<'a> Elements<'a> {
    pub(super) fn new(layout: &'a MemoryLayout, dtype: &Datatype, elements: u64) -> Result<Self> {
        let plan = layout.plan(dtype)?;
        let runs = match &layout.within {
            Some(within) => within.selection.runs(&within.shape, plan.stride)?,
            None => Runs::contiguous(crate::dims::byte_count(&[elements], plan.stride)?),
        };
        Ok(Self { identity: plan.is_identity(), plan, cursor: RowCursor::new(runs) })
    }

    /// Seeks to an element. Returns false if the memory selection is a union of slabs.
    pub(super) fn seek(&mut self, element: u64) -> bool {
        self.cursor.seek(element * self.plan.stride)
    }

    /// Copies the next elements, as many as fit `bytes` packed bytes. Returns their number.
    pub(super) fn transfer(&mut self, bytes: usize, direction: &mut impl Direction) -> usize {
        let total = bytes as u64 / self.plan.element;
        let through = if bytes >= STREAM_FROM { Through::Memory } else { Through::Cache };
        let mut done = 0;
        while done < total {
            let Some(row) = self.cursor.take((total - done).saturating_mul(self.plan.stride)) else { break };
            let packed = done * self.plan.element;
            if self.identity {
                direction.copy(row, Row { offset: packed, stride: row.len, ..row }, through);
                done += row.len * row.count / self.plan.element;
            } else {
                done += self.transfer_structures(row, packed, direction);
            }
        }
        done as usize
    }

    /// Copies the fields of a row of structures; `packed` is the offset of the first packed element.
    fn transfer_structures(&self, row: Row, packed: u64, direction: &mut impl Direction) -> u64 {
        let ElementPlan { stride, element, .. } = self.plan;
        let per_run = row.len / stride;
        if per_run == 1 {
            self.transfer_regular(row.offset, row.stride, row.count, packed, direction);
        } else {
            for run in 0..row.count {
                let offset = row.offset + run * row.stride;
                self.transfer_regular(offset, stride, per_run, packed + run * per_run * element, direction);
            }
        }
        per_run * row.count
    }

    /// Copies the fields of `count` structures that are `stride` bytes apart.
    fn transfer_regular(&self, memory: u64, stride: u64, count: u64, packed: u64, direction: &mut impl Direction) {
        let element = self.plan.element;
        let tile = if self.plan.pieces.len() == 1 { count } else { (TILE / stride).clamp(1, count) };
        let mut first = 0;
        while first < count {
            let count = tile.min(count - first);
            for piece in &self.plan.pieces {
                let memory = memory + first * stride + piece.memory;
                let packed = packed + first * element + piece.element;
                direction.copy(
                    Row { offset: memory, len: piece.len, count, stride },
                    Row { offset: packed, len: piece.len, count, stride: element },
                    Through::Cache,
                );
            }
            first += count;
        }
    }
}
