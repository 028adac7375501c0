//! The coordinates of a selection, one by one.

use hyperslab_core::Selection;
use std::collections::BTreeSet;

/// Every selected coordinate. The order of the set is row-major, since that is the order of sequences of numbers.
pub(crate) fn coordinates(selection: &Selection) -> BTreeSet<Vec<u64>> {
    let mut out = BTreeSet::new();
    for slab in selection.slabs() {
        let mut partial = vec![Vec::new()];
        for span in slab.ranges() {
            let mut longer = Vec::new();
            for prefix in partial {
                for repeat in 0..span.count() {
                    for step in 0..span.block() {
                        let mut coordinate = prefix.clone();
                        coordinate.push(span.start() + repeat * span.stride() + step);
                        longer.push(coordinate);
                    }
                }
            }
            partial = longer;
        }
        out.extend(partial);
    }
    out
}

/// The number of the element at `coordinate` in a row-major array of `shape`.
pub(crate) fn linear(coordinate: &[u64], shape: &[u64]) -> u64 {
    coordinate.iter().zip(shape).fold(0, |number, (index, extent)| number * extent + index)
}

/// Whether `coordinate` lies in an array of `shape`.
pub(crate) fn inside(coordinate: &[u64], shape: &[u64]) -> bool {
    coordinate.len() == shape.len() && coordinate.iter().zip(shape).all(|(index, extent)| index < extent)
}
