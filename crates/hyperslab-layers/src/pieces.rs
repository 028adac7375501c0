//! Writes cut into pieces that fit in memory.

use hyperslab_core::{Dims, Result, Selection};

/// Calls `each` with parts of a selection that follow each other in packed memory and have at most `most` elements, where
/// one element is always allowed.
pub(crate) fn each_piece(
    selection: &Selection,
    most: u64,
    each: &mut dyn FnMut(&Selection) -> Result<()>,
) -> Result<()> {
    cut(selection, 0, most, each)
}

/// Elements are ordered by their first coordinate, then the second and so on: halves along the first dimension in which they
/// differ follow each other.
fn cut(part: &Selection, dim: usize, most: u64, each: &mut dyn FnMut(&Selection) -> Result<()>) -> Result<()> {
    let Some((low, high)) = part.bounds() else { return Ok(()) };
    if part.len() <= most || dim == part.rank() {
        return each(part);
    }
    if high[dim] - low[dim] == 1 {
        return cut(part, dim + 1, most, each);
    }
    let middle = low[dim] + (high[dim] - low[dim]) / 2;
    let counts = |from: &Dims, to: &Dims| -> Dims { to.iter().zip(from).map(|(to, from)| to - from).collect() };
    let (mut first_high, mut second_low) = (high.clone(), low.clone());
    (first_high[dim], second_low[dim]) = (middle, middle);
    for (from, to) in [(&low, &first_high), (&second_low, &high)] {
        let half = part.intersect(&Selection::dense(from, &counts(from, to))?)?;
        cut(&half, dim, most, each)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_and_are_all() {
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
            each_piece(&selection, most, &mut |piece| {
                assert!(piece.len() <= most.max(1));
                all.extend(runs(piece));
                Ok(())
            })
            .unwrap();
            assert_eq!(all, runs(&selection));
        }
    }
}
