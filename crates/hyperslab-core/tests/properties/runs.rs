use crate::oracle::{linear, rank, shape_around, union};
use hyperslab_core::{Run, zip_runs};
use proptest::prelude::*;

proptest! {
    #[test]
    fn runs_are_the_bytes_of_the_set(
        (selection, set) in rank().prop_flat_map(union),
        more in prop::array::uniform4(0u64..3),
        element in 1u64..6,
    ) {
        let shape = shape_around(selection.rank(), &set, &more);
        let runs: Vec<Run> = selection.runs(&shape, element).unwrap().collect();
        prop_assert!(runs.iter().all(|run| run.len > 0));
        prop_assert!(runs.windows(2).all(|w| w[0].end() < w[1].offset), "not rising, or not joined: {:?}", runs);
        let bytes: Vec<u64> = runs.iter().flat_map(|run| run.offset..run.end()).collect();
        let expected: Vec<u64> =
            set.iter().map(|c| linear(&shape, c) * element).flat_map(|at| at..at + element).collect();
        prop_assert_eq!(&bytes, &expected);
        prop_assert_eq!(selection.first_byte(&shape, element), expected.first().copied());
        prop_assert_eq!(selection.last_byte(&shape, element), expected.last().copied());

        if let Some(mut rows) = selection.runs(&shape, element).unwrap().into_rows() {
            let mut by_rows = Vec::new();
            while let Some(row) = rows.next_row() {
                by_rows.extend((0..row.count).map(|i| row.offset + i * row.stride).flat_map(|at| at..at + row.len));
            }
            prop_assert_eq!(by_rows, expected);
        }
    }

    #[test]
    fn zipped_runs_pair_every_byte(cuts in prop::collection::vec((1u64..9, 0u64..5), 0..12), other in 1u64..7) {
        let mut at = 0;
        let a: Vec<Run> = cuts.iter().map(|&(len, gap)| { at += gap; let run = Run { offset: at, len }; at += len; run }).collect();
        let total: u64 = a.iter().map(|run| run.len).sum();
        let b: Vec<Run> = (0..total.div_ceil(other))
            .map(|i| Run { offset: 100 + 10 * i, len: other.min(total - i * other) })
            .collect();
        let bytes = |runs: &[Run]| runs.iter().flat_map(|run| run.offset..run.end()).collect::<Vec<_>>();
        let expected: Vec<(u64, u64)> = bytes(&a).into_iter().zip(bytes(&b)).collect();
        let pairs: Vec<(u64, u64)> =
            zip_runs(a.into_iter(), b.into_iter()).flat_map(|(x, y, n)| (0..n).map(move |i| (x + i, y + i))).collect();
        prop_assert_eq!(pairs, expected);
    }
}

#[test]
fn selections_outside_and_elements_of_nothing_are_refused() {
    let selection = hyperslab_core::Selection::dense(&[0, 4], &[2, 2]).unwrap();
    assert!(selection.runs(&[2, 5], 1).is_err());
    assert!(selection.runs(&[2], 1).is_err());
    assert!(selection.runs(&[2, 6], 0).is_err());
    assert!(selection.runs(&[1 << 31, 1 << 31], 4).is_err());
    assert_eq!(selection.runs(&[2, 6], 1).unwrap().count(), 2);
    // Whatever the shape, offsets do not overflow.
    assert!(selection.first_byte(&[u64::MAX, u64::MAX], u64::MAX).is_some());
    assert!(selection.last_byte(&[], 0).is_some());
}
