//! Regular rows of runs: the shape of what is taken of a chunk.

use super::span_in_chunk::SpanInChunk;
use crate::counts::{Count, Counts};

/// `rows` rows of `count` runs of `len` bytes. A run lies together in the chunk and in packed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    /// First byte of the first run, from the start of the chunk.
    pub(crate) offset: u64,
    /// Bytes of a run.
    pub(crate) len: u64,
    /// Runs of a row.
    pub(crate) count: u64,
    /// Bytes from one run of a row to the next.
    pub(crate) stride: u64,
    /// Rows.
    pub(crate) rows: u64,
    /// Bytes from the start of one row to the start of the next, of those that are nearest.
    pub(crate) row_stride: u64,
}

impl Rows {
    /// What is selected of a chunk of extents `chunk`, of a selection that is `packed` in memory.
    pub(crate) fn new(along: &[SpanInChunk], chunk: &[u64], packed: &[u64], element: u64) -> Self {
        let (mut offset, mut len, mut pitch) = (0, element, element);
        let mut out = Self { offset: 0, len, count: 1, stride: len, rows: 1, row_stride: len };
        // The elements inside are all of the chunk's row, and all of the packed row.
        let (mut whole, mut levels) = (true, 0u8);
        for d in (0..along.len()).rev() {
            let SpanInChunk { count, blocks, block, stride, first, .. } = along[d];
            offset += first * pitch;
            let inner = if whole { block } else { 1 };
            len *= inner;
            // Runs that lie apart: blocks, or single indices where what is inside is not whole.
            let (n, step) = match (whole, block) {
                (true, _) | (false, 1) => (count.div_ceil(inner).max(blocks), stride * pitch),
                (false, _) => (count, pitch),
            };
            if n > 1 {
                match levels {
                    0 => (out.count, out.stride) = (n, step),
                    1 => (out.rows, out.row_stride) = (n, step),
                    _ => out.rows = out.rows.saturating_mul(n),
                }
                levels += 1;
                whole = false;
            }
            whole = whole && count == chunk[d] && count == packed[d];
            pitch *= chunk[d];
        }
        Self { offset, len, stride: if out.count == 1 { len } else { out.stride }, ..out }
    }

    /// All runs.
    pub(crate) fn runs(&self) -> u64 {
        self.count.saturating_mul(self.rows)
    }

    /// Counts the runs by their length.
    pub(crate) fn count_runs(&self, counts: &mut Counts) {
        // Loops over single elements are made for their size.
        counts.add(if self.len <= 16 { Count::ShortRuns } else { Count::Runs }, self.runs());
    }
}

impl Rows {
    /// The same with runs no longer than the pieces of memory that they go to.
    pub(crate) fn split(&self, memory_run: Option<u64>) -> Self {
        match memory_run {
            Some(run) if run < self.len => Self {
                len: run,
                count: self.len.div_ceil(run),
                stride: run,
                rows: self.runs(),
                row_stride: if self.count > 1 { self.stride } else { self.row_stride },
                ..*self
            },
            _ => *self,
        }
    }
}
