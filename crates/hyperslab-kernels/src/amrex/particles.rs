//! The particle files.

use super::boxes::Level;
use super::plot::{close, pause};
use super::{Amrex, literal};
use crate::attributes::{integer, set};
use crate::batches::StepBatches;
use hyperslab_core::workload::{ArrayDeclaration, SEED_ATTRIBUTE, Step};
use hyperslab_core::{ArraySpec, Attribute, Datatype, Fill, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

/// Integers of a particle: its identity and processor, and four more.
pub const INTEGERS: u64 = 2 + 4;
/// Floats of a particle: its position, and twelve more.
pub const REALS: u64 = 3 + 12;

impl Amrex {
    /// Integers and floats of all particles, particles of each box, and boxes.
    pub(super) fn particle_arrays(&self, level: &Level) -> Result<Vec<ArrayDeclaration>> {
        let count = self.particles_of(level.cells());
        let data = |dtype, each: u64, fill| ArrayDeclaration { spec: ArraySpec::new(dtype, &[count * each]), fill };
        let in_boxes = (0..level.boxes()).map(|number| self.particles_of(level.cells_of(number)) as i32);
        Ok(vec![
            data(Datatype::I32, INTEGERS, Fill::Index),
            data(Datatype::F64, REALS, Fill::Random),
            literal(Datatype::I32, level.boxes(), in_boxes.flat_map(i32::to_ne_bytes).collect()),
            level.list()?,
        ])
    }
}

#[derive(Debug)]
pub struct ParticleSteps {
    pub kernel: Amrex,
    pub level: Arc<Level>,
}

impl ParticleSteps {
    /// A call for each box of a rank; with collective transfers those with fewer boxes join with nothing.
    fn data(&self, steps: &mut Vec<Step>, rank: u64, slot: u32, each: u64) -> Result<()> {
        let (level, transfer) = (&self.level, self.kernel.transfer);
        let owned = level.owned(rank);
        let most =
            (0..self.kernel.ranks as u64).map(|rank| level.owned(rank)).map(|owned| owned.end - owned.start).max();
        let particles = |number: u64| self.kernel.particles_of(level.cells_of(number)) * each;
        let mut start: u64 = (0..owned.start).map(particles).sum();
        for at in 0..most.unwrap_or(0) {
            let number = owned.start + at;
            let count = if number < owned.end { particles(number) } else { 0 };
            let selection = Selection::dense(&[start], &[count])?;
            start += count;
            if transfer == TransferMode::Collective || count > 0 {
                steps.push(Step::Write { slot, selection, memory: Arc::default(), transfer });
            }
        }
        Ok(())
    }
}

impl StepBatches for ParticleSteps {
    type Rank = u64;

    fn rank(&self, rank: usize) -> Result<u64> {
        Ok(rank as u64)
    }

    fn batches(&self) -> u64 {
        self.kernel.particle_files
    }

    fn batch(&self, rank: &u64, number: u64) -> Result<Vec<Step>> {
        let (file, slot) = (number as u32, 0);
        let mut steps: Vec<Step> = [Step::Epoch { number }].into_iter().chain(pause(&self.kernel, number)).collect();
        steps.extend([Step::Barrier, Step::OpenFile { file, how: OpenMode::Create }]);
        let particles = self.kernel.particles_of(self.level.cells());
        steps.extend(set(
            file,
            "",
            [
                (SEED_ATTRIBUTE, Attribute::integer(self.kernel.seed as i64)),
                ("version_name", Attribute::text("Version_Two_Dot_One_double")),
                ("num_component_real", integer(REALS as i32 - 3)),
                ("num_component_int", integer(INTEGERS as i32 - 2)),
                ("nparticles", Attribute::integer(particles as i64)),
                ("finest_level", integer(0)),
            ],
        ));
        steps.push(Step::Group { file, name: "level_0".into() });
        for (array, name) in ["data:datatype=0", "data:datatype=1", "nparticles_grid", "boxes"].iter().enumerate() {
            steps.push(Step::Create { slot, file, array: array as u32, name: format!("level_0/{name}").into() });
            match array {
                0 => self.data(&mut steps, *rank, slot, INTEGERS)?,
                1 => self.data(&mut steps, *rank, slot, REALS)?,
                _ if *rank == 0 => {
                    let (selection, memory) = (Selection::dense(&[0], &[self.level.boxes()])?, Arc::default());
                    steps.push(Step::Write { slot, selection, memory, transfer: TransferMode::Independent });
                }
                _ => {}
            }
            steps.push(Step::CloseArray { slot });
        }
        steps.extend(close(file));
        Ok(steps)
    }
}
