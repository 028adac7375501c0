//! What the reader reads: slices, blocks, whole meshes, particles or only descriptions, by the benchmark's codes.

use super::{OpenPmd, SPECIES, mesh_path};
use crate::batches::{self, StepBatches};
use hyperslab_core::workload::{Header, Step, Workload};
use hyperslab_core::{Dims, Error, OpenMode, Result, Selection, TransferMode};
use std::str::FromStr;
use std::sync::Arc;

/// What is read of an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPattern(Vec<Part>);

/// What one code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Every array is opened.
    Metadata,
    /// A plane across an axis, of the density or of the magnetic field.
    Slice { axis: usize, field: bool, first_only: bool },
    /// A block of so manyth of each extent, by the digits for direction and place.
    Block { fraction: u64, direction: u64, place: u64 },
    /// All of the density, cut into a grid of blocks.
    Full { grid: [u64; 3] },
    /// Some particle identities.
    Particles,
}

/// What the code 0 stands for.
const ALL: [u64; 12] = [1, 5, 15, 25, 55, 65, 75, 440, 441, 442, 443, 7];
/// The place of direction 4: only the first rank reads.
const AT_PLACE: u64 = 4;

impl FromStr for ReadPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let code = match text {
            "m" => 1,
            "sx" => 5,
            "sy" => 15,
            "sz" => 25,
            "fx" => 55,
            "fy" => 65,
            "fz" => 75,
            _ => text.parse().map_err(|_| unknown(text))?,
        };
        match code {
            0 => Ok(Self(ALL.iter().map(|code| part(*code, text)).collect::<Result<_>>()?)),
            code => Ok(Self(vec![part(code, text)?])),
        }
    }
}

fn part(code: u64, text: &str) -> Result<Part> {
    Ok(match code {
        1 => Part::Metadata,
        7 => Part::Particles,
        3..100 if matches!(code % 10, 3 | 5) && matches!(code / 10, 0..=2 | 5..=7) => {
            let field = code >= 50;
            let axis = (code / 10 - if field { 5 } else { 0 }) as usize;
            Part::Slice { axis, field, first_only: code % 10 == 3 }
        }
        100..1000 => Part::Block { fraction: code / 100, direction: code / 10 % 10, place: code % 10 },
        10_000.. => {
            let grid = [code % 1000, code / 1000 % 1000, code / 1_000_000].map(|blocks| blocks.max(1));
            Part::Full { grid }
        }
        _ => return Err(unknown(text)),
    })
}

fn unknown(text: &str) -> Error {
    Error::invalid("read pattern", format!("{text:?} is no pattern of the openPMD reader"))
        .hint("use m, sx, sy, sz, fx, fy, fz, 7, three digits such as 440, or a number of at least 10000")
}

impl Part {
    /// What `rank` reads of a mesh.
    fn cells(&self, mesh: &[u64], rank: u64, ranks: u64) -> Result<Vec<Selection>> {
        let none = || vec![Selection::empty(mesh.len())];
        match *self {
            Self::Slice { first_only: true, .. } if rank > 0 => Ok(none()),
            Self::Slice { axis, .. } => {
                let (mut start, mut count) = (Dims::from_elem(0, mesh.len()), Dims::from_slice(mesh));
                (start[axis], count[axis]) = (rank % mesh[axis], 1);
                Ok(vec![Selection::dense(&start, &count)?])
            }
            Self::Block { direction: AT_PLACE, .. } if rank > 0 => Ok(none()),
            Self::Block { fraction, direction, place } => {
                let count: Dims = mesh.iter().map(|extent| (extent / fraction).max(1)).collect();
                let at = |axis: usize| {
                    let room = mesh[axis] - count[axis];
                    let along = rank % (mesh[axis] / count[axis]) * count[axis];
                    match (direction, place) {
                        (AT_PLACE, 1) => 0,
                        (AT_PLACE, 2) => room,
                        (AT_PLACE, 3) => (room / 2).saturating_sub(1),
                        (AT_PLACE, _) => room / 2,
                        // Along one dimension, or along all of them.
                        _ if direction as usize >= mesh.len() || direction as usize == axis => along,
                        _ => 0,
                    }
                };
                let start: Dims = (0..mesh.len()).map(at).collect();
                Ok(vec![Selection::dense(&start, &count)?])
            }
            Self::Full { grid } => full(mesh, grid, rank, ranks),
            Self::Metadata | Self::Particles => Ok(Vec::new()),
        }
    }
}

