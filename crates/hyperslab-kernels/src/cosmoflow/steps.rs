//! The steps of the training reads.

use super::{CosmoFlow, ReadUnit};
use crate::batches::StepBatches;
use crate::cosmoflow::shuffle::order;
use hyperslab_core::workload::{SEED_ATTRIBUTE, Step};
use hyperslab_core::{Attribute, Dims, Durability, OpenMode, Result, Selection, Slab, TransferMode};
use std::sync::Arc;

/// The array of samples in each file.
const ARRAY: &str = "full";

impl CosmoFlow {
    /// The elements of sample `number` of a file.
    fn slab(&self, number: u64) -> Result<Option<Slab>> {
        let mut start = Dims::from_elem(0, self.sample.len() + 1);
        start[0] = number;
        let count: Dims = [1].into_iter().chain(self.sample.iter().copied()).collect();
        Slab::dense(&start, &count)
    }

    /// The elements of several samples of a file.
    fn selection(&self, numbers: &[u64]) -> Result<Selection> {
        let slabs = numbers.iter().map(|number| self.slab(*number)).collect::<Result<Vec<_>>>()?;
        Selection::union(self.sample.len() + 1, slabs.into_iter().flatten())
    }
}

/// Writes the data set: each file in turn, its samples dealt out to the ranks.
#[derive(Debug)]
pub struct Filling(pub CosmoFlow);

impl StepBatches for Filling {
    type Rank = u64;

    fn rank(&self, rank: usize) -> Result<u64> {
        Ok(rank as u64)
    }

    fn batches(&self) -> u64 {
        self.0.samples + 2 * self.0.files
    }

    fn batch(&self, rank: &u64, number: u64) -> Result<Vec<Step>> {
        let kernel = &self.0;
        let each = kernel.samples_per_file();
        let (file, within) = ((number / (each + 2)) as u32, number % (each + 2));
        let Some(sample) = within.checked_sub(1) else {
            let value = Attribute::integer(kernel.seed as i64);
            return Ok(vec![
                Step::Barrier,
                Step::OpenFile { file, how: OpenMode::Create },
                Step::Attribute { file, object: "".into(), name: SEED_ATTRIBUTE.into(), value },
                Step::Create { slot: 0, file, array: 0, name: ARRAY.into() },
            ]);
        };
        if sample == each {
            return Ok(vec![
                Step::CloseArray { slot: 0 },
                Step::Flush { file, how: Durability::Visible },
                Step::CloseFile { file },
                Step::Barrier,
            ]);
        }
        if sample % kernel.ranks as u64 != *rank {
            return Ok(Vec::new());
        }
        let (selection, memory) = (kernel.selection(&[sample])?, Arc::default());
        Ok(vec![Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent }])
    }
}

/// Reads the data set once. All files stay open meanwhile.
#[derive(Debug)]
pub struct Training {
    pub kernel: CosmoFlow,
    pub epoch: u64,
}

impl StepBatches for Training {
    /// The samples of a rank, in the order in which they are read.
    type Rank = Vec<u32>;

    fn rank(&self, rank: usize) -> Result<Vec<u32>> {
        let kernel = &self.kernel;
        let all = order(kernel.samples, kernel.seed, self.epoch);
        let batch = usize::try_from(kernel.batch).unwrap_or(usize::MAX).min(all.len());
        Ok(all.chunks(batch).skip(rank).step_by(kernel.ranks).flatten().copied().collect())
    }

    fn batches(&self) -> u64 {
        // Those of the first rank, which has the most.
        self.kernel.samples.div_ceil(self.kernel.batch).div_ceil(self.kernel.ranks as u64) + 2
    }

    fn batch(&self, samples: &Vec<u32>, number: u64) -> Result<Vec<Step>> {
        let kernel = &self.kernel;
        let files = 0..kernel.files as u32;
        let Some(number) = number.checked_sub(1) else {
            let open = |file| {
                let open = Step::OpenFile { file, how: OpenMode::Read };
                [open, Step::Open { slot: file, file, array: 0, name: ARRAY.into() }]
            };
            let epoch = Step::Epoch { number: self.epoch };
            return Ok([Step::Barrier, epoch].into_iter().chain(files.flat_map(open)).collect());
        };
        if number + 2 == self.batches() {
            let close = |file| [Step::CloseArray { slot: file }, Step::CloseFile { file }];
            return Ok([Step::Barrier].into_iter().chain(files.flat_map(close)).chain([Step::Barrier]).collect());
        }
        let batch = usize::try_from(kernel.batch).unwrap_or(usize::MAX).min(samples.len().max(1));
        let Some(samples) = samples.chunks(batch).nth(number as usize) else { return Ok(Vec::new()) };
        let mut steps = self.reads(samples)?;
        let nanoseconds = kernel.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
        if nanoseconds > 0 {
            steps.push(Step::Compute { nanoseconds });
        }
        Ok(steps)
    }
}

impl Training {
    fn reads(&self, samples: &[u32]) -> Result<Vec<Step>> {
        let each = self.kernel.samples_per_file();
        let places = samples.iter().map(|sample| ((u64::from(*sample) / each) as u32, u64::from(*sample) % each));
        let mut parts: Vec<(u32, Vec<u64>)> = Vec::new();
        for (file, number) in places {
            let known = parts.iter_mut().find(|(known, _)| *known == file && self.kernel.unit == ReadUnit::Batch);
            match known {
                Some((_, numbers)) => numbers.push(number),
                None => parts.push((file, vec![number])),
            }
        }
        let read = |(slot, numbers): (u32, Vec<u64>)| {
            let (selection, memory) = (self.kernel.selection(&numbers)?, Arc::default());
            Ok(Step::Read { slot, selection, memory, transfer: TransferMode::Independent })
        };
        parts.into_iter().map(read).collect()
    }
}
