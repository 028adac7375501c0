//! Splits a selection into pieces of bounded size, in row-major order.

use hyperslab_core::{Dims, Result, Selection};

/// Calls `each` with pieces of at most `limit` elements (at least 1), in row-major order of their elements. Memory is
/// proportional to the slabs of one piece, not to the number of elements.
pub(super) fn split(selection: &Selection, limit: u64, each: &mut dyn FnMut(&Selection) -> Result<()>) -> Result<()> {
    if selection.is_empty() {
        return Ok(());
    }
    if selection.len() <= limit.max(1) {
        return each(selection);
    }
    let Some((low, high)) = selection.bounds() else { return Ok(()) };
    // Splitting along the slowest dimension with extent > 1 keeps row-major order.
    let Some(dimension) = (0..low.len()).find(|&d| high[d] - low[d] > 1) else { return each(selection) };
    let middle = low[dimension] + (high[dimension] - low[dimension]) / 2;
    for (from, to) in [(low[dimension], middle), (middle, high[dimension])] {
        let (mut start, mut end) = (low.clone(), high.clone());
        (start[dimension], end[dimension]) = (from, to);
        let extents: Dims = end.iter().zip(&start).map(|(e, s)| e - s).collect();
        split(&selection.intersect(&Selection::dense(&start, &extents)?)?, limit, each)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Slab;

    #[test]
    fn pieces_keep_the_order_and_the_bound() {
        let odd = Slab::strided(&[1, 0, 2], &[3, 1, 4], &[3, 1, 3], &[2, 5, 3]).unwrap();
        let far = Slab::dense(&[0, 7, 0], &[11, 2, 16]).unwrap();
        let shape = [12, 9, 16];
        for slabs in [vec![odd.clone()], vec![odd, far]] {
            let selection = Selection::union(3, slabs.into_iter().flatten()).unwrap();
            for limit in [1, 7, 64, 100_000] {
                let mut bytes = Vec::new();
                split(&selection, limit, &mut |piece| {
                    assert!(piece.len() <= limit && !piece.is_empty());
                    bytes.extend(piece.runs(&shape, 1)?.flat_map(|run| run.offset..run.end()));
                    Ok(())
                })
                .unwrap();
                let whole: Vec<u64> =
                    selection.runs(&shape, 1).unwrap().flat_map(|run| run.offset..run.end()).collect();
                assert_eq!(bytes, whole);
            }
        }
    }
}
