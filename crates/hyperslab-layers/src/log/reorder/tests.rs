//! Reordering against an oracle: applying the requests one after the other.
#![allow(clippy::unwrap_used)]

use super::*;
use hyperslab_core::{Run, Selection, Slab};
use proptest::prelude::*;
use std::cell::Cell;

struct Sample {
    shape: Vec<u64>,
    element: u64,
    selections: Vec<Selection>,
    flattened: Cell<u64>,
}

impl Requests for Sample {
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>> {
        self.flattened.set(self.flattened.get() + 1);
        Ok(Box::new(self.selections[number as usize].runs(&self.shape, self.element)?))
    }
}

impl Sample {
    fn new(shape: &[u64], element: u64, selections: Vec<Selection>) -> Self {
        Self { shape: shape.into(), element, selections, flattened: Cell::new(0) }
    }

    fn entries(&self) -> Vec<Entry> {
        let each = self.selections.iter().enumerate();
        each.filter_map(|(n, s)| Entry::new(n as u32, s, &self.shape, self.element).unwrap()).collect()
    }

    /// The bytes of a request: none equal to another's at the same place.
    fn payload(&self, number: u32) -> Vec<u32> {
        (0..(self.selections[number as usize].len() * self.element) as u32).map(|at| (number + 1) << 16 | at).collect()
    }

    fn apply(&self, number: u32, array: &mut [u32]) {
        let payload = self.payload(number);
        let mut at = 0;
        for run in self.selections[number as usize].runs(&self.shape, self.element).unwrap() {
            let (offset, len) = (run.offset as usize, run.len as usize);
            array[offset..offset + len].copy_from_slice(&payload[at..at + len]);
            at += len;
        }
    }

    fn blank(&self) -> Vec<u32> {
        vec![0; (self.shape.iter().product::<u64>() * self.element) as usize]
    }

    fn in_order(&self) -> Vec<u32> {
        let mut array = self.blank();
        (0..self.selections.len() as u32).for_each(|number| self.apply(number, &mut array));
        array
    }

    /// The array after the reordered writes, what was counted, and the first and last byte of every stretch.
    fn reordered(&self, limits: &ReorderLimits) -> (Vec<u32>, Counts, Vec<(u64, u64)>) {
        let mut array = self.blank();
        let (counts, stretches) = self.reorder_over(limits, &mut array);
        (array, counts, stretches)
    }

    fn reorder_over(&self, limits: &ReorderLimits, array: &mut [u32]) -> (Counts, Vec<(u64, u64)>) {
        let mut stretches = Vec::new();
        let counts = reorder(&mut self.entries(), self, limits, &mut |write| {
            match write {
                Write::Whole(number) => self.apply(number, array),
                Write::Extent(parts) => {
                    let mut bytes = 0;
                    for (n, part) in parts.iter().enumerate() {
                        assert!(n == 0 || parts[n - 1].offset + parts[n - 1].len == part.offset);
                        let payload = self.payload(part.request);
                        let (offset, at, len) = (part.offset as usize, part.at as usize, part.len as usize);
                        array[offset..offset + len].copy_from_slice(&payload[at..at + len]);
                        bytes += part.len;
                    }
                    assert!(parts.len() <= limits.parts && (bytes <= limits.bytes || parts.len() == 1));
                    stretches.push((parts[0].offset, parts[0].offset + bytes));
                    let selection = selection_of(&self.shape, self.element, parts[0].offset, bytes).unwrap();
                    let runs: Vec<Run> = selection.runs(&self.shape, self.element).unwrap().collect();
                    assert_eq!((runs.len(), runs[0].offset, runs[0].len), (1, parts[0].offset, bytes));
                    assert!(selection.slabs().len() <= 2 * self.shape.len());
                }
            }
            Ok(())
        });
        (counts.unwrap(), stretches)
    }
}

/// Start, stride, count, block along one dimension of an extent.
fn span(extent: u64) -> impl Strategy<Value = [u64; 4]> {
    (0..extent, 1u64..4, 1u64..5, 0u64..3).prop_map(move |(start, block, count, gap)| {
        let stride = block + gap;
        let room = extent - start;
        let block = block.min(room);
        [start, stride, count.min((room - block) / stride + 1), block]
    })
}

