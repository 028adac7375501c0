//! A cursor over the runs of a selection that can stop at any byte, and lockstep iteration of two cursors.

use crate::{Row, Runs};

/// Iterates over runs in regular rows of limited size.
#[derive(Debug, Clone)]
pub(crate) struct RowCursor<'a> {
    runs: Runs<'a>,
    /// The rest of the current row.
    row: Row,
    /// Bytes of the first run of `row` that are consumed.
    used: u64,
}

impl<'a> RowCursor<'a> {
    pub(crate) fn new(runs: Runs<'a>) -> Self {
        Self { runs, row: Row { offset: 0, len: 0, count: 0, stride: 0 }, used: 0 }
    }

    /// Seeks to byte `at` of the concatenated runs. Returns false if they are those of a union, which has no random access.
    pub(crate) fn seek(&mut self, at: u64) -> bool {
        let Some(rows) = self.runs.rows_mut() else { return false };
        (self.row, self.used) = rows.seek(at);
        true
    }

    /// The next regular row of runs, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<Row> {
        if self.row.count == 0 {
            self.row = self.runs.next_row()?;
        }
        if self.used == 0 {
            return Some(self.row);
        }
        let len = self.row.len - self.used;
        Some(Row { offset: self.row.offset + self.used, len, count: 1, stride: len })
    }

    /// Consumes `bytes` of what `peek` returned.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.used += bytes;
        if self.used < self.row.len {
            return;
        }
        let runs = if self.used == self.row.len { 1 } else { self.used / self.row.len };
        self.used -= runs * self.row.len;
        self.row.offset += runs * self.row.stride;
        self.row.count -= runs;
    }

    /// Consumes and returns the next runs, at most `limit` bytes: whole runs, unless a single one exceeds the limit.
    pub(crate) fn take(&mut self, limit: u64) -> Option<Row> {
        let mut row = self.peek()?;
        if row.len > limit {
            row = Row { len: limit, count: 1, stride: limit, ..row };
        } else if row.count > 1 {
            row.count = row.count.min(limit / row.len);
        }
        self.advance(row.len * row.count);
        Some(row)
    }
}

/// Iterates over two lists of runs in lockstep. `each` gets pairs of rows of equal length and count.
pub(crate) fn zip_rows(mut a: RowCursor<'_>, mut b: RowCursor<'_>, mut each: impl FnMut(Row, Row)) {
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let len = x.len.min(y.len);
        // A run longer than the other side's is split into adjacent short ones.
        let cut = |row: Row| match row.len == len {
            true => row,
            false => Row { len, count: row.len / len, stride: len, ..row },
        };
        let (mut x, mut y) = (cut(x), cut(y));
        let count = x.count.min(y.count);
        (x.count, y.count) = (count, count);
        each(x, y);
        a.advance(len * count);
        b.advance(len * count);
    }
}
