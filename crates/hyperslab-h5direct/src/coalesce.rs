//! Coalesces byte ranges into system calls: neighbours are joined while transferring the gap costs less than a call.

use hyperslab_core::{Result, Row};

/// Break-even gap: transferring fewer bytes than this is cheaper than another system call.
pub(crate) const WORTH_A_CALL: u64 = 4 << 10;
/// Size limit of a group with several rows: it goes through a buffer, which should fit into a core's cache.
const GROUP_BYTES: u64 = 256 << 10;
/// Row limit of a group.
const GROUP_ROWS: usize = 1024;

/// Corresponding rows in the file and in the packed elements: equal length and count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) file: Row,
    pub(crate) memory: Row,
}

/// Rows that one system call transfers, in increasing file order.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) pairs: Vec<Pair>,
}

/// Consumer of coalesced groups.
pub(crate) trait Sink {
    /// Consumes a group; its content afterwards is unspecified.
    fn take(&mut self, group: &mut Group) -> Result<()>;
    /// Called after the last group.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Coalesces rows into groups.
pub(crate) struct Coalescer<'a> {
    /// Largest gap to bridge, in bytes.
    gap: u64,
    group: Group,
    sink: &'a mut dyn Sink,
}

impl<'a> Coalescer<'a> {
    /// Coalesces rows separated by at most `gap` bytes.
    pub(crate) fn new(gap: u64, sink: &'a mut dyn Sink) -> Self {
        Self { gap, group: Group::default(), sink }
    }

    /// Adds rows. Rows before the current group in the file start a new group.
    pub(crate) fn add(&mut self, pair: Pair) -> Result<()> {
        let Pair { file, memory } = pair;
        if file.count == 1 {
            return self.join(pair);
        }
        if file.stride > file.len + self.gap {
            // Each run separately: it may be adjacent to runs of other rows.
            return (0..file.count).try_for_each(|i| self.join(part(pair, i, 1)));
        }
        if file.stride == file.len && memory.stride == memory.len {
            let one = |row: Row| Row { len: row.len * row.count, count: 1, stride: row.len * row.count, ..row };
            return self.join(Pair { file: one(file), memory: one(memory) });
        }
        let most = ((GROUP_BYTES.saturating_sub(file.len)) / file.stride + 1).max(1);
        let mut from = 0;
        while from < file.count {
            let count = most.min(file.count - from);
            self.join(part(pair, from, count))?;
            from += count;
        }
        Ok(())
    }

    fn join(&mut self, pair: Pair) -> Result<()> {
        let (start, end) = (pair.file.offset, end(pair.file));
        let group = &mut self.group;
        let joins = group.pairs.len() < GROUP_ROWS
            && start >= group.end
            && start - group.end <= self.gap
            && end - group.start <= GROUP_BYTES;
        if !group.pairs.is_empty() && !joins {
            self.hand_over()?;
        }
        let group = &mut self.group;
        if group.pairs.is_empty() {
            group.start = start;
        }
        group.end = end;
        if let Some(last) = group.pairs.last_mut()
            && let Some(one) = continued(*last, pair)
        {
            *last = one;
        } else {
            group.pairs.push(pair);
        }
        Ok(())
    }

    /// Emits the last group.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.hand_over()?;
        self.sink.finish()
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.group.pairs.is_empty() {
            return Ok(());
        }
        let taken = self.sink.take(&mut self.group);
        self.group.pairs.clear();
        taken
    }
}

/// Merges two single runs that are adjacent in both file and memory.
fn continued(last: Pair, next: Pair) -> Option<Pair> {
    let single = last.file.count == 1 && next.file.count == 1;
    let follows = end(last.file) == next.file.offset && end(last.memory) == next.memory.offset;
    let one = |row: Row, more: u64| Row { len: row.len + more, stride: row.len + more, ..row };
    (single && follows).then(|| Pair { file: one(last.file, next.file.len), memory: one(last.memory, next.file.len) })
}

/// One past the last byte of a row.
pub(crate) fn end(row: Row) -> u64 {
    row.offset + (row.count - 1) * row.stride + row.len
}

fn part(pair: Pair, from: u64, count: u64) -> Pair {
    let of = |row: Row| Row {
        offset: row.offset + from * row.stride,
        count,
        stride: if count == 1 { row.len } else { row.stride },
        ..row
    };
    Pair { file: of(pair.file), memory: of(pair.memory) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(u64, u64, usize)>);

    impl Sink for Seen {
        fn take(&mut self, group: &mut Group) -> Result<()> {
            self.0.push((group.start, group.end, group.pairs.len()));
            Ok(())
        }
    }

    fn groups(gap: u64, rows: &[Row]) -> Vec<(u64, u64, usize)> {
        let mut seen = Seen::default();
        let mut grouping = Coalescer::new(gap, &mut seen);
        let mut packed = 0;
        for &file in rows {
            grouping.add(Pair { file, memory: Row { offset: packed, stride: file.len, ..file } }).unwrap();
            packed += file.len * file.count;
        }
        grouping.finish().unwrap();
        seen.0
    }

    #[test]
    fn near_rows_are_one_call_and_far_ones_are_not() {
        let row = |offset, len, count, stride| Row { offset, len, count, stride };
        assert_eq!(groups(0, &[row(0, 4, 1, 4), row(4, 4, 1, 4)]), [(0, 8, 1)]);
        assert_eq!(groups(0, &[row(0, 4, 1, 4), row(5, 4, 1, 4)]), [(0, 4, 1), (5, 9, 1)]);
        assert_eq!(groups(1, &[row(0, 4, 1, 4), row(5, 4, 1, 4)]), [(0, 9, 2)]);
        assert_eq!(groups(9, &[row(0, 4, 3, 8)]), [(0, 20, 1)]);
        assert_eq!(groups(3, &[row(0, 4, 3, 8)]), [(0, 4, 1), (8, 12, 1), (16, 20, 1)]);
        // Backwards begins anew.
        assert_eq!(groups(100, &[row(50, 4, 1, 4), row(0, 4, 1, 4)]), [(50, 54, 1), (0, 4, 1)]);
        // A long row is cut.
        let long = groups(100, &[row(0, 4, 1 << 20, 8)]);
        assert!(long.len() > 30 && long.iter().all(|g| g.1 - g.0 <= GROUP_BYTES));
        assert_eq!(long.last().unwrap().1, (1 << 23) - 4);
    }
}