fn selection(shape: [u64; 3]) -> impl Strategy<Value = Selection> {
    let slab = (span(shape[0]), span(shape[1]), span(shape[2])).prop_map(|(a, b, c)| {
        let part = |n: usize| [a[n], b[n], c[n]];
        Slab::strided(&part(0), &part(1), &part(2), &part(3)).unwrap().unwrap()
    });
    prop::collection::vec(slab, 0..3).prop_map(|slabs| Selection::union(3, slabs).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_result_is_that_of_the_requests_in_order(
        selections in prop::collection::vec(selection([5, 6, 7]), 0..40),
        element in 1u64..4,
        bytes in 1u64..600,
        parts in 1usize..20,
        flattened in 1usize..50,
    ) {
        let sample = Sample::new(&[5, 6, 7], element, selections);
        let limits = ReorderLimits { bytes, parts, flattened, ..ReorderLimits::default() };
        let (array, counts, _) = sample.reordered(&limits);
        prop_assert_eq!(array, sample.in_order());
        prop_assert_eq!(counts.flattened, sample.flattened.get());
    }

    #[test]
    fn shares_of_the_array_make_the_whole(
        selections in prop::collection::vec(selection([5, 6, 7]), 0..40),
        element in 1u64..4,
        bytes in 1u64..600,
        flattened in 1usize..50,
        cut in 0u64..5 * 6 * 7,
        unit in prop::sample::select(vec![1u64, 7, 42]),
        last_first in any::<bool>(),
    ) {
        let sample = Sample::new(&[5, 6, 7], element, selections);
        let (cut, unit) = (cut * element, unit * element);
        let shares = [ReorderLimits { to: cut, ..ReorderLimits::default() }, ReorderLimits { from: cut, ..ReorderLimits::default() }];
        let mut array = sample.blank();
        for share in [usize::from(last_first), usize::from(!last_first)].map(|at| shares[at]) {
            let before = array.clone();
            sample.reorder_over(&ReorderLimits { bytes, flattened, unit, ..share }, &mut array);
            let (from, to) = (share.from as usize, array.len().min(share.to as usize));
            prop_assert!(array[..from] == before[..from] && array[to..] == before[to..], "it leaves its share");
        }
        prop_assert_eq!(array, sample.in_order());
    }

    #[test]
    fn without_limits_stretches_rise_and_never_touch(selections in prop::collection::vec(selection([4, 5, 6]), 1..30)) {
        let sample = Sample::new(&[4, 5, 6], 1, selections);
        let (array, _, stretches) = sample.reordered(&ReorderLimits::default());
        prop_assert_eq!(array, sample.in_order());
        prop_assert!(stretches.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", stretches);
    }

    #[test]
    fn contiguous_bytes_are_a_selection(shape in prop::collection::vec(1u64..5, 0..4), element in 1u64..4, ends in any::<[prop::sample::Index; 2]>()) {
        let all = shape.iter().product::<u64>();
        let [a, b] = ends.map(|end| end.index(all as usize + 1) as u64);
        let (from, to) = (a.min(b), a.max(b));
        let selection = selection_of(&shape, element, from * element, (to - from) * element).unwrap();
        prop_assert_eq!(selection.len(), to - from);
        let runs: Vec<Run> = selection.runs(&shape, element).unwrap().collect();
        prop_assert!(runs.len() <= 1 && runs.iter().all(|run| run.offset == from * element));
        prop_assert!(selection_of(&shape, element, 0, (all + 1) * element).is_err());
    }
}

#[test]
fn requests_that_do_not_interleave_are_never_flattened() {
    // Rows in any order, strided requests between them, all apart.
    let shape = [1000, 64];
    let mut selections: Vec<Selection> = (0..1000u64)
        .filter(|row| row % 4 < 3)
        .map(|row| match row % 4 {
            0 => Selection::strided(&[row, 1], &[1, 3], &[1, 20], &[1, 2]).unwrap(),
            _ => Selection::dense(&[row, 0], &[1, 64]).unwrap(),
        })
        .collect();
    selections.reverse();
    selections.rotate_left(333);
    let sample = Sample::new(&shape, 8, selections);
    let (array, counts, stretches) = sample.reordered(&ReorderLimits::default());
    assert_eq!(array, sample.in_order());
    assert_eq!((sample.flattened.get(), counts.flattened, counts.groups), (0, 0, 750));
    assert_eq!((counts.writes, stretches.len()), (500, 250), "two rows are one stretch");
    assert!(stretches.iter().all(|(from, to)| to - from == 2 * 64 * 8));
}

#[test]
fn long_stretches_end_at_a_unit() {
    let selections = (0..10u64).map(|row| Selection::dense(&[row, 0], &[1, 30]).unwrap()).collect();
    let sample = Sample::new(&[10, 30], 1, selections);
    let (array, _, stretches) = sample.reordered(&ReorderLimits { bytes: 100, unit: 60, ..ReorderLimits::default() });
    assert_eq!(array, sample.in_order());
    assert_eq!(stretches, [(0, 60), (60, 120), (120, 180), (180, 240), (240, 300)]);
}

#[test]
fn interleaved_columns_become_one_stretch() {
    let selections = (0..8u64).map(|column| Selection::dense(&[0, column], &[100, 1]).unwrap()).collect();
    let sample = Sample::new(&[100, 8], 4, selections);
    let (array, counts, stretches) = sample.reordered(&ReorderLimits::default());
    assert_eq!(array, sample.in_order());
    assert_eq!((counts.groups, counts.flattened, counts.writes), (1, 8, 1));
    assert_eq!(stretches, [(0, 3200)]);
}

#[test]
fn an_error_of_the_receiver_ends_it() {
    let sample = Sample::new(&[10], 1, (0..5).map(|n| Selection::dense(&[n * 2], &[1]).unwrap()).collect());
    let mut calls = 0;
    let result = reorder(&mut sample.entries(), &sample, &ReorderLimits::default(), &mut |_| {
        calls += 1;
        Err(hyperslab_core::Error::invalid("test", "stop"))
    });
    assert!(result.is_err() && calls == 1);
}
