//! Particles of a file that is there: replaced, or added to.

use super::{ParticleSubset, Particles, Phases, Plan, workload};
use crate::shared_file;
use hyperslab_core::workload::{FileDeclaration, MIXED_SEEDS, Step, Update, Workload};
use hyperslab_core::{Dims, Error, OpenMode, Result, Selection};

impl Particles {
    /// Opens the file and writes in every time step each rank's part of all properties anew.
    pub fn overwrite(&self) -> Result<Workload> {
        let file = FileDeclaration::updated(&self.file, Update::Overwrite);
        let header = self.header("particles-overwrite", self.about("overwrite"), file)?;
        workload(header, Modifying { plan: Plan::new(self)?, grown: None })
    }

    /// Opens the file, lengthens in every time step all arrays by as much as all ranks have, and writes there.
    pub fn append(&self) -> Result<Workload> {
        let file = FileDeclaration::updated(&self.file, Update::Extend);
        let header = self.header("particles-append", self.about("append"), file)?;
        let more = Particles { appended: self.appended + 1, ..self.clone() };
        if self.part != ParticleSubset::Whole {
            return Err(Error::invalid("plan particles", "only whole parts can be appended"));
        }
        workload(header, Modifying { plan: Plan::new(self)?, grown: Some(more.file_shape()?) })
    }
}

#[derive(Debug)]
struct Modifying {
    plan: Plan,
    /// The new extents, when appending.
    grown: Option<Dims>,
}

impl Phases for Modifying {
    fn time_steps(&self) -> u64 {
        self.plan.parameters.time_steps
    }

    fn before(&self) -> Vec<Step> {
        let mut steps = vec![Step::Barrier, Step::OpenFile { file: 0, how: OpenMode::Update }];
        if self.grown.is_none() {
            let Particles { part, appended, seed, .. } = &self.plan.parameters;
            let all = *part == ParticleSubset::Whole && *appended == 0;
            steps.push(shared_file::seed_tag(if all { *seed as i64 } else { MIXED_SEEDS }));
        }
        steps
    }

    fn selection(&self, rank: usize) -> Result<Selection> {
        let base = if self.grown.is_some() { self.plan.parameters.file_shape()?[0] } else { 0 };
        self.plan.selection_of(rank, base)
    }

    fn during(&self, selection: &Selection, step: u64) -> Vec<Step> {
        let plan = &self.plan;
        let mut steps = vec![Step::Epoch { number: step }];
        plan.open(step, &mut steps);
        if let Some(shape) = &self.grown {
            let resize = |i| Step::Resize { slot: plan.slot(step, i), shape: shape.clone() };
            steps.extend((0..plan.names.len()).map(resize));
        }
        plan.write(step, selection, &mut steps);
        plan.close_due(step, &mut steps);
        plan.compute_after(step, &mut steps);
        steps
    }

    fn after(&self) -> Vec<Step> {
        shared_file::flush_and_close()
    }
}
