//! The pattern of IOR: offsets by the published rule, files covered exactly, whatever moves offsets.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, Result, TransferMode};
use hyperslab_kernels::ior::{Ior, Layout, Order, Readers, Stripes, Writers, targets_per_client};
use proptest::prelude::*;

/// What a call of a rank touches: the array, and ranges of bytes in it in storage order.
type Touched = (String, Vec<(u64, u64)>);

/// All calls of a rank, and the last shape of the array.
fn calls(workload: &Workload, rank: usize) -> (Vec<Touched>, Dims) {
    let spec = &workload.header.arrays[0].spec;
    let (mut shape, mut open, mut calls) = (spec.shape.clone(), None, Vec::new());
    for step in workload.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap() {
        match step {
            Step::Create { name, .. } | Step::Open { name, .. } => {
                assert!(open.replace(name.to_string()).is_none(), "one array is open at a time");
            }
            Step::CloseArray { .. } => assert!(open.take().is_some()),
            Step::Resize { shape: new, .. } => {
                assert!(new > shape, "it only grows");
                shape = new;
            }
            Step::Write { selection, .. } | Step::Read { selection, .. } => {
                selection.check_inside(&shape).unwrap();
                let runs = selection.runs(&shape, spec.dtype.size()).unwrap();
                calls.push((open.clone().unwrap(), runs.map(|run| (run.offset, run.len)).collect()));
            }
            _ => {}
        }
    }
    assert!(open.is_none());
    (calls, shape)
}

fn layouts(transfer: u64) -> impl Strategy<Value = Layout> {
    let rows = (1u64..4, any::<bool>(), any::<bool>()).prop_map(move |(n, chunked, grows)| Layout::Grid {
        columns: n * transfer,
        rows: None,
        chunk: chunked.then_some([2, 8]),
        grows,
    });
    prop_oneof![
        Just(Layout::Words),
        Just(Layout::WordsPerSegment),
        Just(Layout::ChunkedWords(3)),
        Just(Layout::GrowingBytes { chunk: 16 }),
        Just(Layout::Bytes { chunk: None }),
        rows,
    ]
}

fn patterns() -> impl Strategy<Value = Ior> {
    let sizes = (1usize..6, 1u64..4, 1u64..5, 1u64..5, any::<bool>(), any::<bool>());
    sizes.prop_flat_map(|(ranks, words, per_block, segments, file_per_rank, collective)| {
        layouts(words * 8).prop_map(move |layout| Ior {
            file_per_rank,
            transfer: words * 8,
            block: words * 8 * per_block,
            segments,
            layout,
            mode: if collective { TransferMode::Collective } else { TransferMode::Independent },
            ..Ior::new(ranks, "f")
        })
    })
}

/// Where a range of bytes of an array lies in the container.
fn in_container(ior: &Ior, (name, ranges): &Touched) -> Vec<(u64, u64)> {
    let segment: u64 = name.strip_prefix("Dataset-0000.").map_or(0, |number| number.parse().unwrap());
    let base = segment * ior.segment_bytes();
    ranges.iter().map(|(offset, length)| (base + offset, *length)).collect()
}

/// Whether ranges cover a container once and only once.
fn tiles(mut ranges: Vec<(u64, u64)>, bytes: u64) -> bool {
    ranges.sort_unstable();
    let end = ranges.iter().try_fold(0, |end, (offset, length)| (*offset == end).then_some(end + length));
    end == Some(bytes)
}

