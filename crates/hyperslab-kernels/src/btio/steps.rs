//! The steps of BTIO: a dump after the other.

use super::cells::{Cell, cells_of};
use super::{Btio, COMPONENTS, Calls};
use crate::batches::StepBatches;
use crate::direction::Direction;
use crate::shared_file;
use hyperslab_core::workload::Step;
use hyperslab_core::{Dims, MemoryLayout, Result, Selection, Slab};
use std::sync::Arc;

#[derive(Debug)]
pub struct Dumping {
    pub btio: Btio,
    pub direction: Direction,
    /// Cells of a rank.
    pub side: u64,
}

/// The array that is open all the time.
const SLOT: u32 = 0;

impl Dumping {
    fn memory(&self, cell: &Cell) -> Result<Arc<MemoryLayout>> {
        let ghost = self.btio.ghost;
        if ghost == 0 {
            return Ok(Arc::default());
        }
        let [z, y, x] = cell.count;
        let inner = Selection::dense(&[ghost, ghost, ghost, 0], &[z, y, x, COMPONENTS])?;
        let around = [z + 2 * ghost, y + 2 * ghost, x + 2 * ghost, COMPONENTS];
        Ok(Arc::new(MemoryLayout::strided(&around, inner)))
    }

    /// The transfers of a dump: what of the file, and where it lies in memory.
    fn transfers(&self, cells: &[(Cell, Arc<MemoryLayout>)], dump: u64) -> Result<Vec<(Selection, Arc<MemoryLayout>)>> {
        let place = |cell: &Cell| {
            let (start, count) = (cell.start, cell.count);
            ([dump, start[0], start[1], start[2], 0], [1, count[0], count[1], count[2], COMPONENTS])
        };
        match self.btio.calls {
            Calls::Cells => cells
                .iter()
                .map(|(cell, memory)| {
                    let (start, count) = place(cell);
                    Ok((Selection::dense(&start, &count)?, memory.clone()))
                })
                .collect(),
            // Each cell has a layer for itself, so their elements follow each other in the order of the cells.
            Calls::One => {
                let slabs = cells.iter().map(|(cell, _)| {
                    let (start, count) = place(cell);
                    Slab::dense(&start, &count)
                });
                let slabs: Vec<Slab> = slabs.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
                Ok(vec![(Selection::union(5, slabs)?, Arc::default())])
            }
        }
    }

    fn begin(&self) -> Vec<Step> {
        let (array, name) = (0, "var".into());
        match self.direction {
            Direction::Write => {
                let mut steps = shared_file::create(self.btio.seed);
                steps.push(Step::Create { slot: SLOT, file: 0, array, name });
                steps
            }
            Direction::Read => {
                let mut steps = shared_file::open();
                steps.push(Step::Open { slot: SLOT, file: 0, array, name });
                steps
            }
        }
    }

    fn end(&self) -> Vec<Step> {
        let mut steps = vec![Step::CloseArray { slot: SLOT }];
        steps.extend(match self.direction {
            Direction::Write => shared_file::flush_and_close(),
            Direction::Read => shared_file::close(),
        });
        steps
    }
}

impl StepBatches for Dumping {
    type Rank = Vec<(Cell, Arc<MemoryLayout>)>;

    fn rank(&self, rank: usize) -> Result<Self::Rank> {
        let cells = cells_of(rank as u64, self.side, self.btio.grid);
        cells.into_iter().map(|cell| Ok((cell, self.memory(&cell)?))).collect()
    }

    fn batches(&self) -> u64 {
        self.btio.dumps.saturating_add(2)
    }

    fn batch(&self, cells: &Self::Rank, number: u64) -> Result<Vec<Step>> {
        let Some(dump) = number.checked_sub(1) else { return Ok(self.begin()) };
        if dump == self.btio.dumps {
            return Ok(self.end());
        }
        let mut steps = vec![Step::Epoch { number: dump }];
        let nanoseconds = self.btio.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
        if dump > 0 && nanoseconds > 0 {
            steps.push(Step::Compute { nanoseconds });
        }
        if dump > 0 && self.direction == Direction::Write {
            let [z, y, x] = self.btio.grid;
            steps.push(Step::Resize { slot: SLOT, shape: Dims::from_slice(&[dump + 1, z, y, x, COMPONENTS]) });
        }
        let transfer = self.btio.transfer;
        for (selection, memory) in self.transfers(cells, dump)? {
            steps.push(match self.direction {
                Direction::Write => Step::Write { slot: SLOT, selection, memory, transfer },
                Direction::Read => Step::Read { slot: SLOT, selection, memory, transfer },
            });
        }
        Ok(steps)
    }
}
