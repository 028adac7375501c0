//! Accesses joined to larger ones: neighbours with small gaps between them are moved by one call.

use super::device::Device;
use super::{ROWS_LOOKED_AT, system_calls};
use crate::chunk_pieces::Rows;
use crate::counts::{Count, Counts};

/// What is joined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The longest gap that is moved over.
    pub(crate) gap: u64,
    /// The most bytes of a group, from first to last.
    pub(crate) bytes: u64,
    /// The most entries of a group.
    pub(crate) entries: u64,
    /// Whether every run is an entry, or every regular row of them.
    pub(crate) runs_are_entries: bool,
    /// Runs of at least this length stay alone.
    pub(crate) long: u64,
}

/// What one call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Write,
    /// Reads what lies between, and writes it back.
    Change,
}

/// Joins accesses in the order they come, until [`Groups::finish`].
#[derive(Debug)]
pub(crate) struct Groups {
    limits: Limits,
    call: Call,
    /// Bytes of memory that lie together, if not all do: longer accesses go through a buffer.
    scattered: bool,
    start: u64,
    end: u64,
    entries: u64,
    /// The group is a run that stays alone.
    long: bool,
    /// Bytes wanted of the group.
    wanted: u64,
    device: Device,
}

/// Runs that go through a buffer are moved in pieces of this size.
const TILE: u64 = 256 << 10;

impl Groups {
    pub(crate) fn new(limits: Limits, call: Call, scattered: bool, device: Device) -> Self {
        Self { limits, call, scattered, start: 0, end: 0, entries: 0, long: false, wanted: 0, device }
    }

    /// Adds rows that begin at `base`.
    pub(crate) fn add(&mut self, rows: &Rows, base: u64, counts: &mut Counts) {
        let looked_at = rows.rows.min(ROWS_LOOKED_AT);
        if rows.rows > looked_at {
            self.hand_over(counts);
        }
        let before = *counts;
        for row in 0..looked_at {
            let offset = base + rows.offset + row * rows.row_stride;
            self.add_row(&Rows { offset, ..*rows }, counts);
        }
        if rows.rows > looked_at {
            self.hand_over(counts);
            let like_these = counts.since(&before).scaled(rows.rows - looked_at, looked_at);
            *counts += &like_these;
        }
    }

    fn add_row(&mut self, row: &Rows, counts: &mut Counts) {
        let Rows { offset, len, count, stride, .. } = *row;
        if count == 1 {
            return self.join(offset, offset + len, 1, len, counts);
        }
        if stride > len + self.limits.gap || len >= self.limits.long {
            self.join(offset, offset + len, 1, len, counts);
            self.hand_over(counts);
            // Those between the first and the last are alone too.
            self.emit(offset + stride, len, len, false, count - 2, stride, counts);
            let last = offset + (count - 1) * stride;
            return self.join(last, last + len, 1, len, counts);
        }
        if stride == len && !self.limits.runs_are_entries {
            return self.join(offset, offset + len * count, 1, len * count, counts);
        }
        let most = (self.limits.bytes.saturating_sub(len) / stride + 1).max(1);
        let most = if self.limits.runs_are_entries { most.min(self.limits.entries) } else { most };
        let mut from = 0;
        while from < count {
            let runs = most.min(count - from);
            let first = offset + from * stride;
            let entries = if self.limits.runs_are_entries { runs } else { 1 };
            // A row of several runs has gaps, or goes to several places: it is copied.
            self.join(
                first,
                first + (runs - 1) * stride + len,
                entries.max(u64::from(runs > 1) + 1),
                runs * len,
                counts,
            );
            from += runs;
        }
    }

    fn join(&mut self, start: u64, end: u64, entries: u64, wanted: u64, counts: &mut Counts) {
        let Limits { gap, bytes, entries: most, long, .. } = self.limits;
        let joins = self.entries > 0
            && self.entries + entries <= most.max(entries + 1)
            && start >= self.end
            && start - self.end <= gap
            && end - self.start <= bytes
            && !self.long
            && (entries > 1 || end - start < long);
        if !joins {
            self.hand_over(counts);
            self.start = start;
            self.long = entries == 1 && end - start >= long;
        }
        self.end = end;
        self.entries += entries;
        self.wanted += wanted;
    }

