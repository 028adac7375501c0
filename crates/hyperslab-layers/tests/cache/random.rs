//! Random reads and writes with little memory, compared with plain memory.

use super::{Selection, bytes, read, watched};
use hyperslab_core::{MemoryView, OpenMode, Slab, TransferMode};
use proptest::prelude::*;

const SHAPE: [u64; 2] = [24, 40];

fn slab() -> impl Strategy<Value = Slab> {
    let span = |extent: u64| {
        (0..extent, 1..6u64, 1..4u64, 0..3u64).prop_map(move |(start, count, block, gap)| {
            let block = block.min(extent - start);
            let stride = block + gap;
            (start, stride, count.min(1 + (extent - start - block) / stride), block)
        })
    };
    (span(SHAPE[0]), span(SHAPE[1])).prop_map(|(rows, columns)| {
        let pick = |of: fn(&(u64, u64, u64, u64)) -> u64| [of(&rows), of(&columns)];
        Slab::strided(&pick(|s| s.0), &pick(|s| s.1), &pick(|s| s.2), &pick(|s| s.3)).unwrap().unwrap()
    })
}

fn selection() -> impl Strategy<Value = Selection> {
    let boxed = (0..SHAPE[0], 0..SHAPE[1], 1..9u64, 1..41u64).prop_map(|(row, column, rows, columns)| {
        Selection::dense(&[row, column], &[rows.min(SHAPE[0] - row), columns.min(SHAPE[1] - column)]).unwrap()
    });
    prop_oneof![
        4 => boxed,
        2 => slab().prop_map(|slab| Selection::union(2, [slab]).unwrap()),
        1 => prop::collection::vec(slab(), 1..4).prop_map(|slabs| Selection::union(2, slabs).unwrap()),
        1 => Just(Selection::all(&SHAPE).unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn reads_equal_plain_memory(
        accesses in prop::collection::vec((selection(), 0..4u8, any::<bool>()), 1..60),
        layer in prop::sample::select(vec![
            "cache(memory=4KiB,block=64)", "cache(memory=4KiB,block=3x7)", "cache(memory=8KiB,block=2x40)", "cache(memory=1MiB)",
        ]),
        chunk in prop::sample::select(vec![None, Some([5u64, 9])]),
    ) {
        let (format, seen) = watched(layer);
        let chunk = chunk.as_ref().map(|chunk| &chunk[..]);
        let (container, array) = bytes(&*format, "random", &SHAPE, chunk, OpenMode::Update);
        let mut expected = super::values(0..SHAPE[0] * SHAPE[1]);
        for (number, (selection, kind, hint)) in accesses.into_iter().enumerate() {
            let places: Vec<usize> = selection.runs(&SHAPE, 1).unwrap()
                .flat_map(|run| run.offset as usize..run.end() as usize).collect();
            if hint {
                array.prefetch(&selection);
            }
            if kind == 0 {
                let data: Vec<u8> = (0..places.len()).map(|at| (at * 7 + number) as u8).collect();
                array.write(&selection, MemoryView::packed(&data), TransferMode::Independent).unwrap();
                places.iter().zip(&data).for_each(|(place, byte)| expected[*place] = *byte);
            } else {
                let found = read(&array, &selection);
                prop_assert!(places.iter().zip(&found).all(|(place, byte)| expected[*place] == *byte), "{selection:?}");
            }
        }
        prop_assert_eq!(read(&array, &Selection::all(&SHAPE).unwrap()), expected);
        seen.take_reads();
        container.close().unwrap();
    }
}
