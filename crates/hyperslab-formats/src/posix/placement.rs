//! Where the bytes of an array lie in a file that also holds others.

use super::byte_order::reverse_each;
use hyperslab_core::Run;

/// The array's bytes, cut into rows of equal length: where the first begins and how far apart they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Of the first row.
    pub begin: u64,
    /// Bytes of a row.
    pub row: u64,
    /// Bytes from the beginning of one row to that of the next.
    pub pitch: u64,
    /// Bytes of the numbers that are stored in the other byte order than memory has; 1 for none.
    pub turned: u64,
}

impl Placement {
    /// An array that has its file to itself.
    pub const ALONE: Self = Self { begin: 0, row: u64::MAX, pitch: u64::MAX, turned: 1 };

    /// Where it begins, if its rows follow each other.
    pub fn contiguous(&self) -> Option<u64> {
        (self.row == self.pitch).then_some(self.begin)
    }

    /// Whether file and memory differ in byte order.
    pub fn turns(&self) -> bool {
        self.turned > 1
    }

    /// Brings whole elements from one side's byte order to the other's.
    pub fn turn(&self, elements: &mut [u8]) {
        reverse_each(elements, self.turned);
    }

    /// Runs of the array's bytes as runs of the file's.
    pub fn runs<I: Iterator<Item = Run>>(&self, runs: I) -> PlacedRuns<I> {
        PlacedRuns { runs, place: *self, left: None }
    }
}

/// The iterator of [`Placement::runs`].
#[derive(Debug, Clone)]
pub(crate) struct PlacedRuns<I> {
    runs: I,
    place: Placement,
    /// What of a run lies in later rows.
    left: Option<Run>,
}

impl<I: Iterator<Item = Run>> Iterator for PlacedRuns<I> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let Placement { begin, row, pitch, .. } = self.place;
        let run = match self.left.take() {
            Some(left) => left,
            None => self.runs.next()?,
        };
        if row == pitch {
            return Some(Run { offset: begin + run.offset, len: run.len });
        }
        let (rows, inside) = (run.offset / row, run.offset % row);
        let len = run.len.min(row - inside);
        self.left = (run.len > len).then(|| Run { offset: run.offset + len, len: run.len - len });
        Some(Run { offset: begin + rows * pitch + inside, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_at_rows() {
        let place = Placement { begin: 100, row: 3, pitch: 8, turned: 1 };
        let run = |offset, len| Run { offset, len };
        let placed: Vec<Run> = place.runs([run(1, 1), run(2, 6), run(9, 3)].into_iter()).collect();
        assert_eq!(placed, [run(101, 1), run(102, 1), run(108, 3), run(116, 2), run(124, 3)]);
        assert_eq!(place.contiguous(), None);
        let together = Placement { pitch: 3, ..place };
        assert_eq!(together.contiguous(), Some(100));
        assert_eq!(together.runs([run(2, 6)].into_iter()).collect::<Vec<_>>(), [run(102, 6)]);
    }
}
