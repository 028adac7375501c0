//! What of workloads decides which settings are worth a try.

use anyhow::Result;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, TransferMode, dims};

/// Steps that are looked at.
const STEPS: usize = 4096;

/// What workloads do.
#[derive(Debug, Clone, Default)]
pub struct WorkFacts {
    /// The most ranks.
    pub ranks: usize,
    /// Something is written.
    pub writes: bool,
    /// Ranks compute in between.
    pub computes: bool,
    /// All ranks make as many calls as each other, so that they may make them together.
    pub in_step: bool,
    /// Extents of a call, where all arrays have as many dimensions.
    pub extents: Option<Dims>,
    /// Bytes of the largest call.
    pub call: u64,
}

impl WorkFacts {
    /// Looks at the first steps of the first, the middle and the last rank.
    pub fn of<'a>(workloads: impl Iterator<Item = &'a Workload>) -> Result<Self> {
        let mut found = Self { in_step: true, ..Self::default() };
        for workload in workloads {
            let ranks = workload.header.ranks;
            found.ranks = found.ranks.max(ranks);
            let mut calls = Vec::new();
            for rank in [0, ranks / 2, ranks - 1] {
                let mut number = 0_u64;
                for step in workload.steps(rank)?.take(STEPS) {
                    number += u64::from(found.step(&step?, workload)?);
                }
                calls.push(number);
            }
            found.in_step &= calls.windows(2).all(|two| two[0] == two[1]);
        }
        Ok(found)
    }

    /// Looks at a step; whether it is a transfer.
    fn step(&mut self, step: &Step, workload: &Workload) -> Result<bool> {
        let selection = match step {
            Step::Write { selection, .. } => {
                self.writes = true;
                selection
            }
            Step::Read { selection, .. } => selection,
            Step::Compute { nanoseconds } => {
                self.computes |= *nanoseconds > 0;
                return Ok(false);
            }
            _ => return Ok(false),
        };
        let element = workload.header.arrays.iter().map(|array| array.spec.dtype.size()).max().unwrap_or(1);
        let Some((first, last)) = selection.bounds() else { return Ok(true) };
        let extents: Dims = first.iter().zip(&last).map(|(first, last)| (last - first).max(1)).collect();
        let one_rank = workload.header.arrays.iter().all(|array| array.spec.shape.len() == extents.len());
        if one_rank && selection.as_slab().is_some() && self.extents.is_none() && self.call == 0 {
            self.extents = Some(extents.clone());
        }
        if self.extents.as_ref().is_some_and(|known| known.len() != extents.len()) {
            self.extents = None;
        }
        self.call = self.call.max(selection.len().saturating_mul(element));
        // Extents that no array could have are left to the simulation to refuse.
        let _ = dims::byte_count(&extents, element);
        Ok(true)
    }
}

/// Whether all transfers of a workload are collective already.
pub fn collective(workload: &Workload) -> Result<bool> {
    for step in workload.steps(0)?.take(STEPS) {
        if let Step::Write { transfer, .. } | Step::Read { transfer, .. } = step? {
            return Ok(transfer == TransferMode::Collective);
        }
    }
    Ok(false)
}
