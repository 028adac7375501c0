//! The particle read.

use super::{Particles, Phases, Plan, workload};
use crate::shared_file;
use hyperslab_core::workload::{FileDeclaration, Step, Workload};
use hyperslab_core::{Result, Selection};

impl Particles {
    /// Opens the file and reads in every time step each rank's part of all properties.
    pub fn read(&self) -> Result<Workload> {
        let plan = Plan::new(self)?;
        workload(self.header("particles-read", self.about("read"), FileDeclaration::read(&self.file))?, Reading(plan))
    }
}

#[derive(Debug)]
struct Reading(Plan);

impl Phases for Reading {
    fn time_steps(&self) -> u64 {
        self.0.parameters.time_steps
    }

    fn before(&self) -> Vec<Step> {
        shared_file::open()
    }

    fn selection(&self, rank: usize) -> Result<Selection> {
        self.0.selection_of(rank, 0)
    }

    fn during(&self, selection: &Selection, step: u64) -> Vec<Step> {
        let plan = &self.0;
        let mut steps = vec![Step::Epoch { number: step }];
        plan.open(step, &mut steps);
        steps.extend(plan.transfers_at(step).map(|(slot, memory, transfer)| Step::Read {
            slot,
            selection: selection.clone(),
            memory,
            transfer,
        }));
        plan.close_due(step, &mut steps);
        plan.compute_after(step, &mut steps);
        steps
    }

    fn after(&self) -> Vec<Step> {
        shared_file::close()
    }
}
