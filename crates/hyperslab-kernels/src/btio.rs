//! BTIO: the block-tridiagonal solver of the NAS benchmarks, which owns cells along diagonals of the grid.

mod cells;
mod steps;

use crate::direction::Direction;
use crate::named::{COLLECTIVE, Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Error, Fill, Result, TransferMode, dims};
use std::time::Duration;
use steps::Dumping;

/// How a rank transfers its cells of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// A call for each, out of a buffer with ghost cells around.
    Cells,
    /// One call for all of them, out of packed memory.
    One,
}

/// Parameters of BTIO.
#[derive(Debug, Clone, PartialEq)]
pub struct Btio {
    /// Number of ranks; a square number n^2. Each has n cells.
    pub ranks: usize,
    /// The container, relative to the run's directory.
    pub file: String,
    /// Points of the grid, slowest dimension first; at least 3 for each cell.
    pub grid: [u64; 3],
    /// Records.
    pub dumps: u64,
    /// Width of the ghost cells around each cell in memory.
    pub ghost: u64,
    /// Calls of a dump.
    pub calls: Calls,
    /// Compute time between dumps.
    pub compute: Duration,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// Solution variables at each point.
const COMPONENTS: u64 = 5;
/// The fewest points of a cell along a dimension.
const FEWEST: u64 = 3;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "btio",
    about: "dumps of a block-tridiagonal solver, whose ranks own cells along diagonals",
    stands_for: "BTIO of the NAS parallel benchmarks, in the form that is run with PnetCDF. The grid is cut into n x n x n cells \
        for n^2 ranks; a rank owns n of them, one in each layer, along a diagonal. Every dump appends a record to the array \
        [dumps, Z, Y, X, 5] of float64, a call per cell out of a buffer with ghost cells; then all is read back the same \
        way. Strong scaling: more ranks, smaller cells. Class A has 64^3 points, B 102^3, C 162^3, D 408^3, each 40 dumps.",
    keys: &[
        key("grid", "ZxYxX", "64x64x64", "points of the grid"),
        key("dumps", "N", "4", "records; published runs have 40"),
        key("ghost", "N", "2", "width of ghost cells around each cell in memory"),
        key("calls", "cells|one", "cells", "a call for each cell, or one for all cells of a rank (packed memory)"),
        key("operation", "both|write|read", "both", "what is run; read alone makes its file first"),
        key("compute", "TIME", "0", "pause between dumps"),
        COLLECTIVE,
        SEED,
    ],
    ranks: 4,
    growth: Growth::Total("grid"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let btio = Btio {
        ranks,
        file: "btio.h5".into(),
        grid: values.extents_of("grid")?,
        dumps: values.positive("dumps")?,
        ghost: values.number("ghost")?,
        calls: values.word("calls", &[("cells", Calls::Cells), ("one", Calls::One)])?,
        compute: values.time("compute")?,
        transfer: values.transfer()?,
        seed: values.number("seed")?,
    };
    let (write, read) =
        values.word("operation", &[("both", (true, true)), ("write", (true, false)), ("read", (false, true))])?;
    let mut phases = Vec::new();
    if write {
        phases.push(Phase::new("btio write", btio.write()?));
    }
    if read {
        phases.push(Phase::new("btio read", btio.read()?));
    }
    Ok(phases)
}

impl Btio {
    /// Creates the array with one record, grows it by one for each further dump, and writes every rank's cells.
    pub fn write(&self) -> Result<Workload> {
        self.workload(Direction::Write)
    }

    /// Opens the array and reads every rank's cells of every dump.
    pub fn read(&self) -> Result<Workload> {
        self.workload(Direction::Read)
    }

    /// Ranks along each side of the square.
    fn side(&self) -> Result<u64> {
        let side = self.ranks.isqrt();
        if side == 0 || side * side != self.ranks {
            return Err(Error::invalid("plan BTIO", format!("{} ranks are no square number", self.ranks))
                .hint("use 1, 4, 9, 16 or another square number of ranks"));
        }
        Ok(side as u64)
    }

    fn check(&self) -> Result<()> {
        let side = self.side()?;
        let bad = |message: String| Err(Error::invalid("plan BTIO", message));
        if self.dumps == 0 {
            return bad("dumps must be at least 1".into());
        }
        if let Some(extent) = self.grid.iter().find(|extent| **extent / side < FEWEST) {
            return bad(format!("{extent} points for {side} cells; each needs at least {FEWEST}"));
        }
        let [z, y, x] = self.grid;
        dims::byte_count(&[self.dumps, z, y, x, COMPONENTS], 8)?;
        let around = self.grid.map(|extent| self.ghost.checked_mul(2).and_then(|ghost| ghost.checked_add(extent)));
        match around {
            [Some(z), Some(y), Some(x)] => dims::byte_count(&[z, y, x, COMPONENTS], 8).map(|_| ()),
            _ => bad(format!("{} ghost cells are too many", self.ghost)),
        }
    }

    fn workload(&self, direction: Direction) -> Result<Workload> {
        self.check()?;
        let side = self.side()?;
        let [z, y, x] = self.grid;
        let (name, file, records) = match direction {
            Direction::Write => ("btio-write", FileDeclaration::created(&self.file), 1),
            Direction::Read => ("btio-read", FileDeclaration::read(&self.file), self.dumps),
        };
        let mut spec = ArraySpec::new(Datatype::F64, &[records, z, y, x, COMPONENTS]);
        spec.max_shape = Some(vec![None, Some(z), Some(y), Some(x), Some(COMPONENTS)]);
        let cell = self.grid.map(|extent| extent.div_ceil(side));
        spec.chunk = Some([1, cell[0], cell[1], cell[2], COMPONENTS].into_iter().collect());
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: name.into(),
            about: format!(
                "{} {} dumps of {} points in {side} diagonal cells per rank",
                direction.verb(),
                self.dumps,
                dims::display(&self.grid)
            ),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![file],
            arrays: vec![ArrayDeclaration { spec, fill: Fill::Random }],
        };
        crate::batches::workload(header, Dumping { btio: self.clone(), direction, side })
    }
}
