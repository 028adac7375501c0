//! The particle write.

use super::{Particles, Phases, Plan, workload};
use crate::shared_file;
use hyperslab_core::workload::{FileDeclaration, PART_ATTRIBUTE, Step, Workload};
use hyperslab_core::{Attribute, Result, Selection};

impl Particles {
    /// Creates the file, then in every time step a group, its arrays and their data; at the end flushes and closes.
    pub fn write(&self) -> Result<Workload> {
        let plan = Plan::new(self)?;
        workload(
            self.header("particles-write", self.about("write"), FileDeclaration::created(&self.file))?,
            Writing(plan),
        )
    }
}

#[derive(Debug)]
struct Writing(Plan);

impl Phases for Writing {
    fn time_steps(&self) -> u64 {
        self.0.parameters.time_steps
    }

    fn before(&self) -> Vec<Step> {
        let parameters = &self.0.parameters;
        let mut steps = shared_file::create(parameters.seed);
        let part = parameters.part_words();
        if !part.is_empty() {
            let value = Attribute::text(&part);
            steps.push(Step::Attribute { file: 0, object: "".into(), name: PART_ATTRIBUTE.into(), value });
        }
        steps
    }

    fn selection(&self, rank: usize) -> Result<Selection> {
        self.0.selection_of(rank, 0)
    }

    fn during(&self, selection: &Selection, step: u64) -> Vec<Step> {
        let plan = &self.0;
        let mut steps = vec![Step::Epoch { number: step }, Step::Group { file: 0, name: Plan::group(step).into() }];
        steps.extend((0..plan.names.len()).map(|i| Step::Create {
            slot: plan.slot(step, i),
            file: 0,
            array: i as u32,
            name: plan.array_name(step, i),
        }));
        plan.write(step, selection, &mut steps);
        plan.close_due(step, &mut steps);
        plan.compute_after(step, &mut steps);
        steps
    }

    fn after(&self) -> Vec<Step> {
        shared_file::flush_and_close()
    }
}
