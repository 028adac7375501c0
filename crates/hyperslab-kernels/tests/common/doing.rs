//! What a workload does, all ranks together, worked out from its steps alone.

use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, Result, Selection};
use std::collections::{BTreeMap, BTreeSet};

/// By file and name of an array: what is known of it.
#[derive(Debug, Default)]
pub struct Touched {
    /// Number of the declaration.
    pub array: u32,
    /// Extents at the end.
    pub shape: Dims,
    /// What the ranks transferred, in order of ranks and steps.
    pub parts: Vec<(usize, Selection)>,
}

/// What a workload does.
#[derive(Debug, Default)]
pub struct Doing {
    pub touched: BTreeMap<(String, String), Touched>,
    pub created: BTreeSet<(String, String)>,
    pub bytes: u64,
    /// Steps of the rank that has the most.
    pub steps: usize,
}

/// Walks through the steps of all ranks; checks that slots are used right and selections lie inside their arrays.
pub fn doing(workload: &Workload) -> Doing {
    workload.validate().unwrap();
    let mut doing = Doing::default();
    for rank in 0..workload.header.ranks {
        let mut open: BTreeMap<u32, (String, String)> = BTreeMap::new();
        let steps = workload.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap();
        doing.steps = doing.steps.max(steps.len());
        for step in steps {
            match step {
                Step::Create { slot, file, array, ref name } | Step::Open { slot, file, array, ref name } => {
                    let key = (workload.header.files[file as usize].path_of(rank), name.to_string());
                    let shape = workload.header.arrays[array as usize].spec.shape.clone();
                    if matches!(step, Step::Create { .. }) {
                        doing.created.insert(key.clone());
                    }
                    let entry =
                        doing.touched.entry(key.clone()).or_insert_with(|| Touched { array, shape, parts: Vec::new() });
                    assert_eq!(entry.array, array, "{key:?} has one declaration");
                    open.insert(slot, key);
                }
                Step::Resize { slot, shape } => doing.touched.get_mut(&open[&slot]).unwrap().shape = shape,
                Step::Write { slot, selection, memory, .. } | Step::Read { slot, selection, memory, .. } => {
                    let entry = doing.touched.get_mut(&open[&slot]).unwrap();
                    let dtype = &workload.header.arrays[entry.array as usize].spec.dtype;
                    let plan = memory.plan(dtype).unwrap();
                    doing.bytes += selection.len() * plan.pieces.iter().map(|piece| piece.len).sum::<u64>();
                    entry.parts.push((rank, selection));
                }
                _ => {}
            }
        }
    }
    doing
}

impl Touched {
    /// The elements that were transferred; refuses one that was transferred twice.
    pub fn once(&self) -> Selection {
        let none = Selection::empty(self.shape.len());
        let union = self.parts.iter().try_fold(none, |union, (_, part)| union.union_with(part)).unwrap();
        assert_eq!(
            self.parts.iter().map(|(_, part)| part.len()).sum::<u64>(),
            union.len(),
            "an element is transferred twice"
        );
        union
    }

    /// Whether every element of the array was transferred exactly once.
    pub fn is_tiled(&self) -> bool {
        self.once().same_elements(&Selection::all(&self.shape).unwrap()).unwrap()
    }
}
