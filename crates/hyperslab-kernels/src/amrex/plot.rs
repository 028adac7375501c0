//! The steps of the plot files.

use super::Amrex;
use super::boxes::Level;
use crate::attributes::{floats, integer, integers, set};
use crate::batches::StepBatches;
use hyperslab_core::workload::{SEED_ATTRIBUTE, Step};
use hyperslab_core::{Attribute, Durability, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

/// The arrays of a level, in the order in which they are declared: the first rank writes all but the last.
pub const ARRAYS: [&str; 4] = ["boxes", "data:offsets=0", "boxcenter", "data:datatype=0"];

#[derive(Debug)]
pub struct Plotting {
    pub kernel: Amrex,
    pub levels: Vec<Level>,
}

/// First element and number of elements of a rank's boxes of each level.
pub fn own_data(levels: &[Level], components: u64, rank: u64) -> Vec<(u64, u64)> {
    let of = |level: &Level| {
        let owned = level.owned(rank);
        let cells = |range: std::ops::Range<u64>| range.map(|number| level.cells_of(number)).sum::<u64>() * components;
        (cells(0..owned.start), cells(owned))
    };
    levels.iter().map(of).collect()
}

impl Plotting {
    fn open(&self, file: u32) -> Vec<Step> {
        let kernel = &self.kernel;
        let mut steps = vec![Step::Barrier, Step::OpenFile { file, how: OpenMode::Create }];
        let names: Vec<String> = (0..kernel.components).map(|number| format!("component_{number}")).collect();
        let finest = self.levels.len() as i32 - 1;
        steps.extend(set(
            file,
            "",
            [
                (SEED_ATTRIBUTE, Attribute::integer(kernel.seed as i64)),
                ("version_name", Attribute::text("HyperCLaw-V1.1")),
                ("plotfile_type", Attribute::text("VanillaHDF5")),
                ("num_components", integer(kernel.components as i32)),
                ("dim", integer(3)),
                ("time", Attribute::float(0.0)),
                ("finest_level", integer(finest)),
                ("coordinate_system", integer(0)),
                ("num_levels", integer(finest + 1)),
            ],
        ));
        steps.extend(set(file, "", names.iter().map(|name| (name.as_str(), Attribute::text(name)))));
        steps.push(Step::Group { file, name: "Chombo_global".into() });
        steps.extend(set(file, "Chombo_global", [("SpaceDim", integer(3))]));
        steps
    }

    /// The group of a level with its attributes.
    fn group(&self, file: u32, level: &Level) -> Vec<Step> {
        let name = format!("level_{}", level.number);
        let spacing = 1.0 / (self.kernel.cells * level.finer) as f64;
        let ratio = self.kernel.ratios.get(level.number).copied().unwrap_or(1);
        let mut steps = vec![Step::Group { file, name: name.as_str().into() }];
        steps.extend(set(
            file,
            &name,
            [
                ("ref_ratio", integer(ratio as i32)),
                ("Vec_dx", floats(&[spacing; 3])),
                ("dx", Attribute::float(spacing)),
                ("prob_lo", floats(&[0.0; 3])),
                ("prob_hi", floats(&[1.0; 3])),
                ("domain_type", integers(&[0; 6])),
                ("steps", integer(0)),
                ("ngrid", integer(level.boxes() as i32)),
                ("time", Attribute::float(0.0)),
                ("ngrow", integer(0)),
            ],
        ));
        steps
    }

    fn level(&self, file: u32, rank: u64, own: (u64, u64), level: &Level) -> Result<Vec<Step>> {
        let mut steps = self.group(file, level);
        let transfer = self.kernel.transfer;
        for (number, name) in ARRAYS.iter().enumerate() {
            let array = (level.number * ARRAYS.len() + number) as u32;
            let name: Arc<str> = format!("level_{}/{name}", level.number).into();
            steps.push(Step::Create { slot: 0, file, array, name });
            let memory = Arc::default();
            if number + 1 == ARRAYS.len() {
                let selection = Selection::dense(&[own.0], &[own.1])?;
                if transfer == TransferMode::Collective || !selection.is_empty() {
                    steps.push(Step::Write { slot: 0, selection, memory, transfer });
                }
            } else if rank == 0 {
                let selection = Selection::dense(&[0], &[level.boxes() + u64::from(number == 1)])?;
                steps.push(Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent });
            }
            steps.push(Step::CloseArray { slot: 0 });
        }
        Ok(steps)
    }
}

/// The end of a file.
pub fn close(file: u32) -> Vec<Step> {
    vec![Step::Barrier, Step::Flush { file, how: Durability::Visible }, Step::CloseFile { file }, Step::Barrier]
}

/// The pause before every file but the first.
pub fn pause(kernel: &Amrex, number: u64) -> Option<Step> {
    let nanoseconds = kernel.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
    (number > 0 && nanoseconds > 0).then_some(Step::Compute { nanoseconds })
}

impl StepBatches for Plotting {
    type Rank = (u64, Vec<(u64, u64)>);

    fn rank(&self, rank: usize) -> Result<Self::Rank> {
        Ok((rank as u64, own_data(&self.levels, self.kernel.components, rank as u64)))
    }

    fn batches(&self) -> u64 {
        self.kernel.plot_files
    }

    fn batch(&self, (rank, own): &Self::Rank, number: u64) -> Result<Vec<Step>> {
        let file = number as u32;
        let mut steps: Vec<Step> = [Step::Epoch { number }].into_iter().chain(pause(&self.kernel, number)).collect();
        steps.extend(self.open(file));
        for (level, own) in self.levels.iter().zip(own) {
            steps.extend(self.level(file, *rank, *own, level)?);
        }
        steps.extend(close(file));
        Ok(steps)
    }
}