    fn hand_over(&mut self, counts: &mut Counts) {
        if self.entries == 0 {
            return;
        }
        self.emit(self.start, self.end - self.start, self.wanted, self.entries > 1, 1, 0, counts);
        (self.entries, self.wanted) = (0, 0);
    }

    /// Counts `calls` like one, each `stride` after the one before.
    #[allow(clippy::too_many_arguments)]
    fn emit(&mut self, at: u64, bytes: u64, wanted: u64, joined: bool, calls: u64, stride: u64, counts: &mut Counts) {
        let copied = joined || self.scattered;
        let each = if self.scattered && !joined { bytes.div_ceil(TILE).max(1) } else { system_calls(1, bytes) };
        if copied {
            counts.add(Count::CopiedBytes, wanted.saturating_mul(calls));
        }
        if self.call != Call::Write {
            counts.add(Count::ReadCalls, each.saturating_mul(calls));
            counts.add(Count::ReadBytes, bytes.saturating_mul(calls));
            self.device.read_apart(at, bytes, calls, stride, counts);
        }
        if self.call != Call::Read {
            counts.add(Count::WriteCalls, each.saturating_mul(calls));
            counts.add(Count::WriteBytes, bytes.saturating_mul(calls));
        }
    }

    /// Counts what is left.
    pub(crate) fn finish(mut self, counts: &mut Counts) -> Device {
        self.hand_over(counts);
        self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Limits =
        Limits { gap: 4096, bytes: 256 << 10, entries: 1024, runs_are_entries: false, long: u64::MAX };

    fn counted(limits: Limits, call: Call, rows: &[Rows]) -> (u64, u64, u64, u64) {
        let (mut groups, mut counts) = (Groups::new(limits, call, false, Device::default()), Counts::default());
        rows.iter().for_each(|row| groups.add(row, 0, &mut counts));
        groups.finish(&mut counts);
        let of = |count| counts[count];
        (of(Count::ReadCalls), of(Count::ReadBytes), of(Count::WriteCalls), of(Count::CopiedBytes))
    }

    fn row(offset: u64, len: u64, count: u64, stride: u64) -> Rows {
        Rows { offset, len, count, stride, rows: 1, row_stride: 0 }
    }

    #[test]
    fn near_runs_are_one_call_and_far_ones_are_not() {
        assert_eq!(counted(PLANE, Call::Read, &[row(0, 4, 1, 4), row(8, 4, 1, 4)]), (1, 12, 0, 8));
        assert_eq!(counted(PLANE, Call::Read, &[row(0, 4, 10, 8192)]), (10, 40, 0, 0));
        // A column of rows of 4 KiB: 64 rows of 4 KiB in each 256 KiB.
        assert_eq!(counted(PLANE, Call::Read, &[row(0, 4, 1024, 4096)]).0, 16);
        let exact = Limits { gap: 0, ..PLANE };
        assert_eq!(counted(exact, Call::Write, &[row(0, 4, 3, 8)]), (0, 0, 3, 0));
        assert_eq!(counted(PLANE, Call::Change, &[row(0, 4, 3, 8)]), (1, 20, 1, 12));
        // Backwards begins anew.
        assert_eq!(counted(PLANE, Call::Read, &[row(50, 4, 1, 4), row(0, 4, 1, 4)]).0, 2);
    }

    #[test]
    fn long_runs_stay_alone() {
        let posix = Limits { gap: 16 << 10, bytes: 4 << 20, entries: 4096, runs_are_entries: true, long: 64 << 10 };
        assert_eq!(counted(posix, Call::Read, &[row(0, 64 << 10, 4, 65 << 10)]).0, 4);
        assert_eq!(counted(posix, Call::Read, &[row(0, 4, 8192, 8)]).0, 2);
    }
}
