use crate::oracle::{Set, build, elements, rank, raw_slab, union};
use hyperslab_core::Selection;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_union_has_the_elements_of_its_slabs((selection, set) in rank().prop_flat_map(union)) {
        prop_assert_eq!(elements(&selection), set.clone());
        prop_assert_eq!(selection.is_empty(), set.is_empty());
        let rank = selection.rank();
        let bounds = (!set.is_empty()).then(|| {
            let low = (0..rank).map(|d| set.iter().map(|c| c[d]).min().unwrap()).collect();
            let high = (0..rank).map(|d| set.iter().map(|c| c[d] + 1).max().unwrap()).collect();
            (low, high)
        });
        prop_assert_eq!(selection.bounds(), bounds);
    }

    #[test]
    fn set_operations_match_sets(((a, x), (b, y)) in rank().prop_flat_map(|r| (union(r), union(r)))) {
        prop_assert_eq!(elements(&a.intersect(&b).unwrap()), &x & &y);
        prop_assert_eq!(elements(&a.subtract(&b).unwrap()), &x - &y);
        prop_assert_eq!(elements(&a.union_with(&b).unwrap()), &x | &y);
        prop_assert_eq!(a.overlaps(&b), !x.is_disjoint(&y));
        prop_assert_eq!(a.same_elements(&b).unwrap(), x == y);
        let again = b.intersect(&a).unwrap().union_with(&a.subtract(&b).unwrap()).unwrap();
        prop_assert!(again.same_elements(&a).unwrap());
    }

    #[test]
    fn shifting_moves_every_element((selection, set) in rank().prop_flat_map(union), by in prop::array::uniform4(-8i64..9)) {
        let by = &by[..selection.rank()];
        let moved: Option<Set> = set
            .iter()
            .map(|c| c.iter().zip(by).map(|(i, d)| i.checked_add_signed(*d)).collect::<Option<Vec<_>>>())
            .collect();
        match (selection.shifted(by), moved) {
            (Ok(shifted), Some(moved)) => prop_assert_eq!(elements(&shifted), moved),
            (Err(_), None) => {}
            (shifted, moved) => prop_assert!(false, "{:?} but {:?}", shifted, moved),
        }
    }

    #[test]
    fn one_regular_slab_has_one_form(
        (raw, (cutter, _)) in rank().prop_flat_map(|r| (raw_slab(r), union(r))),
    ) {
        let whole = Selection::union(raw.len(), [build(&raw)]).unwrap();
        let inside = whole.intersect(&cutter).unwrap();
        let outside = whole.subtract(&cutter).unwrap();
        let pieces = outside.slabs().iter().chain(inside.slabs()).cloned();
        let again = Selection::union(raw.len(), pieces).unwrap();
        prop_assert!(again.same_elements(&whole).unwrap());
        prop_assert_eq!(again, whole);
    }
}

#[test]
fn a_rank_of_a_climate_model_stays_compact() {
    // 175,000 single elements of a field of levels and columns, scattered like a space-filling curve's leftovers.
    let (levels, columns) = (72u64, 866_400u64);
    let mut pieces = Vec::new();
    let mut state = 1u64;
    while pieces.len() < 175_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (level, column) = ((state >> 33) % levels, (state >> 40) % columns);
        pieces.push(hyperslab_core::Slab::dense(&[level, column], &[1, 1]).unwrap().unwrap());
    }
    let distinct: std::collections::HashSet<_> = pieces.iter().map(|p| p.start()).collect();
    let selection = Selection::union(2, pieces).unwrap();
    assert_eq!(selection.len(), distinct.len() as u64);
    assert!(selection.slabs().len() <= distinct.len());
    let runs: u64 = selection.runs(&[levels, columns], 8).unwrap().map(|run| run.len).sum();
    assert_eq!(runs, selection.len() * 8);
    assert!(selection.same_elements(&selection.clone()).unwrap());
    assert_eq!(selection.intersect(&selection).unwrap(), selection);

    // The same columns on every level are few slabs.
    let own: Vec<u64> = (0..2_400u64).map(|i| i * 361 + (i * i) % 97).collect();
    let column = |&c: &u64| hyperslab_core::Slab::dense(&[0, c], &[levels, 1]).unwrap().unwrap();
    let single = |l: u64| own.iter().map(move |&c| hyperslab_core::Slab::dense(&[l, c], &[1, 1]).unwrap().unwrap());
    let by_columns = Selection::union(2, own.iter().map(column)).unwrap();
    let by_elements = Selection::union(2, (0..levels).flat_map(single)).unwrap();
    assert!(by_elements.slabs().len() <= own.len());
    assert!(by_columns.same_elements(&by_elements).unwrap());
}
