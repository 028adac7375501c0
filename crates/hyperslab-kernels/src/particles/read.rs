//! The particle read.

use super::{Particles, Phases, Plan, workload};
use hyperslab_core::workload::{FileDeclaration, Step, Workload};
use hyperslab_core::{Error, Open, Result, Selection};

/// Which of its particles a rank reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// All of them.
    Full,
    /// The first so many, counted along the first dimension (1-D only).
    First(u64),
}

impl Particles {
    /// Opens the file and reads in every time step what `reading` says of all properties.
    pub fn read(&self, reading: Reading) -> Result<Workload> {
        let plan = Plan::new(self)?;
        if let Reading::First(n) = reading
            && (self.extent.len() != 1 || n == 0 || n > self.extent[0])
        {
            return Err(Error::invalid(
                "plan particles",
                format!(
                    "a partial read of {n} particles needs one dimension of at least as many; each rank has {:?}",
                    self.extent
                ),
            ));
        }
        workload(
            self.header("particles-read", self.about("read"), FileDeclaration::read(&self.file))?,
            Gathering { plan, reading },
        )
    }

    /// Bytes that all ranks together read.
    pub fn read_bytes(&self, reading: Reading) -> Result<u64> {
        match reading {
            Reading::Full => self.total_bytes(),
            Reading::First(n) => Particles { extent: [n].as_slice().into(), ..self.clone() }.total_bytes(),
        }
    }
}

#[derive(Debug)]
struct Gathering {
    plan: Plan,
    reading: Reading,
}

impl Phases for Gathering {
    fn time_steps(&self) -> u64 {
        self.plan.parameters.time_steps
    }

    fn before(&self) -> Vec<Step> {
        vec![Step::Barrier, Step::OpenFile { file: 0, how: Open::Read }]
    }

    fn during(&self, rank: usize, step: u64) -> Result<Vec<Step>> {
        let plan = &self.plan;
        let mut steps = vec![Step::Epoch { number: step }];
        steps.extend((0..plan.names.len()).map(|i| Step::Open {
            slot: plan.slot(step, i),
            file: 0,
            array: i as u32,
            name: plan.array_name(step, i),
        }));
        let selection = match self.reading {
            Reading::Full => plan.parameters.part_of(rank)?,
            Reading::First(n) => {
                let start = if plan.parameters.file_per_rank { 0 } else { plan.parameters.extent[0] * rank as u64 };
                Selection::dense(&[start], &[n])?
            }
        };
        steps.extend(plan.transfers_at(step).map(|(slot, memory, transfer)| Step::Read {
            slot,
            selection: selection.clone(),
            memory,
            transfer,
        }));
        plan.close_due(step, &mut steps);
        plan.compute_after(step, &mut steps);
        Ok(steps)
    }

    fn after(&self) -> Vec<Step> {
        vec![Step::Barrier, Step::CloseFile { file: 0 }, Step::Barrier]
    }
}
