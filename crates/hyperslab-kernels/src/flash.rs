//! FLASH-IO: the checkpoint and both plot files of an adaptive-mesh code, a block range per rank.

mod steps;

use crate::named::{COLLECTIVE, Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Error, Fill, Result, TransferMode, dims};
use steps::Writing;

/// Which of the three files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashFile {
    /// All variables as float64.
    Checkpoint,
    /// Some variables as float32, at the centres of cells.
    Centred,
    /// The same at the corners of cells, one more along each dimension.
    Corner,
}

/// Parameters of FLASH-IO. Rank r has `blocks + r mod 3` blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Flash {
    /// Number of ranks.
    pub ranks: usize,
    /// Beginning of the file names, relative to the run's directory.
    pub file: String,
    /// Blocks of the ranks with the fewest.
    pub blocks: u64,
    /// Cells of a block, slowest dimension first.
    pub cells: [u64; 3],
    /// Guard cells around each block in memory; 0: they were stripped before.
    pub guard: u64,
    /// Variables of the checkpoint.
    pub variables: usize,
    /// Variables of the plot files.
    pub plot_variables: usize,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// Faces, parent and children of a block in three dimensions.
const NEIGHBOURS: u64 = 15;

/// The arrays that describe blocks, in the order in which they are written: name and number of the declaration.
const STRUCTURE: [(&str, u32); 6] =
    [("lrefine", 0), ("nodetype", 0), ("gid", 1), ("coordinates", 2), ("blocksize", 2), ("bndbox", 3)];
/// Number of the declaration of variables.
const VARIABLE: u32 = 4;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "flash",
    about: "checkpoint and plot files of an adaptive-mesh code, as FLASH-IO writes them",
    stands_for: "FLASH-IO, the I/O of the FLASH astrophysics code. Each rank owns 80 to 82 blocks of cells and writes one \
        contiguous range of blocks of every array: refinement level, type and neighbours of blocks, coordinates, sizes and \
        bounding boxes, then each variable [blocks, nz, ny, nx]. Three files: the checkpoint (24 variables, float64) and plot \
        files at centres and corners of cells (4 variables, float32; corners add one per dimension). Weak scaling: 7.6 MiB \
        of checkpoint per rank with the 8^3 cells of its source, 60 MiB with cells=16x16x16.",
    keys: &[
        key("blocks", "N", "80", "blocks of a rank; rank r has r mod 3 more"),
        key("cells", "ZxYxX", "8x8x8", "cells of a block; published runs have 8x8x8 and 16x16x16"),
        key("guard", "N", "0", "guard cells around a block in memory that are left out while writing; FLASH has 4"),
        key("variables", "N", "24", "variables of the checkpoint"),
        key("plot_variables", "N", "4", "variables of the plot files"),
        COLLECTIVE,
        SEED,
    ],
    ranks: 2,
    growth: Growth::PerRank("blocks"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let flash = Flash {
        ranks,
        file: "flash".into(),
        blocks: values.positive("blocks")?,
        cells: values.extents_of("cells")?,
        guard: values.number("guard")?,
        variables: values.count("variables")?,
        plot_variables: values.count("plot_variables")?,
        transfer: values.transfer()?,
        seed: values.number("seed")?,
    };
    let files = [
        ("flash checkpoint", FlashFile::Checkpoint),
        ("flash plot, centres", FlashFile::Centred),
        ("flash plot, corners", FlashFile::Corner),
    ];
    files.into_iter().map(|(label, file)| Ok(Phase::new(label, flash.write(file)?))).collect()
}

impl Flash {
    /// Creates one of the files, then each array and its data, and closes the file.
    pub fn write(&self, file: FlashFile) -> Result<Workload> {
        self.check(file)?;
        let suffix = match file {
            FlashFile::Checkpoint => "chk_0000",
            FlashFile::Centred => "plt_cnt_0000",
            FlashFile::Corner => "plt_crn_0000",
        };
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: format!("flash-{suffix}"),
            about: format!(
                "write {} variables of {} blocks of {} cells per rank",
                self.variables_of(file),
                self.blocks,
                dims::display(&self.cells_of(file))
            ),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![FileDeclaration::created(format!("{}_{suffix}.h5", self.file))],
            arrays: self.arrays(file),
        };
        crate::batches::workload(header, Writing { flash: self.clone(), file })
    }

    /// Blocks of all ranks together.
    pub fn total_blocks(&self) -> u64 {
        self.first_block(self.ranks)
    }

    fn check(&self, file: FlashFile) -> Result<()> {
        let bad = |message: &str| Err(Error::invalid("plan FLASH-IO", message));
        if self.ranks == 0 || self.blocks == 0 || self.cells.contains(&0) || self.variables_of(file) == 0 {
            return bad("ranks, blocks, cells and variables must be at least 1");
        }
        let whole = self.blocks.checked_add(2).and_then(|most| most.checked_mul(self.ranks as u64));
        let padded = self.cells.iter().map(|extent| self.guard.checked_mul(2)?.checked_add(*extent)?.checked_add(1));
        match (whole, padded.collect::<Option<Vec<u64>>>()) {
            (Some(blocks), Some(padded)) => {
                dims::byte_count(&[blocks, self.variables_of(file) as u64, padded[0], padded[1], padded[2]], 8)?;
                Ok(())
            }
            _ => bad("the blocks exceed 2^64"),
        }
    }

    fn arrays(&self, file: FlashFile) -> Vec<ArrayDeclaration> {
        let float = if file == FlashFile::Checkpoint { Datatype::F64 } else { Datatype::F32 };
        let blocks = self.total_blocks();
        let [z, y, x] = self.cells_of(file);
        let declare = |dtype: &Datatype, shape: &[u64], fill: Fill| ArrayDeclaration {
            spec: ArraySpec::new(dtype.clone(), shape),
            fill,
        };
        vec![
            declare(&Datatype::I32, &[blocks], Fill::Index),
            declare(&Datatype::I32, &[blocks, NEIGHBOURS], Fill::Index),
            declare(&float, &[blocks, 3], Fill::Ramp),
            declare(&float, &[blocks, 3, 2], Fill::Ramp),
            declare(&float, &[blocks, z, y, x], Fill::Random),
        ]
    }

    fn variables_of(&self, file: FlashFile) -> usize {
        if file == FlashFile::Checkpoint { self.variables } else { self.plot_variables }
    }

    fn cells_of(&self, file: FlashFile) -> [u64; 3] {
        self.cells.map(|extent| extent + u64::from(file == FlashFile::Corner))
    }

    /// The first block of `rank`.
    fn first_block(&self, rank: usize) -> u64 {
        let rank = rank as u64;
        let more = rank / 3 * 3 + [0, 0, 1][(rank % 3) as usize];
        self.blocks * rank + more
    }
}
