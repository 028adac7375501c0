//! The particle kernels: every array is tiled exactly by the ranks, slots are used right, all combinations.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, Result, Selection, Transfer};
use hyperslab_kernels::{FilePattern, MemoryPattern, Particles, Reading};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

fn particles() -> impl Strategy<Value = Particles> {
    let memory = prop_oneof![Just(MemoryPattern::Contiguous), Just(MemoryPattern::Interleaved)];
    let pattern = prop_oneof![Just(FilePattern::Contiguous), Just(FilePattern::Interleaved)];
    (1usize..5, 1u64..5, prop::collection::vec(1u64..6, 1..4), memory, pattern, 0u64..4, any::<bool>()).prop_map(
        |(ranks, time_steps, extent, memory, pattern, delayed_close, file_per_rank)| Particles {
            ranks,
            file: "p.h5".into(),
            file_per_rank,
            time_steps,
            extent: Dims::from_vec(extent),
            memory,
            pattern,
            compute: Duration::from_millis(1),
            transfer: Transfer::Independent,
            chunk: None,
            filters: Vec::new(),
            delayed_close,
            seed: 1,
        },
    )
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
        for workload in [p.write().unwrap(), p.read(Reading::Full).unwrap()] {
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
    let p = Particles {
        ranks: 1,
        file: "p".into(),
        file_per_rank: false,
        time_steps: 4,
        extent: [8].as_slice().into(),
        memory: MemoryPattern::Contiguous,
        pattern: FilePattern::Contiguous,
        compute: Duration::from_secs(1),
        transfer: Transfer::Independent,
        chunk: None,
        filters: Vec::new(),
        delayed_close: 0,
        seed: 0,
    };
    let computes = |w: Workload| w.steps(0).unwrap().filter(|s| matches!(s, Ok(Step::Compute { .. }))).count();
    assert_eq!(computes(p.write().unwrap()), 3);
    assert_eq!(computes(p.read(Reading::Full).unwrap()), 3);
    assert_eq!(p.read_bytes(Reading::First(2)).unwrap(), 2 * 32 * 4);
    assert!(p.read(Reading::First(9)).is_err());
    assert!(Particles { time_steps: 0, ..p.clone() }.write().is_err());
    assert!(Particles { extent: [u64::MAX].as_slice().into(), ..p.clone() }.write().is_err());
    assert!(Particles { file: "../x".into(), ..p }.write().is_err());
}
