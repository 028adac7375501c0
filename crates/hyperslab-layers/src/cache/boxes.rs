//! Boxes of elements and their position in larger boxes.

use hyperslab_core::{Dims, MemoryLayout, Result, Selection, dims};
use std::ops::Range;

/// A dense box of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexBox {
    pub start: Dims,
    pub count: Dims,
}

impl IndexBox {
    /// The intersection, which must not be empty.
    pub fn common(&self, other: &Self) -> Self {
        let ends = |piece: &Self, d: usize| piece.start[d] + piece.count[d];
        let start: Dims = self.start.iter().zip(&other.start).map(|(a, b)| *a.max(b)).collect();
        let count = (0..start.len()).map(|d| ends(self, d).min(ends(other, d)).saturating_sub(start[d])).collect();
        Self { start, count }
    }

    /// The box of a dense selection.
    pub fn of(selection: &Selection) -> Option<Self> {
        let slab = selection.as_slab().filter(|slab| slab.is_dense())?;
        Some(Self { start: slab.start(), count: slab.counts() })
    }

    /// The union with the adjacent box `next`, if that is a box.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        let differs = |d: &usize| (self.start[*d], self.count[*d]) != (next.start[*d], next.count[*d]);
        let mut differing = (0..self.start.len()).filter(differs);
        match (differing.next(), differing.next()) {
            (Some(d), None) if self.start[d] + self.count[d] == next.start[d] => {
                let mut both = self.clone();
                both.count[d] += next.count[d];
                Some(both)
            }
            _ => None,
        }
    }

    pub fn selection(&self) -> Result<Selection> {
        Selection::dense(&self.start, &self.count)
    }

    /// The position in the packed elements of `whole`: byte range, and layout within it.
    pub fn within(&self, whole: &IndexBox, element: u64) -> Result<(Range<usize>, MemoryLayout)> {
        let start: Dims = self.start.iter().zip(&whole.start).map(|(s, w)| s - w).collect();
        if let Some(range) = contiguous(&start, &self.count, &whole.count, element) {
            return Ok((range, MemoryLayout::packed()));
        }
        let layout = MemoryLayout::strided(&whole.count, Selection::dense(&start, &self.count)?);
        Ok((0..dims::byte_count(&whole.count, element)? as usize, layout))
    }
}

/// The byte range of a box in a row-major buffer of `shape`, if contiguous.
pub(super) fn contiguous(start: &[u64], count: &[u64], shape: &[u64], element: u64) -> Option<Range<usize>> {
    let (mut len, mut from, mut pitch) = (element, 0, element);
    let mut whole = true;
    for d in (0..shape.len()).rev() {
        if !whole && count[d] != 1 {
            return None;
        }
        from += start[d] * pitch;
        len *= count[d];
        pitch *= shape[d];
        whole &= count[d] == shape[d];
    }
    Some(from as usize..(from + len) as usize)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn boxes_without_gaps_are_one_range() {
        let shape = [4, 5, 6];
        for start in [[0, 0, 0], [1, 2, 3], [3, 4, 5], [0, 2, 0]] {
            for count in [[1, 1, 1], [1, 1, 3], [1, 2, 6], [1, 5, 6], [2, 5, 6], [1, 2, 3], [2, 1, 6], [4, 5, 6]] {
                let Ok(selection) = Selection::dense(&start, &count) else { continue };
                let Ok(runs) = selection.runs(&shape, 8) else { continue };
                let runs: Vec<_> = runs.collect();
                let expected = (runs.len() == 1).then(|| runs[0].offset as usize..runs[0].end() as usize);
                assert_eq!(contiguous(&start, &count, &shape, 8), expected, "{start:?} {count:?}");
            }
        }
        assert_eq!(contiguous(&[], &[], &[], 8), Some(0..8));
    }

    #[test]
    fn neighbours_join() {
        let piece = |start: &[u64], count: &[u64]| IndexBox { start: start.into(), count: count.into() };
        let rows = piece(&[0, 0], &[2, 6]).joined(&piece(&[2, 0], &[1, 6])).unwrap();
        assert_eq!(rows, piece(&[0, 0], &[3, 6]));
        assert_eq!(rows.joined(&piece(&[4, 0], &[1, 6])), None);
        assert_eq!(rows.joined(&piece(&[3, 0], &[1, 5])), None);
        assert_eq!(rows.common(&piece(&[1, 2], &[9, 2])), piece(&[1, 2], &[2, 2]));
        let whole = piece(&[0, 0], &[9, 6]);
        assert_eq!(rows.within(&whole, 2).unwrap(), (0..36, MemoryLayout::packed()));
        let (range, layout) = piece(&[1, 1], &[2, 2]).within(&whole, 2).unwrap();
        assert_eq!(range, 0..108);
        assert_eq!(layout, MemoryLayout::strided(&[9, 6], Selection::dense(&[1, 1], &[2, 2]).unwrap()));
    }
}
