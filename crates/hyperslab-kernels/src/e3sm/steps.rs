//! The steps of E3SM's I/O: all variables of a record, then the next record.

use super::blob::{TABLES, places};
use super::{E3sm, E3smLayout};
use crate::batches::StepBatches;
use crate::direction::Direction;
use crate::shared_file;
use hyperslab_core::workload::Step;
use hyperslab_core::{Attribute, Datatype, Dims, Durability, Result, Selection, TransferMode};
use std::sync::Arc;

#[derive(Debug)]
pub struct RecordingSteps {
    pub kernel: E3sm,
    /// Variables of each map.
    pub of_maps: &'static [usize],
    /// Variables that are not dealt out; the first rank has them.
    pub others: usize,
    /// Extents of the arrays that hold the maps.
    pub tables: Vec<Dims>,
    pub direction: Direction,
}

/// What a rank transfers of the first record of each map's variables.
#[derive(Debug)]
pub struct Parts {
    rank: usize,
    of_maps: Vec<Selection>,
}

impl RecordingSteps {
    /// By variable: the number of its declaration and its name. Its place in this order is its slot.
    fn variables(&self) -> impl Iterator<Item = (u32, String)> + '_ {
        let of_maps = self.of_maps.iter().enumerate();
        let dealt =
            of_maps.flat_map(|(map, count)| (1..=*count).map(move |n| (map as u32, format!("D{}_{n:03}", map + 1))));
        dealt.chain((1..=self.others).map(|n| (self.of_maps.len() as u32, format!("other_{n:03}"))))
    }

    /// Opens or creates the file and all variables.
    fn begin(&self, rank: usize) -> Result<Vec<Step>> {
        let mut steps = match self.direction {
            Direction::Write => shared_file::create(self.kernel.seed),
            Direction::Read => shared_file::open(),
        };
        if self.kernel.layout == E3smLayout::Blob && self.direction == Direction::Write {
            self.tables(rank, &mut steps)?;
        }
        for (slot, (array, name)) in self.variables().enumerate() {
            let (slot, file, name) = (slot as u32, 0, Arc::from(name));
            if self.direction == Direction::Read {
                steps.push(Step::Open { slot, file, array, name });
                continue;
            }
            steps.push(Step::Create { slot, file, array, name: Arc::clone(&name) });
            let map = self.kernel.maps.get(array as usize).filter(|_| self.kernel.layout == E3smLayout::Blob);
            if let Some(map) = map {
                let number = Attribute::integer(i64::from(array) + 1);
                steps.push(Step::Attribute {
                    file,
                    object: name.clone(),
                    name: "decomposition_ID".into(),
                    value: number,
                });
                let value = integers(&map.dims);
                steps.push(Step::Attribute { file, object: name, name: "global_dims".into(), value });
            }
        }
        Ok(steps)
    }

    /// The maps: every rank writes the rows about its blob.
    fn tables(&self, rank: usize, steps: &mut Vec<Step>) -> Result<()> {
        let first = self.of_maps.len() + 1;
        for (number, shape) in self.tables.iter().enumerate() {
            let (map, table) = (number / TABLES.len(), TABLES[number % TABLES.len()]);
            let mut count = shape.clone();
            let mut start = Dims::from_elem(0, count.len());
            (start[0], count[0]) = (rank as u64, 1);
            let name = format!("D{}.{table}", map + 1).into();
            let (selection, memory) = (Selection::dense(&start, &count)?, Arc::default());
            steps.push(Step::Create { slot: 0, file: 0, array: (first + number) as u32, name });
            steps.push(Step::Write { slot: 0, selection, memory, transfer: self.kernel.transfer });
            steps.push(Step::CloseArray { slot: 0 });
        }
        Ok(())
    }

    fn end(&self) -> Vec<Step> {
        let slots = self.variables().count() as u32;
        let mut steps: Vec<Step> = (0..slots).map(|slot| Step::CloseArray { slot }).collect();
        steps.extend(match self.direction {
            Direction::Write => shared_file::flush_and_close(),
            Direction::Read => shared_file::close(),
        });
        steps
    }

    /// The elements of a rank in record number `record`, those in the first one given.
    fn in_record(&self, first: &Selection, record: u64) -> Result<Selection> {
        let mut by = vec![0; first.rank()];
        by[0] = record as i64;
        first.shifted(&by)
    }
}

fn integers(numbers: &[u64]) -> Attribute {
    let data = numbers.iter().flat_map(|number| (*number as i64).to_ne_bytes()).collect();
    Attribute { dtype: Datatype::I64, shape: Dims::from_slice(&[numbers.len() as u64]), data }
}

impl StepBatches for RecordingSteps {
    type Rank = Parts;

    fn rank(&self, rank: usize) -> Result<Parts> {
        let kernel = &self.kernel;
        let of = |map: &super::Decomposition| match kernel.layout {
            E3smLayout::Canonical => map.first_record(map.share(rank, kernel.ranks)),
            E3smLayout::Blob => {
                let (start, len) = places(map, kernel.ranks)[rank];
                Selection::dense(&[0, start], &[1, len])
            }
        };
        Ok(Parts { rank, of_maps: kernel.maps.iter().map(of).collect::<Result<_>>()? })
    }

    fn batches(&self) -> u64 {
        self.kernel.records.saturating_add(2)
    }

    fn batch(&self, parts: &Parts, number: u64) -> Result<Vec<Step>> {
        let kernel = &self.kernel;
        let Some(record) = number.checked_sub(1) else { return self.begin(parts.rank) };
        if record == kernel.records {
            return Ok(self.end());
        }
        let mut steps = vec![Step::Epoch { number: record }];
        let nanoseconds = kernel.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
        if record > 0 && nanoseconds > 0 {
            steps.push(Step::Compute { nanoseconds });
        }
        let now: Vec<Selection> =
            parts.of_maps.iter().map(|first| self.in_record(first, record)).collect::<Result<_>>()?;
        let scalar = Selection::dense(&[record], &[u64::from(parts.rank == 0)])?;
        let scalar = if parts.rank == 0 { scalar } else { Selection::empty(1) };
        for (slot, (array, _)) in self.variables().enumerate() {
            let slot = slot as u32;
            let map = kernel.maps.get(array as usize);
            if kernel.unlimited && record > 0 && self.direction == Direction::Write {
                let inner = map.map_or_else(Dims::new, |map| kernel.record(map));
                steps.push(Step::Resize { slot, shape: [record + 1].into_iter().chain(inner).collect() });
            }
            let selection = now.get(array as usize).unwrap_or(&scalar).clone();
            let (memory, transfer) = (Arc::default(), kernel.transfer);
            if selection.is_empty() && transfer == TransferMode::Independent {
                continue;
            }
            steps.push(match self.direction {
                Direction::Write => Step::Write { slot, selection, memory, transfer },
                Direction::Read => Step::Read { slot, selection, memory, transfer },
            });
        }
        if self.direction == Direction::Write && (record + 1).is_multiple_of(kernel.flush_every) {
            steps.push(Step::Flush { file: 0, how: Durability::Visible });
        }
        Ok(steps)
    }
}
