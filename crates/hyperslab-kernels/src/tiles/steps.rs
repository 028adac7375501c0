//! The steps of the tiles kernel, made as they are needed.

use super::{DatasetRank, SlowestDim, Tiles};
use crate::direction::Direction;
use crate::shared_file;
use hyperslab_core::workload::{Step, StepSource};
use hyperslab_core::{MemoryLayout, Result};
use std::sync::Arc;

#[derive(Debug)]
pub struct Tiling {
    pub tiles: Tiles,
    pub direction: Direction,
}

/// The one array that is open at a time.
const SLOT: u32 = 0;

impl Tiling {
    /// The steps around one tile. Datasets stay open from one tile to the next only if they are the same, and are
    /// opened again in later steps, as iotest does it.
    fn tile(&self, rank: usize, memory: &Arc<MemoryLayout>, step: u64, array: u64) -> Result<Vec<Step>> {
        let tiles = &self.tiles;
        let (first_array, last_array) = (array == 0, array + 1 == tiles.arrays);
        let (first_step, last_step) = (step == 0, step + 1 == tiles.steps);
        let (begins, ends, is_new) = match (tiles.dataset_rank, tiles.slowest) {
            (DatasetRank::Four, _) => (first_step && first_array, last_step && last_array, true),
            (DatasetRank::Three, SlowestDim::Step) => (first_array, last_array, true),
            (DatasetRank::Three, SlowestDim::Array) => (true, true, first_step),
            (DatasetRank::Two, _) => (true, true, true),
        };
        let mut steps = Vec::with_capacity(4);
        if first_array {
            steps.push(Step::Epoch { number: step });
        }
        if begins {
            let name = tiles.dataset(step, array);
            steps.push(match self.direction {
                Direction::Write if is_new => Step::Create { slot: SLOT, file: 0, array: 0, name },
                _ => Step::Open { slot: SLOT, file: 0, array: 0, name },
            });
        }
        let (selection, memory, transfer) = (tiles.selection(rank, step, array)?, memory.clone(), tiles.transfer);
        steps.push(match self.direction {
            Direction::Write => Step::Write { slot: SLOT, selection, memory, transfer },
            Direction::Read => Step::Read { slot: SLOT, selection, memory, transfer },
        });
        if ends {
            steps.push(Step::CloseArray { slot: SLOT });
        }
        Ok(steps)
    }
}

impl StepSource for Tiling {
    fn steps(&self, rank: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        let packed = Arc::new(MemoryLayout::packed());
        let arrays = self.tiles.arrays;
        let pairs = (0..self.tiles.steps).flat_map(move |step| (0..arrays).map(move |array| (step, array)));
        let during = pairs.flat_map(move |(step, array)| match self.tile(rank, &packed, step, array) {
            Ok(steps) => steps.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        });
        let (before, after) = match self.direction {
            Direction::Write => (shared_file::create(self.tiles.seed), shared_file::flush_and_close()),
            Direction::Read => (shared_file::open(), shared_file::close()),
        };
        Ok(Box::new(before.into_iter().map(Ok).chain(during).chain(after.into_iter().map(Ok))))
    }
}
