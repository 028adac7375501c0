//! The naive counterpart: a selection is the set of its coordinates.

use hyperslab_core::{Dims, Selection, Slab};
use proptest::prelude::*;
use std::collections::BTreeSet;

pub type Set = BTreeSet<Vec<u64>>;

/// The coordinates of a slab.
pub fn slab_elements(slab: &Slab) -> Vec<Vec<u64>> {
    let mut out = vec![Vec::new()];
    for range in slab.ranges() {
        let indices: Vec<u64> = (0..range.count())
            .flat_map(|k| (0..range.block()).map(move |b| (k, b)))
            .map(|(k, b)| range.start() + k * range.stride() + b)
            .collect();
        out = out.iter().flat_map(|c| indices.iter().map(|i| [c.as_slice(), &[*i]].concat())).collect();
    }
    out
}

/// The coordinates of a selection, after checking its canonical form.
pub fn elements(selection: &Selection) -> Set {
    let mut set = Set::new();
    let mut last: Option<Dims> = None;
    for slab in selection.slabs() {
        assert_eq!(slab.ranges().len(), selection.rank());
        assert!(slab.len() > 0);
        for range in slab.ranges() {
            assert!(range.count() == 1 && range.stride() == range.block() || range.stride() > range.block());
        }
        assert!(last.is_none_or(|last| last < slab.start()), "slabs are not sorted");
        last = Some(slab.start());
        for element in slab_elements(slab) {
            assert!(set.insert(element), "slabs overlap");
        }
    }
    assert_eq!(selection.len(), set.len() as u64);
    set
}

/// start, stride, count, block of each dimension.
pub type Raw = Vec<(u64, u64, u64, u64)>;

pub fn raw_slab(rank: usize) -> impl Strategy<Value = Raw> {
    let most = if rank > 2 { 3u64 } else { 4 };
    let range =
        (0u64..6, 0u64..3, 1..most, 1..most).prop_map(|(start, gap, count, block)| (start, block + gap, count, block));
    prop::collection::vec(range, rank)
}

pub fn build(raw: &Raw) -> Slab {
    let each = |f: fn(&(u64, u64, u64, u64)) -> u64| raw.iter().map(f).collect::<Vec<_>>();
    Slab::strided(&each(|s| s.0), &each(|s| s.1), &each(|s| s.2), &each(|s| s.3)).unwrap().unwrap()
}

/// A union of a few strided slabs that may overlap, and its coordinates found without the code under test.
pub fn union(rank: usize) -> impl Strategy<Value = (Selection, Set)> {
    prop::collection::vec(raw_slab(rank), 0..5).prop_map(move |raws| {
        let mut set = Set::new();
        for raw in &raws {
            let mut partial = vec![Vec::new()];
            for &(start, stride, count, block) in raw {
                let mut next = Vec::new();
                for c in &partial {
                    for k in 0..count {
                        for b in 0..block {
                            next.push([c.as_slice(), &[start + k * stride + b]].concat());
                        }
                    }
                }
                partial = next;
            }
            set.extend(partial);
        }
        (Selection::union(rank, raws.iter().map(build)).unwrap(), set)
    })
}

pub fn rank() -> impl Strategy<Value = usize> {
    0usize..=4
}

/// Extents that hold the set, a little larger in some dimensions.
pub fn shape_around(rank: usize, set: &Set, more: &[u64]) -> Vec<u64> {
    (0..rank).map(|d| set.iter().map(|c| c[d] + 1).max().unwrap_or(1) + more[d]).collect()
}

/// The row-major number of an element.
pub fn linear(shape: &[u64], index: &[u64]) -> u64 {
    shape.iter().zip(index).fold(0, |at, (extent, i)| at * extent + i)
}
