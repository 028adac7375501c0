//! Readahead: predicts the next reads of a rank from a constant stride.

use hyperslab_core::{Dims, Selection};
use smallvec::SmallVec;

/// The read history of one array.
#[derive(Debug, Default)]
pub(super) struct Readahead {
    last: Option<Selection>,
    step: Option<SmallVec<[i64; 4]>>,
    /// Length of the present sequence of equal strides.
    repeated: u32,
}

impl Readahead {
    /// Notes a read; returns the next `number` reads inside `shape`, if the last three had equal strides.
    pub fn next(&mut self, selection: &Selection, shape: &Dims, number: usize) -> Vec<Selection> {
        let step = self.last.as_ref().and_then(|last| step(last, selection));
        self.repeated = if step.is_some() && step == self.step { self.repeated + 1 } else { 0 };
        self.last = Some(selection.clone());
        self.step = step;
        let mut next = Vec::new();
        if let Some(step) = self.step.as_ref().filter(|_| self.repeated > 0) {
            let mut from = selection.clone();
            for _ in 0..number {
                match from.shifted(step) {
                    Ok(shifted) if shifted.check_inside(shape).is_ok() => from = shifted,
                    _ => break,
                }
                next.push(from.clone());
            }
        }
        next
    }
}

/// The stride from `from` to `to`, if they have the same form and differ.
fn step(from: &Selection, to: &Selection) -> Option<SmallVec<[i64; 4]>> {
    let (first, second) = (from.bounds()?.0, to.bounds()?.0);
    let step: SmallVec<[i64; 4]> = first.iter().zip(&second).map(|(a, b)| b.wrapping_sub(*a) as i64).collect();
    let moved = step.iter().any(|by| *by != 0);
    (moved && from.shifted(&step).is_ok_and(|shifted| shifted == *to)).then_some(step)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_continued_inside_the_array() {
        let shape = Dims::from_slice(&[10, 4]);
        let rows = |row: u64| Selection::dense(&[row, 0], &[2, 4]).unwrap();
        let mut pattern = Readahead::default();
        assert!(pattern.next(&rows(0), &shape, 2).is_empty());
        assert!(pattern.next(&rows(2), &shape, 2).is_empty());
        assert_eq!(pattern.next(&rows(4), &shape, 2), [rows(6), rows(8)]);
        assert_eq!(pattern.next(&rows(6), &shape, 2), [rows(8)], "the array ends");
        assert!(pattern.next(&rows(1), &shape, 2).is_empty(), "another way");
        assert!(pattern.next(&rows(1), &shape, 2).is_empty(), "no way at all");
        let backwards = [8, 7, 6].map(|row| pattern.next(&rows(row), &shape, 1));
        assert_eq!(backwards[2], [rows(5)]);
        assert!(pattern.next(&Selection::empty(2), &shape, 1).is_empty());
    }
}
