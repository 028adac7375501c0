//! Long lists of requests as few regular pieces.

use hyperslab_core::{Error, Result, Selection, Slab};
use std::collections::BTreeMap;

/// Start, stride, count and block along one dimension.
type Comb = [u64; 4];

/// The union of runs of elements of an array of extents `dims`. Combs of equal distances become one piece in each dimension, so
/// that the same columns on all levels cost no more than on one. The order of runs matters only for how few pieces are found.
pub fn compact(dims: &[u64], runs: impl IntoIterator<Item = (u64, u64)>) -> Result<Selection> {
    let row = dims.last().copied().unwrap_or(1).max(1);
    let mut rows: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (mut offset, mut len) in runs {
        // No piece goes beyond its row.
        while len > 0 {
            let part = len.min(row - offset % row);
            rows.entry(offset / row).or_default().push((offset % row, part));
            (offset, len) = (offset + part, len - part);
        }
    }
    let outer = dims.split_last().map_or(&[][..], |(_, outer)| outer);
    let lines = rows.into_iter().map(|(row, runs)| (row, combs(runs).into_iter().map(|comb| vec![comb]).collect()));
    let mut slabs = Vec::new();
    for piece in pieces(outer, lines.collect()) {
        let along = |part: usize| piece.iter().map(|comb| comb[part]).collect::<Vec<u64>>();
        slabs.extend(Slab::strided(&along(0), &along(1), &along(2), &along(3))?);
    }
    let selection = Selection::union(dims.len(), slabs)?;
    selection.check_inside(dims).map_err(|error: Error| error.target("map"))?;
    Ok(selection)
}

/// Products of combs: the last one along the fastest dimension.
type Products = Vec<Vec<Comb>>;

/// Joins rows, whose numbers count through the dimensions `outer`, into products over all of them.
fn pieces(outer: &[u64], rows: Vec<(u64, Products)>) -> Products {
    let Some((extent, outer)) = outer.split_last() else {
        return rows.into_iter().flat_map(|(_, products)| products).collect();
    };
    // Rows of each next higher index, by what is in them.
    let mut planes: BTreeMap<u64, BTreeMap<Products, Vec<(u64, u64)>>> = BTreeMap::new();
    for (row, products) in rows {
        planes.entry(row / extent).or_default().entry(products).or_default().push((row % extent, 1));
    }
    let joined = planes.into_iter().map(|(plane, alike)| {
        let mut all = Products::new();
        for (products, rows) in alike {
            for comb in combs(rows) {
                all.extend(products.iter().map(|product| [comb].into_iter().chain(product.iter().copied()).collect()));
            }
        }
        (plane, all)
    });
    pieces(outer, joined.collect())
}

/// Runs as combs: neighbours in the list that have the same length and distance become one.
fn combs(runs: Vec<(u64, u64)>) -> Vec<Comb> {
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(runs.len());
    for (start, len) in runs {
        match joined.last_mut() {
            Some((before, known)) if *before + *known == start => *known += len,
            _ => joined.push((start, len)),
        }
    }
    let mut found: Vec<Comb> = Vec::new();
    for (start, len) in joined {
        match found.last_mut() {
            Some([first, stride, count, block]) if *block == len && start > *first => {
                if *count == 1 && start - *first >= len {
                    (*stride, *count) = (start - *first, 2);
                    continue;
                }
                if *count > 1 && start == *first + *stride * *count {
                    *count += 1;
                    continue;
                }
                found.push([start, len.max(1), 1, len]);
            }
            _ => found.push([start, len.max(1), 1, len]),
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn combs_on_all_levels_are_four_pieces() {
        let columns = (0..4u64).rev().flat_map(|comb| (0..13).map(move |tooth| (comb * 5 + tooth * 64, 1)));
        let columns: Vec<(u64, u64)> = columns.collect();
        let levels = (0..72u64).flat_map(|level| columns.iter().map(move |(at, len)| (level * 866 + at, *len)));
        let selection = compact(&[72, 866], levels).unwrap();
        assert_eq!((selection.len(), selection.slabs().len()), (72 * 52, 4));
    }

    #[test]
    fn whole_rows_are_taken_together() {
        let rows = [7u64, 8, 9, 20, 22, 24].map(|row| (row * 100, 100));
        assert_eq!(compact(&[30, 100], rows).unwrap().slabs().len(), 2);
        // A run over several rows, and its neighbour.
        assert_eq!(compact(&[4, 10], [(10, 20), (30, 10)]).unwrap(), Selection::dense(&[1, 0], &[3, 10]).unwrap());
    }

    proptest! {
        #[test]
        fn exactly_these_elements_are_selected(
            dims in prop::collection::vec(1u64..6, 1..4),
            wanted in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let whole: u64 = dims.iter().product();
            let mut elements: Vec<u64> = wanted.iter().map(|index| index.index(whole as usize) as u64).collect();
            let mut seen = std::collections::BTreeSet::new();
            elements.retain(|element| seen.insert(*element));
            let selection = compact(&dims, elements.iter().map(|element| (*element, 1))).unwrap();
            let runs = selection.runs(&dims, 1).unwrap();
            let found: Vec<u64> = runs.flat_map(|run| run.offset..run.offset + run.len).collect();
            prop_assert_eq!(found, seen.into_iter().collect::<Vec<_>>());
        }
    }
}
