//! Splits selections into parts of bounded size, in packed order.

use super::Selection;
use crate::{Dims, Result};

impl Selection {
    /// Calls `each` with disjoint parts of the selection of at most `most` elements (but at least one), in increasing packed
    /// order: each part is contiguous in packed memory, and follows the one before it.
    pub fn for_each_part(&self, most: u64, each: &mut dyn FnMut(&Selection) -> Result<()>) -> Result<()> {
        split(self, 0, most, each)
    }
}

/// Splits along the first dimension in which elements differ: row-major order keeps the halves in sequence.
fn split(part: &Selection, dim: usize, most: u64, each: &mut dyn FnMut(&Selection) -> Result<()>) -> Result<()> {
    let Some((low, high)) = part.bounds() else { return Ok(()) };
    if part.len() <= most || dim == part.rank() {
        return each(part);
    }
    if high[dim] - low[dim] == 1 {
        return split(part, dim + 1, most, each);
    }
    let middle = low[dim] + (high[dim] - low[dim]) / 2;
    let counts = |from: &Dims, to: &Dims| -> Dims { to.iter().zip(from).map(|(to, from)| to - from).collect() };
    let (mut first_high, mut second_low) = (high.clone(), low.clone());
    (first_high[dim], second_low[dim]) = (middle, middle);
    for (from, to) in [(&low, &first_high), (&second_low, &high)] {
        let half = part.intersect(&Selection::dense(from, &counts(from, to))?)?;
        split(&half, dim, most, each)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Slab;

    #[test]
    fn parts_are_in_packed_order_and_complete() {
        let shape = [9, 8, 7];
        let boxes = [
            Selection::dense(&[0, 0, 0], &[2, 8, 7]),
            Selection::strided(&[3, 1, 0], &[2, 3, 2], &[3, 2, 3], &[1, 2, 1]),
        ];
        let union = boxes.into_iter().map(Result::unwrap).reduce(|a, b| a.union_with(&b).unwrap()).unwrap();
        for (selection, most) in
            [(Selection::all(&shape).unwrap(), 10), (union.clone(), 5), (union, 1), (Selection::all(&[]).unwrap(), 0)]
        {
            let shape = &shape[..selection.rank()];
            let runs = |selection: &Selection| -> Vec<u64> {
                let runs = selection.runs(shape, 1).unwrap();
                runs.flat_map(|run| run.offset..run.offset + run.len).collect()
            };
            let mut all = Vec::new();
            selection
                .for_each_part(most, &mut |piece| {
                    assert!(piece.len() <= most.max(1));
                    all.extend(runs(piece));
                    Ok(())
                })
                .unwrap();
            assert_eq!(all, runs(&selection));
        }
    }

    #[test]
    fn parts_of_strided_selections_are_bounded_and_never_empty() {
        let odd = Slab::strided(&[1, 0, 2], &[3, 1, 4], &[3, 1, 3], &[2, 5, 3]).unwrap();
        let far = Slab::dense(&[0, 7, 0], &[11, 2, 16]).unwrap();
        for slabs in [vec![odd.clone()], vec![odd, far]] {
            let selection = Selection::union(3, slabs.into_iter().flatten()).unwrap();
            for most in [1, 7, 64, 100_000] {
                let mut bytes = Vec::new();
                let mut each = |piece: &Selection| {
                    assert!(piece.len() <= most && !piece.is_empty());
                    bytes.extend(piece.runs(&[12, 9, 16], 1)?.flat_map(|run| run.offset..run.end()));
                    Ok(())
                };
                selection.for_each_part(most, &mut each).unwrap();
                let runs = selection.runs(&[12, 9, 16], 1).unwrap();
                assert_eq!(bytes, runs.flat_map(|run| run.offset..run.end()).collect::<Vec<u64>>());
            }
        }
    }
}