proptest! {
    /// The rule, by three loops that know nothing of the generator.
    #[test]
    fn offsets_are_those_of_the_rule(ior in patterns(), shift in 0usize..7) {
        let (n, b, t) = (ior.ranks as u64, ior.block, ior.transfer);
        for (workload, shift) in [(ior.write().unwrap(), 0), (ior.read(Readers::Shifted(shift)).unwrap(), shift as u64)] {
            for rank in 0..n {
                let owner = (rank + shift) % n;
                let mut expected = Vec::new();
                for i in 0..ior.segments {
                    for j in 0..b / t {
                        expected.push(if ior.file_per_rank { i * b + j * t } else { i * n * b + owner * b + j * t });
                    }
                }
                let (found, shape) = calls(&workload, rank as usize);
                let found: Vec<u64> = found.iter().map(|call| {
                    let ranges = in_container(&ior, call);
                    assert_eq!(ranges.iter().map(|range| range.1).sum::<u64>(), t);
                    ranges[0].0
                }).collect();
                prop_assert_eq!(&found, &expected);
                let bytes: u64 = shape.iter().product::<u64>() * workload.header.arrays[0].spec.dtype.size();
                let datasets = if ior.layout == Layout::WordsPerSegment { ior.segments } else { 1 };
                prop_assert!(bytes * datasets >= ior.container_bytes());
                prop_assert_eq!(ior.calls(owner as usize).unwrap(), expected.len() as u64);
            }
        }
    }

    /// Every byte is written once by the rank that is said to write it, in whatever order.
    #[test]
    fn calls_tile_the_file(
        ior in patterns(), shuffled in any::<bool>(), seed in any::<u32>(), gather in 1u64..4
    ) {
        let ior = match shuffled {
            true => Ior { order: Order::Shuffled { seed }, ..ior },
            false => Ior { gather, ..ior },
        };
        let Ok(workload) = ior.write() else { return Ok(()) };
        let mut shared = Vec::new();
        let mut counts = Vec::new();
        for rank in 0..ior.ranks {
            let (found, _) = calls(&workload, rank);
            counts.push(found.len());
            let ranges: Vec<_> = found.iter().flat_map(|call| in_container(&ior, call)).collect();
            let writers = Writers::of(&ior, rank);
            for (offset, length) in &ranges {
                prop_assert!((*offset..offset + length).all(|byte| writers.rank_at(byte) == rank));
            }
            if ior.file_per_rank {
                prop_assert!(tiles(ranges, ior.container_bytes()));
            } else {
                shared.extend(ranges);
            }
        }
        prop_assert!(ior.file_per_rank || tiles(shared, ior.container_bytes()));
        prop_assert!(!ior.in_step() || counts.iter().all(|count| *count == counts[0]), "ranks make calls together");
    }

    /// Random blocks are blocks of the file, and the reader of a rank's blocks finds the same ones.
    #[test]
    fn random_blocks_are_the_same_for_writer_and_reader(ior in patterns(), seed in any::<u32>()) {
        let ior = Ior { order: Order::RandomBlocks { seed }, ..ior };
        let (Ok(write), Ok(read)) = (ior.write(), ior.read(Readers::Shifted(1))) else { return Ok(()) };
        for rank in 0..ior.ranks {
            let written = calls(&write, (rank + 1) % ior.ranks).0;
            prop_assert_eq!(&written, &calls(&read, rank).0);
            let first: Vec<u64> = written.iter().map(|call| call.1[0].0).collect();
            let per_block = (ior.block / ior.transfer) as usize;
            prop_assert!(first.chunks(per_block).all(|block| block[0] % ior.block == 0));
        }
    }

    #[test]
    fn shuffled_readers_are_a_permutation(ranks in 1usize..20, seed in any::<u32>(), distance in 0usize..25) {
        let mut seen: Vec<usize> = (0..ranks).map(|rank| Readers::shuffled(ranks, seed).of(rank, ranks)).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..ranks).collect::<Vec<_>>());
        let random = Readers::random(ranks, seed, distance);
        for rank in 0..ranks {
            prop_assert!((random.of(rank, ranks) + ranks - rank) % ranks >= distance.min(ranks - 1));
        }
    }
}

#[test]
fn a_call_can_gather_blocks_of_several_segments() {
    let ior = Ior { block: 16, transfer: 16, segments: 5, gather: 2, ..Ior::new(3, "f") };
    let (found, _) = calls(&ior.write().unwrap(), 1);
    let ranges: Vec<_> = found.into_iter().map(|call| call.1).collect();
    assert_eq!(ranges, [vec![(16, 16), (64, 16)], vec![(112, 16), (160, 16)], vec![(208, 16)]]);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let good = || Ior { block: 64, transfer: 16, ..Ior::new(2, "f") };
    good().check().unwrap();
    for bad in [
        Ior { transfer: 24, ..good() },
        Ior { transfer: 128, ..good() },
        Ior { transfer: 4, ..good() },
        Ior { transfer: 0, ..good() },
        Ior { block: 0, ..good() },
        Ior { segments: 0, ..good() },
        Ior { ranks: 0, ..good() },
        Ior { gather: 0, ..good() },
        Ior { segments: u64::MAX / 64, ..good() },
        Ior { gather: 2, order: Order::Shuffled { seed: 1 }, ..good() },
        Ior { block: 16, order: Order::Shuffled { seed: 1 }, ..good() },
        Ior { layout: Layout::GrowingBytes { chunk: 8 }, order: Order::Shuffled { seed: 1 }, ..good() },
        Ior { layout: Layout::WordsPerSegment, order: Order::Shuffled { seed: 1 }, ..good() },
        Ior { layout: Layout::Grid { columns: 24, rows: None, chunk: None, grows: false }, ..good() },
        Ior { layout: Layout::Grid { columns: 16, rows: Some(7), chunk: None, grows: false }, ..good() },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    assert!(good().read(Readers::Listed(vec![0, 2])).is_err());
}

#[test]
fn targets_per_client_are_those_published() {
    for (ranks, count, stripes, targets) in
        [(10, 10, 2, 2), (16, 8, 1, 1), (12, 10, 1, 5), (10, 8, 1, 4), (7, 10, 1, 10)]
    {
        let size = 1 << 20;
        let bytes = stripes * size;
        let ior = Ior { block: bytes, transfer: bytes, segments: 100, ..Ior::new(ranks, "f") };
        let found = targets_per_client(&ior, Stripes { size, count });
        assert!(found.iter().all(|&found| found == targets), "{ranks} ranks, {count} targets: {found:?}");
    }
    // Each rank's bytes in one piece.
    let ior = Ior { block: 5 << 20, transfer: 1 << 20, ..Ior::new(3, "f") };
    assert_eq!(targets_per_client(&ior, Stripes { size: 1 << 20, count: 8 }), [5, 5, 5]);
    assert_eq!(targets_per_client(&ior, Stripes { size: 2 << 20, count: 8 }), [3, 3, 3]);
}
