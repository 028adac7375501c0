//! The steps of MACSio: a dump after the other.

use super::parts::Mesh;
use super::{Macsio, ParallelFiles};
use crate::batches::StepBatches;
use hyperslab_core::workload::{SEED_ATTRIBUTE, Step};
use hyperslab_core::{Attribute, Durability, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

#[derive(Debug)]
pub struct Dumping {
    pub kernel: Macsio,
    pub mesh: Mesh,
}

impl Dumping {
    /// A group per part of the rank, an array per variable.
    fn independent(&self, steps: &mut Vec<Step>, file: u32, rank: u64) -> Result<()> {
        for part in self.mesh.of(rank) {
            let group = format!("domain_{part:07}");
            steps.push(Step::Group { file, name: group.as_str().into() });
            for number in 0..self.kernel.variables {
                let (name, array) = Macsio::variable(number);
                let shape = if array == 1 { &self.mesh.nodes } else { &self.mesh.zones };
                let (selection, memory) = (Selection::all(shape)?, Arc::default());
                steps.push(Step::Create { slot: 0, file, array, name: format!("{group}/{name}").into() });
                steps.push(Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent });
                steps.push(Step::CloseArray { slot: 0 });
            }
        }
        Ok(())
    }

    /// An array per variable, in which every rank writes its parts, a call each.
    fn shared(&self, steps: &mut Vec<Step>, file: u32, rank: u64) -> Result<()> {
        for number in 0..self.kernel.variables {
            let (name, array) = Macsio::variable(number);
            steps.push(Step::Create { slot: 0, file, array, name: name.into() });
            for part in self.mesh.of(rank) {
                let (selection, memory) = (self.mesh.place(part, array == 1)?, Arc::default());
                steps.push(Step::Write { slot: 0, selection, memory, transfer: TransferMode::Collective });
            }
            steps.push(Step::CloseArray { slot: 0 });
        }
        Ok(())
    }
}

impl StepBatches for Dumping {
    type Rank = u64;

    fn rank(&self, rank: usize) -> Result<u64> {
        Ok(rank as u64)
    }

    fn batches(&self) -> u64 {
        self.kernel.dumps
    }

    fn batch(&self, rank: &u64, number: u64) -> Result<Vec<Step>> {
        let file = number as u32;
        let mut steps = vec![Step::Epoch { number }];
        let nanoseconds = self.kernel.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
        if number > 0 && nanoseconds > 0 {
            steps.push(Step::Compute { nanoseconds });
        }
        let value = Attribute::integer(self.kernel.seed as i64);
        steps.push(Step::Barrier);
        steps.push(Step::OpenFile { file, how: OpenMode::Create });
        steps.push(Step::Attribute { file, object: "".into(), name: SEED_ATTRIBUTE.into(), value });
        match self.kernel.mode {
            ParallelFiles::Independent { .. } => self.independent(&mut steps, file, *rank)?,
            ParallelFiles::Shared => self.shared(&mut steps, file, *rank)?,
        }
        steps.extend([Step::Flush { file, how: Durability::Visible }, Step::CloseFile { file }, Step::Barrier]);
        Ok(steps)
    }
}
