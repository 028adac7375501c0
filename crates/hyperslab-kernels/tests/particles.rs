//! The particle kernels: every array is tiled exactly by the ranks, slots are used right, all combinations.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Result, Selection};
use hyperslab_kernels::{FilePattern, MemoryPattern, ParticleSubset, Particles};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

fn particles() -> impl Strategy<Value = Particles> {
    let memory = prop_oneof![Just(MemoryPattern::Contiguous), Just(MemoryPattern::Interleaved)];
    let pattern = prop_oneof![Just(FilePattern::Contiguous), Just(FilePattern::Interleaved)];
    (1usize..5, 1u64..5, prop::collection::vec(1u64..6, 1..4), memory, pattern, 0u64..4, any::<bool>(), 0u64..4)
        .prop_map(|(ranks, time_steps, extent, memory, pattern, delayed_close, file_per_rank, deviation)| Particles {
            file_per_rank,
            time_steps,
            deviation: if file_per_rank { 0 } else { deviation },
            memory,
            pattern,
            compute: Duration::from_millis(1),
            delayed_close,
            seed: 1,
            ..Particles::new("p.h5", ranks, &extent)
        })
}

/// What each (array, field) was covered by, and the bytes moved; checks the use of slots on the way.
fn coverage(workload: &Workload) -> (BTreeMap<(String, String), Vec<Selection>>, u64) {
    let mut covered: BTreeMap<_, Vec<Selection>> = BTreeMap::new();
    let mut bytes = 0;
    for rank in 0..workload.header.ranks {
        let mut open = HashMap::new();
        let steps = workload.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap();
        for step in &steps {
            match step {
                Step::Create { slot, array, name, .. } | Step::Open { slot, array, name, .. } => {
                    assert!(open.insert(*slot, (name.to_string(), *array)).is_none(), "slot {slot} is open already");
                }
                Step::CloseArray { slot } => assert!(open.remove(slot).is_some(), "slot {slot} is not open"),
                Step::Write { slot, selection, memory, .. } | Step::Read { slot, selection, memory, .. } => {
                    let (name, array) = &open[slot];
                    let spec = &workload.header.arrays[*array as usize].spec;
                    selection.check_inside(&spec.shape).unwrap();
                    let plan = memory.plan(&spec.dtype).unwrap();
                    bytes += selection.len() * plan.pieces.iter().map(|p| p.len).sum::<u64>();
                    let fields = memory.structure.as_ref().map_or(String::new(), |s| format!("{:?}", s.members));
                    let file = workload.header.files[0].path_of(rank);
                    covered.entry((format!("{file}:{name}"), fields)).or_default().push(selection.clone());
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "every array is closed");
    }
    (covered, bytes)
}

proptest! {
    #[test]
    fn ranks_tile_every_array(p in particles()) {
        for workload in [p.write().unwrap(), p.read().unwrap(), p.overwrite().unwrap()] {
            let (covered, bytes) = coverage(&workload);
            prop_assert_eq!(bytes, p.total_bytes().unwrap());
            let files = if p.file_per_rank { p.ranks } else { 1 };
            let per_step = match (p.memory, p.pattern) {
                (MemoryPattern::Interleaved, FilePattern::Interleaved) => 1,
                _ => 8,
            };
            prop_assert_eq!(covered.len(), files * per_step * p.time_steps as usize);
            let shape = &workload.header.arrays[0].spec.shape;
            for parts in covered.values() {
                let all = Selection::all(shape).unwrap();
                let total: u64 = parts.iter().map(Selection::len).sum();
                let union = parts.iter().try_fold(Selection::empty(shape.len()), |u, s| u.union_with(s)).unwrap();
                prop_assert_eq!(total, all.len(), "no overlap");
                prop_assert_eq!(union, all, "no hole");
            }
        }
    }
}

#[test]
fn compute_lies_between_time_steps_only() {
    let p = Particles { time_steps: 4, compute: Duration::from_secs(1), ..Particles::new("p", 1, &[8]) };
    let computes = |w: Workload| w.steps(0).unwrap().filter(|s| matches!(s, Ok(Step::Compute { .. }))).count();
    assert_eq!(computes(p.write().unwrap()), 3);
    assert_eq!(computes(p.read().unwrap()), 3);
    assert!(Particles { time_steps: 0, ..p.clone() }.write().is_err());
    assert!(Particles { extent: [u64::MAX].as_slice().into(), ..p.clone() }.write().is_err());
    assert!(Particles { file: "../x".into(), ..p }.write().is_err());
}

/// The coordinates that one rank of several reads.
fn read_by(p: &Particles, rank: usize) -> Vec<Vec<u64>> {
    let workload = p.read().unwrap();
    let steps = workload.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap();
    let selection =
        steps.iter().find_map(|s| if let Step::Read { selection, .. } = s { Some(selection) } else { None });
    let shape = &workload.header.arrays[0].spec.shape;
    let runs = selection.unwrap().runs(shape, 1).unwrap();
    let offsets = runs.flat_map(|run| run.offset..run.offset + run.len);
    let width: u64 = shape[1..].iter().product();
    offsets.map(|at| if shape.len() == 1 { vec![at] } else { vec![at / width, at % width] }).collect()
}

#[test]
fn every_part_is_what_its_name_says() {
    let (rows, columns) = (12, 9);
    type Inside = fn(u64, u64) -> bool;
    let cases: [(ParticleSubset, Inside); 5] = [
        (ParticleSubset::Diagonal { block: [3, 2] }, |r, c| (r < 3 && c < 2) || (r >= 9 && c >= 7)),
        (ParticleSubset::OtherDiagonal { block: [3, 2] }, |r, c| (r < 3 && c >= 7) || (r >= 9 && c < 2)),
        (ParticleSubset::Rim { block: [2, 1] }, |r, c| !(2..10).contains(&r) || !(1..8).contains(&c)),
        (ParticleSubset::Stairs { block: [2, 2], stride: [4, 3] }, |r, c| {
            (0..3).any(|i| r / 2 == 2 * i && (3 * i..3 * i + 2).contains(&c))
        }),
        (
            ParticleSubset::Strided {
                stride: [5, 3].as_slice().into(),
                block: [2, 1].as_slice().into(),
                count: [2, 3].as_slice().into(),
            },
            |r, c| r < 7 && r % 5 < 2 && c % 3 == 0,
        ),
    ];
    for (part, inside) in cases {
        let p = Particles { part, ..Particles::new("p", 3, &[rows, columns]) };
        let mut all = 0;
        for rank in 0..3 {
            let first = rank as u64 * rows;
            let expected: Vec<Vec<u64>> = (0..rows)
                .flat_map(|r| (0..columns).map(move |c| (r, c)))
                .filter(|&(r, c)| inside(r, c))
                .map(|(r, c)| vec![first + r, c])
                .collect();
            assert_eq!(read_by(&p, rank), expected, "{:?}", p.part);
            all += expected.len() as u64;
        }
        assert_eq!(p.total_bytes().unwrap(), all * 32);
    }
    let first = Particles { part: ParticleSubset::First(2), time_steps: 4, ..Particles::new("p", 2, &[8]) };
    assert_eq!(read_by(&first, 1), [[8], [9]]);
    assert_eq!(first.total_bytes().unwrap(), 2 * 2 * 32 * 4);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let two = |part| Particles { part, ..Particles::new("p", 1, &[6, 6]) }.read();
    let one = |part| Particles { part, ..Particles::new("p", 1, &[6]) }.read();
    let strided = |stride: u64, block: u64, count: u64| ParticleSubset::Strided {
        stride: [stride].as_slice().into(),
        block: [block].as_slice().into(),
        count: [count].as_slice().into(),
    };
    assert!(
        one(ParticleSubset::First(7)).is_err()
            && one(ParticleSubset::First(0)).is_err()
            && two(ParticleSubset::First(1)).is_err()
    );
    assert!(one(strided(2, 1, 3)).is_ok());
    for (stride, block, count) in [(2, 1, 4), (1, 2, 2), (2, 0, 1), (1, 1, 0), (u64::MAX, 1, 3), (0, 1, 2)] {
        assert!(one(strided(stride, block, count)).is_err(), "{stride} {block} {count}");
    }
    assert!(two(strided(2, 1, 1)).is_err(), "a dimension is missing");
    assert!(
        two(ParticleSubset::Diagonal { block: [7, 1] }).is_err() && one(ParticleSubset::Rim { block: [1, 1] }).is_err()
    );
    assert!(two(ParticleSubset::Stairs { block: [1, 1], stride: [0, 1] }).is_err());
}

#[test]
fn appends_follow_each_other_without_hole() {
    for ranks in [1, 2, 5] {
        let shape_after = |appended| {
            let p = Particles {
                appended,
                unlimited: true,
                chunk: Some([4].as_slice().into()),
                ..Particles::new("p", ranks, &[7])
            };
            let workload = p.append().unwrap();
            let before = workload.header.arrays[0].spec.shape[0];
            let mut written = Selection::empty(1);
            let mut after = 0;
            for rank in 0..ranks {
                for step in workload.steps(rank).unwrap() {
                    match step.unwrap() {
                        Step::Resize { shape, .. } => after = shape[0],
                        Step::Write { selection, slot: 0, .. } => written = written.union_with(&selection).unwrap(),
                        _ => {}
                    }
                }
            }
            assert_eq!(written, Selection::dense(&[before], &[after - before]).unwrap());
            (before, after)
        };
        let all = 7 * ranks as u64;
        assert_eq!(shape_after(0), (all, 2 * all));
        assert_eq!(shape_after(1), (2 * all, 3 * all));
    }
}

#[test]
fn ranks_of_a_normal_distribution_differ_around_the_mean() {
    let p = Particles { deviation: 100, seed: 3, ..Particles::new("p", 2000, &[10_000]) };
    let (mean, deviation) = p.distribution().unwrap();
    assert!((mean - 10_000.0).abs() < 10.0 && (deviation - 100.0).abs() < 5.0, "{mean} {deviation}");
    assert_eq!(p.distribution().unwrap(), (mean, deviation), "the same again");
    let narrow = Particles { deviation: 50, ..Particles::new("p", 50, &[1]) };
    assert!(narrow.write().is_ok(), "no rank has less than one");
}
