//! Conversion of row-major element ranges to slabs.

use hyperslab_core::{Dims, Result, Row, Slab, dims};
use std::ops::Range;

/// Calls `each` with the boxes of a row-major element range of `shape` and their lengths, in order: at most two per
/// dimension. The range must be inside.
pub(crate) fn range_to_slabs(
    range: Range<u64>,
    shape: &[u64],
    mut each: impl FnMut(Slab, u64) -> Result<()>,
) -> Result<()> {
    let pitches = dims::pitches(shape);
    let mut at = range.start;
    while at < range.end {
        let mut start = coordinates(at, &pitches);
        // The slowest dimension in which whole rows can be taken from here.
        let whole = |d: &usize| at.is_multiple_of(pitches[*d]) && pitches[*d] <= range.end - at;
        let dimension = (0..shape.len()).find(whole);
        let (mut count, mut elements) = (Dims::from_elem(1, shape.len()), 1);
        if let Some(d) = dimension {
            count[d] = ((range.end - at) / pitches[d]).min(shape[d] - start[d]);
            count[d + 1..].copy_from_slice(&shape[d + 1..]);
            elements = count[d] * pitches[d];
            start[d + 1..].fill(0);
        }
        if let Some(slab) = Slab::dense(&start, &count)? {
            each(slab, elements)?;
        }
        at += elements;
    }
    Ok(())
}

/// A row of runs in elements of `shape` as one slab, if every run is a box and their distance is regular along one
/// dimension. `None` otherwise.
pub(super) fn regular(row: Row, shape: &[u64]) -> Result<Option<Slab>> {
    let pitches = dims::pitches(shape);
    let at = coordinates(row.offset, &pitches);
    let is_box = |d: &usize| {
        let (pitch, extent) = (pitches[*d], shape[*d]);
        row.len.is_multiple_of(pitch) && row.offset.is_multiple_of(pitch) && at[*d] + row.len / pitch <= extent
    };
    let Some(inner) = (0..shape.len()).rev().find(is_box) else { return Ok(None) };
    let block = row.len / pitches[inner];
    let holds = |d: &usize| {
        let (step, length) = (row.stride / pitches[*d], if *d == inner { block } else { 1 });
        row.stride.is_multiple_of(pitches[*d])
            && step > 0
            && step.checked_mul(row.count - 1).is_some_and(|reach| at[*d] + length <= shape[*d].saturating_sub(reach))
    };
    let Some(outer) = (0..=inner).find(holds) else { return Ok(None) };
    let (mut stride, mut count) = (Dims::from_elem(1, shape.len()), Dims::from_elem(1, shape.len()));
    let mut blocks = Dims::from_elem(1, shape.len());
    blocks[inner] = block;
    blocks[inner + 1..].copy_from_slice(&shape[inner + 1..]);
    stride.copy_from_slice(&blocks);
    stride[outer] = row.stride / pitches[outer];
    count[outer] = row.count;
    Slab::strided(&at, &stride, &count, &blocks)
}

fn coordinates(mut linear: u64, pitches: &[u64]) -> Dims {
    pitches
        .iter()
        .map(|pitch| {
            let index = linear / pitch;
            linear %= pitch;
            index
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{Run, Selection};
    use proptest::prelude::*;

    fn linear(slabs: Vec<Slab>, shape: &[u64]) -> Vec<u64> {
        let total: u64 = slabs.iter().map(Slab::len).sum();
        let selection = Selection::union(shape.len(), slabs).unwrap();
        assert_eq!(selection.len(), total, "slabs overlap");
        selection.runs(shape, 1).unwrap().flat_map(|run: Run| run.offset..run.end()).collect()
    }

    proptest! {
        #[test]
        fn rows_become_the_same_elements(
            shape in prop::collection::vec(1u64..7, 0..5),
            (offset, len, count, gap) in (0u64..1 << 40, 1u64..40, 1u64..9, 0u64..40),
        ) {
            let total: u64 = shape.iter().product();
            let offset = offset % total;
            let len = len.min(total - offset);
            let stride = len + gap;
            let count = count.min((total - offset - len) / stride + 1);
            if let Some(slab) = regular(Row { offset, len, count, stride }, &shape).unwrap() {
                let expected: Vec<u64> =
                    (0..count).flat_map(|i| offset + i * stride..offset + i * stride + len).collect();
                prop_assert_eq!(linear(vec![slab], &shape), expected);
            }

            let (mut list, mut at) = (Vec::new(), offset);
            range_to_slabs(offset..offset + len, &shape, |slab, elements| {
                assert_eq!(linear(vec![slab.clone()], &shape), (at..at + elements).collect::<Vec<_>>());
                at += elements;
                list.push(slab);
                Ok(())
            })
            .unwrap();
            prop_assert_eq!(at, offset + len);
            prop_assert!(list.len() <= (2 * shape.len()).max(1));
        }
    }

    #[test]
    fn columns_are_one_slab() {
        let slab = regular(Row { offset: 3, len: 2, count: 50, stride: 10 }, &[50, 10]).unwrap().unwrap();
        assert_eq!(slab, Slab::dense(&[0, 3], &[50, 2]).unwrap().unwrap());
        let slab = regular(Row { offset: 500, len: 20, count: 5, stride: 100 }, &[10, 10, 10]).unwrap().unwrap();
        assert_eq!(slab, Slab::dense(&[5, 0, 0], &[5, 2, 10]).unwrap().unwrap());
        assert_eq!(regular(Row { offset: 3, len: 2, count: 5, stride: 7 }, &[50, 10]).unwrap(), None);
    }
}
