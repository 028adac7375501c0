//! The tiles and exerciser kernels: who touches which elements, how often, and what is refused.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, Result, Selection, TransferMode};
use hyperslab_kernels::{DatasetRank, MAX_SIZES, Scaling, Slowest, Sweep, Tiles};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn tiles() -> impl Strategy<Value = Tiles> {
    let rank = prop_oneof![Just(DatasetRank::Two), Just(DatasetRank::Three), Just(DatasetRank::Four)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (1u64..4, 1u64..4, 1u64..5, 1u64..5, 2u64..5, 2u64..5, rank, flags).prop_map(
        |(process_rows, process_columns, steps, arrays, rows, columns, dataset_rank, (strong, array, chunked))| Tiles {
            ranks: (process_rows * process_columns) as usize,
            process_rows,
            process_columns,
            file: "t.h5".into(),
            steps,
            arrays,
            rows: if strong { rows * process_rows } else { rows },
            columns: if strong { columns * process_columns } else { columns },
            scaling: if strong { Scaling::Strong } else { Scaling::Weak },
            dataset_rank,
            slowest: if array { Slowest::Array } else { Slowest::Step },
            chunked,
            transfer: TransferMode::Collective,
            seed: 3,
        },
    )
}

fn sweep() -> impl Strategy<Value = Sweep> {
    let dimension = (1u64..4, 1u64..7, 0u64..4, 0u64..6);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (prop::collection::vec(dimension, 1..5), 0u64..5, 0u64..9, 0u64..20, flags).prop_map(
        |(dimensions, memory_block, memory_stride, shift, (chunked, attributes, derived))| Sweep {
            ranks: dimensions.iter().map(|d| d.0).product::<u64>() as usize,
            file: "s.h5".into(),
            grid: dimensions.iter().map(|d| d.0).collect(),
            extent: dimensions.iter().map(|d| d.1).collect(),
            file_blocks: dimensions.iter().map(|d| d.2).collect(),
            file_strides: dimensions.iter().map(|d| d.3).collect(),
            memory_block,
            memory_stride,
            chunked,
            shift,
            attributes,
            derived,
            transfer: TransferMode::Independent,
            seed: 3,
        },
    )
}

/// What a workload does, all ranks together.
#[derive(Default)]
struct Doing {
    /// For each name: the number of its declaration, and the selections.
    touched: BTreeMap<String, (u32, Vec<Selection>)>,
    /// How often each name was created by rank 0.
    created: BTreeMap<String, usize>,
    bytes: u64,
    largest_buffer: u64,
}

fn doing(workload: &Workload) -> Doing {
    let mut doing = Doing::default();
    for rank in 0..workload.header.ranks {
        let mut open: BTreeMap<u32, (String, u32)> = BTreeMap::new();
        for step in workload.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap() {
            match step {
                Step::Create { slot, array, name, .. } => {
                    assert!(open.insert(slot, (name.to_string(), array)).is_none(), "slot {slot} is open already");
                    *doing.created.entry(name.to_string()).or_default() += usize::from(rank == 0);
                }
                Step::Open { slot, array, name, .. } => {
                    assert!(open.insert(slot, (name.to_string(), array)).is_none(), "slot {slot} is open already");
                }
                Step::CloseArray { slot } => assert!(open.remove(&slot).is_some(), "slot {slot} is not open"),
                Step::Write { slot, selection, memory, .. } | Step::Read { slot, selection, memory, .. } => {
                    let (name, array) = &open[&slot];
                    let spec = &workload.header.arrays[*array as usize].spec;
                    selection.check_inside(&spec.shape).unwrap();
                    doing.bytes += selection.len() * spec.dtype.size();
                    let buffer = memory.buffer_len(&spec.dtype, selection.len()).unwrap();
                    doing.largest_buffer = doing.largest_buffer.max(buffer);
                    doing.touched.entry(name.clone()).or_insert((*array, Vec::new())).1.push(selection);
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "every array is closed");
    }
    doing
}

/// The union of disjoint selections.
fn disjoint_union(parts: &[Selection], rank: usize) -> Selection {
    let union = parts.iter().try_fold(Selection::empty(rank), |u, part| u.union_with(part)).unwrap();
    assert_eq!(parts.iter().map(Selection::len).sum::<u64>(), union.len(), "no element twice");
    union
}

proptest! {
    #[test]
    fn tiles_cover_every_dataset_once(t in tiles()) {
        let (write, read) = (t.write().unwrap(), t.read().unwrap());
        let datasets = match (t.dataset_rank, t.slowest) {
            (DatasetRank::Two, _) => t.steps * t.arrays,
            (DatasetRank::Three, Slowest::Step) => t.steps,
            (DatasetRank::Three, Slowest::Array) => t.arrays,
            (DatasetRank::Four, _) => 1,
        };
        for workload in [&write, &read] {
            let doing = doing(workload);
            prop_assert_eq!(doing.touched.len() as u64, datasets);
            let shape = &workload.header.arrays[0].spec.shape;
            for (_, parts) in doing.touched.values() {
                prop_assert_eq!(disjoint_union(parts, shape.len()), Selection::all(shape).unwrap());
            }
            prop_assert_eq!(doing.bytes, t.total_bytes().unwrap());
            prop_assert_eq!(doing.bytes, t.rank_bytes().unwrap() * t.ranks as u64);
            prop_assert_eq!(doing.largest_buffer, t.buffer_bytes().unwrap());
        }
        prop_assert!(doing(&read).created.is_empty());
        let created = doing(&write).created;
        prop_assert_eq!(created.len() as u64, datasets);
        prop_assert!(created.values().all(|times| *times == 1));
        let spec = &write.header.arrays[0].spec;
        prop_assert_eq!(spec.chunk.is_some(), t.chunked);
        if let Some(chunk) = &spec.chunk {
            let inner = t.buffer_bytes().unwrap() / 8;
            let all_arrays = if t.dataset_rank == DatasetRank::Four { t.arrays } else { 1 };
            prop_assert_eq!(chunk.iter().product::<u64>(), inner * all_arrays);
        }
    }

    #[test]
    fn a_sweep_touches_what_it_says(s in sweep()) {
        let write = doing(&s.write().unwrap());
        let read = doing(&s.read().unwrap());
        prop_assert_eq!(write.bytes, s.total_bytes().unwrap());
        prop_assert_eq!(read.bytes, s.read_bytes().unwrap());
        prop_assert_eq!(read.bytes, s.rank_bytes().unwrap() * s.ranks as u64);
        prop_assert_eq!(write.bytes, read.bytes * if s.derived { 9 } else { 1 });
        prop_assert_eq!(write.largest_buffer, s.buffer_bytes().unwrap());
        prop_assert_eq!(write.touched.len(), 1 + usize::from(s.derived));
        let header = s.write().unwrap().header;
        for (array, parts) in write.touched.values() {
            let shape = &header.arrays[*array as usize].spec.shape;
            let union = disjoint_union(parts, shape.len());
            let all = Selection::all(shape).unwrap();
            let gaps = (0..s.extent.len()).any(|d| shape[d] != s.extent[d] * s.grid[d]);
            prop_assert_eq!(union == all, !gaps, "every element, unless there are gaps");
        }
        // What is read is what was written, though each rank's part is another when shifted.
        let (name, (_, parts)) = read.touched.iter().next().unwrap();
        let rank = s.extent.len();
        prop_assert_eq!(disjoint_union(parts, rank), disjoint_union(&write.touched[name].1, rank));
        prop_assert_eq!(parts == &write.touched[name].1, s.shift % s.ranks as u64 == 0);
    }
}

fn some_tiles() -> Tiles {
    Tiles {
        ranks: 6,
        process_rows: 3,
        process_columns: 2,
        file: "t.h5".into(),
        steps: 4,
        arrays: 5,
        rows: 6,
        columns: 8,
        scaling: Scaling::Weak,
        dataset_rank: DatasetRank::Four,
        slowest: Slowest::Step,
        chunked: true,
        transfer: TransferMode::Independent,
        seed: 0,
    }
}

#[test]
fn tiles_have_iotest_shapes_chunks_and_names() {
    use {DatasetRank as R, Slowest as S};
    let cases = [
        (R::Four, S::Step, "dataset", &[4, 5, 18, 16][..], &[1, 5, 6, 8][..], Some(0)),
        (R::Four, S::Array, "dataset", &[5, 4, 18, 16], &[5, 1, 6, 8], Some(1)),
        (R::Three, S::Step, "step=0", &[5, 18, 16], &[1, 6, 8], None),
        (R::Three, S::Array, "array=0", &[4, 18, 16], &[1, 6, 8], Some(0)),
        (R::Two, S::Step, "step=0/array=0", &[18, 16], &[6, 8], None),
        (R::Two, S::Array, "array=0/step=0", &[18, 16], &[6, 8], None),
    ];
    for (dataset_rank, slowest, name, shape, chunk, grows) in cases {
        let write = Tiles { dataset_rank, slowest, ..some_tiles() }.write().unwrap();
        let spec = &write.header.arrays[0].spec;
        assert_eq!((spec.shape.as_slice(), spec.chunk.as_deref()), (shape, Some(chunk)));
        let grown = spec.max_shape.as_ref().and_then(|max| max.iter().position(Option::is_none));
        assert_eq!(grown, grows, "{name}");
        assert_eq!(doing(&write).created.keys().next().unwrap(), name);
    }
    let strong = Tiles { scaling: Scaling::Strong, ..some_tiles() }.write().unwrap();
    assert_eq!(strong.header.arrays[0].spec.shape.as_slice(), [4, 5, 6, 8]);
    assert_eq!(strong.header.arrays[0].spec.chunk.as_deref(), Some(&[1, 5, 2, 4][..]));
}

#[test]
fn ten_thousand_million_tiles_are_made_one_at_a_time() {
    let t = Tiles { steps: 100_000, arrays: 100_000, dataset_rank: DatasetRank::Two, ..some_tiles() };
    let workload = t.write().unwrap();
    let mut steps = workload.steps(5).unwrap();
    let later = steps.by_ref().filter(|s| matches!(s, Ok(Step::Write { .. }))).nth(150_000).unwrap().unwrap();
    assert!(matches!(later, Step::Write { .. }));
}

#[test]
fn tiles_that_contradict_themselves_are_refused() {
    let t = some_tiles();
    let cases = [
        (Tiles { steps: 0, ..t.clone() }, "at least 1"),
        (Tiles { arrays: 0, ..t.clone() }, "at least 1"),
        (Tiles { process_rows: 0, ..t.clone() }, "at least 1"),
        (Tiles { rows: 1, ..t.clone() }, "at least 2 rows"),
        (Tiles { columns: 0, ..t.clone() }, "at least 2 rows"),
        (Tiles { ranks: 4, ..t.clone() }, "not for 4 ranks"),
        (Tiles { process_rows: u64::MAX, ..t.clone() }, "not for 6 ranks"),
        (Tiles { scaling: Scaling::Strong, rows: 7, ..t.clone() }, "cannot be divided evenly"),
        (Tiles { rows: u64::MAX, ..t.clone() }, "2^64"),
        (Tiles { steps: 1 << 40, arrays: 1 << 20, ..t.clone() }, "2^6"),
        (Tiles { file: "../t".into(), ..t }, "relative"),
    ];
    for (tiles, message) in cases {
        let error = tiles.write().unwrap_err().to_string();
        assert!(error.contains(message), "{error} should contain {message:?}");
        assert!(tiles.read().is_err());
    }
}

fn some_sweep() -> Sweep {
    Sweep {
        ranks: 6,
        file: "s.h5".into(),
        extent: [4, 6].as_slice().into(),
        grid: [3, 2].as_slice().into(),
        memory_block: 3,
        memory_stride: 5,
        file_blocks: [2, 3].as_slice().into(),
        file_strides: [3, 1].as_slice().into(),
        chunked: true,
        shift: 0,
        attributes: true,
        derived: true,
        transfer: TransferMode::Collective,
        seed: 0,
    }
}

#[test]
fn blocks_and_strides_are_those_of_the_exerciser() {
    let s = some_sweep();
    let write = s.write().unwrap();
    let [doubles, compounds] = [0, 1].map(|i| write.header.arrays[i].spec.clone());
    // Two blocks of 2 rows, 3 apart; the stride of the columns is smaller than a block and so has no effect.
    assert_eq!((doubles.shape.as_slice(), doubles.chunk.as_deref()), (&[18, 12][..], Some(&[2, 3][..])));
    assert_eq!((compounds.shape.as_slice(), compounds.chunk.as_deref()), (&[12, 12][..], Some(&[4, 6][..])));
    assert_eq!(compounds.dtype.size(), 64);
    let (_, parts) = &doing(&write).touched["Data/hdf5DataSet1-iter0-size40"];
    assert_eq!(parts[3], Selection::strided(&[6, 6], &[3, 6], &[2, 1], &[2, 6]).unwrap());
    assert!(s.blocks_fit());
    let odd = Sweep { file_blocks: [3, 3].as_slice().into(), memory_block: 5, ..s.clone() };
    assert!(!odd.blocks_fit());
    assert_eq!(odd.write().unwrap().header.arrays[0].spec.shape.as_slice(), [12, 12]);
    let attributes =
        |s: &Sweep| s.write().unwrap().steps(0).unwrap().filter(|s| matches!(s, Ok(Step::Attribute { .. }))).count();
    assert_eq!(attributes(&s) - attributes(&Sweep { attributes: false, ..s.clone() }), 64);
}

#[test]
fn sizes_multiply_and_grids_fall_back() {
    let sizes = Sweep::sizes(&[8, 1], &[2, 3], 3).unwrap();
    assert_eq!(sizes, [[8, 1], [16, 3], [32, 9]].map(|d| Dims::from_slice(&d)));
    assert!(Sweep::sizes(&[8], &[2, 3], 3).is_err());
    assert!(Sweep::sizes(&[8], &[2], 0).is_err());
    assert!(Sweep::sizes(&[8], &[2], MAX_SIZES + 1).is_err());
    assert!(Sweep::sizes(&[8], &[2], 100).unwrap_err().to_string().contains("beyond 2^64"));
    assert_eq!(Sweep::process_grid(&[2, 3], 2, 6), ([2, 3].as_slice().into(), true));
    for asked in [&[8, 4][..], &[], &[6], &[u64::MAX, 3], &[0, 6]] {
        assert_eq!(Sweep::process_grid(asked, 2, 6), ([6, 1].as_slice().into(), false), "{asked:?}");
    }
}

#[test]
fn sweeps_that_contradict_themselves_are_refused() {
    let s = some_sweep();
    let many: Dims = std::iter::repeat_n(1, 33).collect();
    let cases = [
        (Sweep { extent: Dims::new(), ..s.clone() }, "0 dimensions"),
        (Sweep { extent: many, ..s.clone() }, "33 dimensions"),
        (Sweep { extent: [4].as_slice().into(), ..s.clone() }, "not for 1 dimensions"),
        (Sweep { extent: [4, 0].as_slice().into(), ..s.clone() }, "at least 1"),
        (Sweep { grid: [3, 3].as_slice().into(), ..s.clone() }, "not for 6 ranks"),
        (Sweep { ranks: 0, ..s.clone() }, "not for 0 ranks"),
        (Sweep { file_strides: [u64::MAX, 1].as_slice().into(), ..s.clone() }, "beyond 2^64"),
        (Sweep { file_strides: [1 << 62, 1].as_slice().into(), ..s.clone() }, "2^6"),
        (Sweep { memory_stride: u64::MAX, ..s.clone() }, "2^64"),
        (Sweep { extent: [1 << 40, 1 << 40].as_slice().into(), ..s.clone() }, "2^64"),
        (Sweep { extent: [1 << 30, 1 << 25].as_slice().into(), ..s.clone() }, "2^63"),
        (Sweep { file: "/s".into(), ..s }, "relative"),
    ];
    for (sweep, message) in cases {
        let error = sweep.write().unwrap_err().to_string();
        assert!(error.contains(message), "{error} should contain {message:?}");
        assert!(sweep.read().is_err());
        sweep.blocks_fit();
    }
}