/// The blocks of `rank` of a mesh cut into a grid; extents are divided as evenly as possible.
fn full(mesh: &[u64], grid: [u64; 3], rank: u64, ranks: u64) -> Result<Vec<Selection>> {
    let grid: Dims = mesh.iter().zip(grid).map(|(extent, blocks)| blocks.min(*extent)).collect();
    let blocks: u64 = grid.iter().product();
    let block = |number: u64| {
        let mut rest = number;
        let (mut start, mut count) = (Dims::from_elem(0, mesh.len()), Dims::from_slice(mesh));
        for axis in (0..mesh.len()).rev() {
            let at = rest % grid[axis];
            let edge = |at: u64| (u128::from(mesh[axis]) * u128::from(at) / u128::from(grid[axis])) as u64;
            (start[axis], count[axis]) = (edge(at), edge(at + 1) - edge(at));
            rest /= grid[axis];
        }
        Selection::dense(&start, &count)
    };
    (rank..blocks).step_by(ranks as usize).map(block).collect()
}

/// Reads `pattern` of the iterations.
pub fn workload(kernel: &OpenPmd, header: Header, pattern: &ReadPattern) -> Result<Workload> {
    let dimensions = kernel.block.len();
    for part in &pattern.0 {
        if let Part::Slice { axis, .. } = part
            && *axis >= dimensions
        {
            return Err(Error::invalid(
                "read pattern",
                format!("a slice across axis {axis} of {dimensions} dimensions"),
            ));
        }
    }
    // Files that are not read are not touched.
    batches::workload(header, Reading { kernel: kernel.clone(), pattern: pattern.clone() })
}

#[derive(Debug)]
struct Reading {
    kernel: OpenPmd,
    pattern: ReadPattern,
}

impl Reading {
    fn steps(&self, rank: u64, part: &Part, file: u32, group: &str) -> Result<Vec<Step>> {
        let kernel = &self.kernel;
        let mut steps = Vec::new();
        let transfer = kernel.transfer;
        let mut array = |array: u32, name: String, selections: Vec<Selection>| {
            steps.push(Step::Open { slot: 0, file, array, name: name.into() });
            let selections =
                selections.into_iter().filter(|part| !part.is_empty() || transfer == TransferMode::Collective);
            steps.extend(selections.map(|selection| Step::Read {
                slot: 0,
                selection,
                memory: Arc::default(),
                transfer,
            }));
            steps.push(Step::CloseArray { slot: 0 });
        };
        let meshes = kernel.meshes();
        let wanted = |record: &str| match part {
            Part::Metadata => true,
            Part::Slice { field: true, .. } => record == "B",
            Part::Particles => false,
            _ => record == "rho",
        };
        for mesh in meshes.into_iter().filter(|mesh| wanted(mesh.0)) {
            let mut cells = part.cells(&kernel.mesh(), rank, kernel.ranks as u64)?;
            if let (Part::Full { grid }, TransferMode::Collective) = (part, transfer) {
                let most = full(&kernel.mesh(), *grid, 0, kernel.ranks as u64)?.len();
                cells.resize(most, Selection::empty(kernel.block.len()));
            }
            array(0, mesh_path(group, mesh), cells);
        }
        for (name, number) in SPECIES {
            let name = format!("{group}/particles/ion/{name}");
            match part {
                Part::Metadata => array(number, name, Vec::new()),
                Part::Particles if number == 1 => {
                    let count = if rank == 0 { (kernel.particles() / (10 * kernel.ranks as u64)).max(1) } else { 0 };
                    array(number, name, vec![Selection::dense(&[0], &[count.min(kernel.particles())])?]);
                }
                _ => {}
            }
        }
        Ok(steps)
    }
}

impl StepBatches for Reading {
    type Rank = u64;

    fn rank(&self, rank: usize) -> Result<u64> {
        Ok(rank as u64)
    }

    fn batches(&self) -> u64 {
        self.kernel.read_steps().count() as u64
    }

    fn batch(&self, rank: &u64, number: u64) -> Result<Vec<Step>> {
        let Some(step) = self.kernel.read_steps().nth(number as usize) else { return Ok(Vec::new()) };
        let (file, group) = self.kernel.place(step);
        let mut steps = vec![Step::Barrier, Step::Epoch { number: step }, Step::OpenFile { file, how: OpenMode::Read }];
        for part in &self.pattern.0 {
            steps.extend(self.steps(*rank, part, file, &group)?);
        }
        steps.extend([Step::Barrier, Step::CloseFile { file }, Step::Barrier]);
        Ok(steps)
    }
}
