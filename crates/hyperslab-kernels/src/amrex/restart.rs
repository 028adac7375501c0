//! The restart check: what was written is read again.

use super::Amrex;
use super::boxes::Level;
use super::plot::{ARRAYS, own_data};
use crate::batches::StepBatches;
use crate::shared_file;
use hyperslab_core::workload::Step;
use hyperslab_core::{Result, Selection, TransferMode};
use std::sync::Arc;

#[derive(Debug)]
pub struct Reading {
    pub kernel: Amrex,
    pub levels: Vec<Level>,
}

impl StepBatches for Reading {
    type Rank = Vec<(u64, u64)>;

    fn rank(&self, rank: usize) -> Result<Self::Rank> {
        Ok(own_data(&self.levels, self.kernel.components, rank as u64))
    }

    fn batches(&self) -> u64 {
        self.levels.len() as u64 + 2
    }

    fn batch(&self, own: &Self::Rank, number: u64) -> Result<Vec<Step>> {
        let Some(level) = number.checked_sub(1).map(|level| level as usize) else { return Ok(shared_file::open()) };
        let Some((start, count)) = own.get(level).copied() else { return Ok(shared_file::close()) };
        let (slot, file, transfer) = (0, 0, self.kernel.transfer);
        let last = ARRAYS.len() - 1;
        let array = (level * ARRAYS.len() + last) as u32;
        let mut steps = vec![Step::Open { slot, file, array, name: format!("level_{level}/{}", ARRAYS[last]).into() }];
        let selection = Selection::dense(&[start], &[count])?;
        if transfer == TransferMode::Collective || !selection.is_empty() {
            steps.push(Step::Read { slot, selection, memory: Arc::default(), transfer });
        }
        steps.push(Step::CloseArray { slot });
        Ok(steps)
    }
}
