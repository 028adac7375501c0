//! libhdf5's sieve buffer: small accesses to bytes in one piece go through a window that is read and written whole.

use super::device::Device;
use super::{ROWS_LOOKED_AT, system_calls};
use crate::chunk_pieces::Rows;
use crate::counts::{Count, Counts};

/// The window, and what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Sieve {
    size: u64,
    /// First byte and one past the last.
    window: Option<(u64, u64)>,
    dirty: bool,
    pub(crate) device: Device,
}

/// Bytes in one piece: where they begin, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
}

impl Sieve {
    /// A window of up to `size` bytes; 0 for none.
    pub(crate) fn new(size: u64) -> Self {
        Self { size, window: None, dirty: false, device: Device::default() }
    }

    /// Counts the access to rows of the bytes of `extent`.
    pub(crate) fn access(&mut self, rows: &Rows, extent: Extent, writes: bool, counts: &mut Counts) {
        let looked_at = rows.rows.min(ROWS_LOOKED_AT);
        if rows.rows > looked_at {
            self.flush(counts);
        }
        let before = *counts;
        for row in 0..looked_at {
            let offset = rows.offset + row * rows.row_stride;
            self.row(&Rows { offset, ..*rows }, extent, writes, counts);
        }
        if rows.rows > looked_at {
            self.flush(counts);
            let like_these = counts.since(&before).scaled(rows.rows - looked_at, looked_at);
            *counts += &like_these;
            // The window is where the last row is.
            let moved = (rows.rows - looked_at).saturating_mul(rows.row_stride);
            self.window = self.window.map(|(from, to)| (from.saturating_add(moved), to.saturating_add(moved)));
        }
    }

    fn row(&mut self, row: &Rows, extent: Extent, writes: bool, counts: &mut Counts) {
        let address = |run: u64| extent.begin + row.offset + run * row.stride;
        if row.len > self.size {
            if self.window.is_some_and(|(from, to)| from < address(row.count - 1) + row.len && to > address(0)) {
                self.flush(counts);
                self.window = self.window.filter(|_| !writes);
            }
            if !writes {
                self.device.read_apart(address(0), row.len, row.count, row.stride, counts);
            }
            let (calls, bytes) =
                if writes { (Count::WriteCalls, Count::WriteBytes) } else { (Count::ReadCalls, Count::ReadBytes) };
            counts.add(calls, system_calls(row.count, row.len));
            counts.add(bytes, row.count.saturating_mul(row.len));
            return;
        }
        counts.add(Count::CopiedBytes, row.count.saturating_mul(row.len));
        let mut run = self.inside(row, address(0), row.count);
        self.dirty |= writes && run > 0;
        if run == row.count {
            return;
        }
        // From here on a window begins at a run and holds so many of them.
        let per_window = (self.size - row.len) / row.stride.max(1) + 1;
        let windows = (row.count - run).div_ceil(per_window);
        self.flush(counts);
        let end = extent.begin + extent.bytes;
        let last = run + (windows - 1) * per_window;
        let size = self.size;
        let window_bytes = |from: u64| (from + size).min(end).saturating_sub(from).max(row.len);
        let bytes = (windows - 1).saturating_mul(self.size).saturating_add(window_bytes(address(last)));
        // A window that the run fills is not read before it is written.
        if !writes || window_bytes(address(last)) > row.len {
            counts.add(Count::ReadCalls, windows);
            counts.add(Count::ReadBytes, bytes);
            self.device.read_apart(
                address(run),
                self.size.min(end - address(run)),
                windows,
                per_window * row.stride,
                counts,
            );
        }
        if writes {
            counts.add(Count::WriteCalls, windows - 1);
            counts.add(Count::WriteBytes, (windows - 1) * self.size);
            self.dirty = true;
        }
        run = last;
        self.window = Some((address(run), address(run) + window_bytes(address(run))));
    }

    /// How many of the next runs are in the window.
    fn inside(&self, row: &Rows, from: u64, count: u64) -> u64 {
        match self.window {
            Some((begin, end)) if from >= begin && from + row.len <= end => {
                ((end - row.len - from) / row.stride.max(1) + 1).min(count)
            }
            _ => 0,
        }
    }

    /// Counts the storing of a changed window.
    pub(crate) fn flush(&mut self, counts: &mut Counts) {
        if let Some((from, to)) = self.window.filter(|_| self.dirty) {
            counts.add(Count::WriteCalls, 1);
            counts.add(Count::WriteBytes, to - from);
        }
        self.dirty = false;
    }

    /// Stores what is changed and forgets the window.
    pub(crate) fn reset(&mut self, counts: &mut Counts) {
        self.flush(counts);
        self.window = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(sieve: &mut Sieve, rows: Rows, bytes: u64, writes: bool) -> (u64, u64, u64, u64) {
        let mut counts = Counts::default();
        sieve.access(&rows, Extent { begin: 0, bytes }, writes, &mut counts);
        let of = |count| counts[count];
        (of(Count::ReadCalls), of(Count::ReadBytes), of(Count::WriteCalls), of(Count::WriteBytes))
    }

    fn row(offset: u64, len: u64, count: u64, stride: u64) -> Rows {
        Rows { offset, len, count, stride, rows: 1, row_stride: 0 }
    }

    #[test]
    fn a_column_of_4_byte_elements_takes_a_window_for_16_rows_of_4_kib() {
        // 1024 x 1024 elements of 4 bytes, one column; counted by strace as 64 reads of 64 KiB.
        let mut sieve = Sieve::new(64 << 10);
        assert_eq!(access(&mut sieve, row(0, 4, 1024, 4096), 4 << 20, false), (64, 4 << 20, 0, 0));
        // The last window still holds the next element of its rows.
        assert_eq!(access(&mut sieve, row(1010 * 4096 + 8, 4, 1, 4), 4 << 20, false).0, 0);
        assert_eq!(access(&mut sieve, row(0, 4, 1, 4), 4 << 20, false).0, 1);
    }

    #[test]
    fn long_runs_go_around_the_window() {
        let mut sieve = Sieve::new(64 << 10);
        assert_eq!(access(&mut sieve, row(0, 1 << 20, 3, 2 << 20), 8 << 20, true), (0, 0, 3, 3 << 20));
    }

    #[test]
    fn small_writes_read_a_window_first_and_store_it_later() {
        let mut sieve = Sieve::new(64 << 10);
        assert_eq!(access(&mut sieve, row(0, 4, 1, 4), 1 << 20, true), (1, 64 << 10, 0, 0));
        assert_eq!(access(&mut sieve, row(400, 4, 100, 8), 1 << 20, true), (0, 0, 0, 0));
        let mut counts = Counts::default();
        sieve.reset(&mut counts);
        assert_eq!((counts[Count::WriteCalls], counts[Count::WriteBytes]), (1, 64 << 10));
        // What fills its window needs no reading.
        assert_eq!(access(&mut sieve, row(0, 64 << 10, 1, 64 << 10), 1 << 20, true).0, 0);
    }

    #[test]
    fn many_rows_are_like_the_first() {
        let mut sieve = Sieve::new(0);
        let rows = Rows { offset: 0, len: 8, count: 100, stride: 64, rows: 1_000_000, row_stride: 8192 };
        assert_eq!(access(&mut sieve, rows, u64::MAX / 2, false).0, 100_000_000);
    }
}
