//! The steps of FLASH-IO: an array after the other.

use super::{Flash, FlashFile, STRUCTURE, VARIABLE};
use crate::batches::StepBatches;
use crate::shared_file;
use hyperslab_core::workload::Step;
use hyperslab_core::{MemoryLayout, Result, Selection};
use std::sync::Arc;

#[derive(Debug)]
pub struct Writing {
    pub flash: Flash,
    pub file: FlashFile,
}

/// What a rank writes of each declaration.
#[derive(Debug)]
pub struct Blocks {
    selections: Vec<Selection>,
    memory: Arc<MemoryLayout>,
}

impl StepBatches for Writing {
    type Rank = Blocks;

    fn rank(&self, rank: usize) -> Result<Blocks> {
        let flash = &self.flash;
        let first = flash.first_block(rank);
        let count = flash.first_block(rank + 1) - first;
        let of = |array: &hyperslab_core::workload::ArrayDeclaration| {
            let mut counts = array.spec.shape.clone();
            let mut start = counts.clone();
            start.fill(0);
            (start[0], counts[0]) = (first, count);
            Selection::dense(&start, &counts)
        };
        let selections = flash.arrays(self.file).iter().map(of).collect::<Result<_>>()?;
        let memory = if flash.guard == 0 || self.file == FlashFile::Corner {
            MemoryLayout::packed()
        } else {
            let [z, y, x] = flash.cells;
            let around = |extent: u64| extent + 2 * flash.guard;
            let inner = Selection::dense(&[0, flash.guard, flash.guard, flash.guard], &[count, z, y, x])?;
            MemoryLayout::strided(&[count, around(z), around(y), around(x)], inner)
        };
        Ok(Blocks { selections, memory: Arc::new(memory) })
    }

    fn batches(&self) -> u64 {
        (STRUCTURE.len() + self.flash.variables_of(self.file) + 2) as u64
    }

    fn batch(&self, rank: &Blocks, number: u64) -> Result<Vec<Step>> {
        let Some(number) = (number as usize).checked_sub(1) else {
            return Ok(shared_file::create(self.flash.seed));
        };
        if number == STRUCTURE.len() + self.flash.variables_of(self.file) {
            return Ok(shared_file::flush_and_close());
        }
        let (name, array, memory): (Arc<str>, u32, _) = match STRUCTURE.get(number) {
            Some((name, array)) => ((*name).into(), *array, Arc::default()),
            None => (format!("var{:02}", number - STRUCTURE.len() + 1).into(), VARIABLE, rank.memory.clone()),
        };
        let selection = rank.selections[array as usize].clone();
        Ok(vec![
            Step::Create { slot: 0, file: 0, array, name },
            Step::Write { slot: 0, selection, memory, transfer: self.flash.transfer },
            Step::CloseArray { slot: 0 },
        ])
    }
}
