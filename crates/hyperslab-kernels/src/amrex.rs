//! AMReX: plot files and particle files of block-structured adaptive mesh refinement, boxes sorted by their owners.

mod boxes;
mod particles;
mod plot;
mod restart;

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use boxes::Level;
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Error, Fill, Filter, Result, TransferMode, dims};
use std::sync::Arc;
use std::time::Duration;

/// Parameters of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Amrex {
    /// Number of ranks.
    pub ranks: usize,
    /// Where the files lie, relative to the run's directory; empty for the directory itself.
    pub directory: String,
    /// Cells of the coarsest level along each dimension.
    pub cells: u64,
    /// The most cells of a box along each dimension.
    pub largest_box: u64,
    /// Components of a cell.
    pub components: u64,
    /// Refinement from each level to the next; one level more than there are ratios.
    pub ratios: Vec<u64>,
    /// Particles per cell.
    pub particles_per_cell: u64,
    /// Plot files.
    pub plot_files: u64,
    /// Particle files.
    pub particle_files: u64,
    /// Compute time before every file but the first.
    pub compute: Duration,
    /// Filters of the plot files' data; with any, chunks have 1024 elements.
    pub filters: Vec<Filter>,
    /// Whether ranks write data together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// Elements of a chunk of filtered data.
const CHUNK: u64 = 1024;
/// The most boxes of all levels: their list is part of the workload.
const MOST_BOXES: u64 = 1 << 20;
/// The most files of a kind.
const MOST_FILES: u64 = 1 << 16;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "amrex",
    about: "plot files and particles of an adaptive-mesh code, box by box, with a restart check",
    stands_for: "AMReX's HDF5 benchmark (h5bench's kind amrex). The domain of cells^3 is cut into boxes, which are dealt out to the \
        ranks; refined levels cover its centre. A plot file has a group per level: the list of boxes, where each begins, and all \
        components of all boxes as one array of float64, sorted by owner, so that each rank makes one large collective write. \
        A particle file has arrays of integers and of floats, and ranks write a box per call. The restart check reads the \
        first plot file.",
    keys: &[
        key("cells", "N", "32", "cells of the coarsest level along each dimension; the sample of h5bench has 64"),
        key("box", "N", "8", "the most cells of a box along each dimension"),
        key("components", "N", "6", "components of a cell"),
        key("levels", "N", "1", "levels; each further one covers the middle half of the one before, twice as fine"),
        key("particles", "N", "2", "particles per cell"),
        key("plot_files", "N", "2", "plot files"),
        key("particle_files", "N", "1", "particle files"),
        key("compute", "TIME", "0", "pause before every file but the first"),
        key("deflate", "LEVEL", "0", "compression of plot files, in chunks of 1024 elements; 0: none"),
        key("restart_check", "yes|no", "yes", "read the first plot file at the end"),
        key("collective", "yes|no", "yes", "all ranks write data together"),
        SEED,
    ],
    ranks: 2,
    growth: Growth::Other,
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let deflate = u8::try_from(values.number("deflate")?).ok().filter(|level| *level <= 9);
    let levels = values.count("levels")?;
    if levels > 10 {
        return Err(values.bad("levels", "at most 10"));
    }
    let kernel = Amrex {
        ranks,
        directory: String::new(),
        cells: values.positive("cells")?,
        largest_box: values.positive("box")?,
        components: values.positive("components")?,
        ratios: vec![2; levels - 1],
        particles_per_cell: values.number("particles")?,
        plot_files: values.number("plot_files")?,
        particle_files: values.number("particle_files")?,
        compute: values.time("compute")?,
        filters: match deflate {
            Some(0) => Vec::new(),
            Some(level) => vec![Filter::Deflate(level)],
            None => return Err(values.bad("deflate", "a level from 0 to 9")),
        },
        transfer: values.transfer()?,
        seed: values.number("seed")?,
    };
    kernel.phases(values.flag("restart_check")?)
}

impl Amrex {
    /// All plot files, then all particle files, then perhaps the restart check.
    pub fn phases(&self, restart_check: bool) -> Result<Vec<Phase>> {
        let mut phases = Vec::new();
        if self.plot_files > 0 {
            phases.push(Phase::new("amrex plot files", self.plot()?));
        }
        if self.particle_files > 0 {
            phases.push(Phase::new("amrex particle files", self.particles()?));
        }
        if restart_check && self.plot_files > 0 {
            phases.push(Phase::new("amrex restart check", self.restart_check()?));
        }
        if phases.is_empty() {
            return Err(Error::invalid("plan AMReX", "there is nothing to write: no plot files and no particle files"));
        }
        Ok(phases)
    }

    /// Creates the plot files, each with all levels.
    pub fn plot(&self) -> Result<Workload> {
        let levels = self.levels()?;
        let declare = |level: &Level| self.plot_arrays(level);
        let arrays = levels.iter().map(declare).collect::<Result<Vec<_>>>()?.concat();
        let about = format!(
            "write {} plot files of {} boxes of {} components",
            self.plot_files,
            levels.iter().map(Level::boxes).sum::<u64>(),
            self.components
        );
        let files = (0..self.plot_files).map(|number| FileDeclaration::created(self.plot_file(number)));
        let header = self.header("plot", about, files.collect(), arrays);
        crate::batches::workload(header, plot::Plotting { kernel: self.clone(), levels })
    }

    /// Creates the particle files.
    pub fn particles(&self) -> Result<Workload> {
        let levels = self.levels()?;
        let level = Arc::new(levels.into_iter().next().ok_or_else(|| Error::invalid("plan AMReX", "no level"))?);
        let about = format!("write {} files of {} particles", self.particle_files, self.particles_of(level.cells()));
        let files = (0..self.particle_files).map(|number| FileDeclaration::created(self.particle_file(number)));
        let header = self.header("particles", about, files.collect(), self.particle_arrays(&level)?);
        crate::batches::workload(header, particles::ParticleSteps { kernel: self.clone(), level })
    }

    /// Reads the data of all levels of the first plot file, each rank its own boxes.
    pub fn restart_check(&self) -> Result<Workload> {
        let levels = self.levels()?;
        let declare = |level: &Level| self.plot_arrays(level);
        let arrays = levels.iter().map(declare).collect::<Result<Vec<_>>>()?.concat();
        let about = "read the first plot file".to_owned();
        let header = self.header("restart", about, vec![FileDeclaration::read(self.plot_file(0))], arrays);
        crate::batches::workload(header, restart::Reading { kernel: self.clone(), levels })
    }

    fn plot_file(&self, number: u64) -> String {
        self.in_directory(format!("plt{number:05}.h5"))
    }

    fn particle_file(&self, number: u64) -> String {
        self.in_directory(format!("plt{number:05}_particle0.h5"))
    }

    fn in_directory(&self, name: String) -> String {
        if self.directory.is_empty() { name } else { format!("{}/{name}", self.directory) }
    }

    fn particles_of(&self, cells: u64) -> u64 {
        cells * self.particles_per_cell
    }

    fn levels(&self) -> Result<Vec<Level>> {
        let bad = |message: String| Err(Error::invalid("plan AMReX", message));
        if self.ranks == 0 || self.cells == 0 || self.largest_box == 0 || self.components == 0 {
            return bad("ranks, cells, box and components must be at least 1".into());
        }
        if self.ratios.iter().any(|ratio| *ratio < 2) {
            return bad(format!("refinement by {:?}; every ratio is at least 2", self.ratios));
        }
        if self.plot_files > MOST_FILES || self.particle_files > MOST_FILES {
            return bad(format!("at most {MOST_FILES} files of a kind are possible"));
        }
        let levels = Level::all(self)?;
        let mut cells = 0u64;
        let mut boxes = 0u64;
        for level in &levels {
            boxes = boxes.saturating_add(level.boxes());
            cells = cells.saturating_add(level.cells());
        }
        if boxes > MOST_BOXES {
            return bad(format!("{boxes} boxes; at most {MOST_BOXES} are possible"));
        }
        let values = self.components.max(self.particles_per_cell.saturating_mul(particles::REALS));
        dims::byte_count(&[cells, values, self.plot_files.max(self.particle_files).max(1)], 8)?;
        Ok(levels)
    }

    fn header(&self, name: &str, about: String, files: Vec<FileDeclaration>, arrays: Vec<ArrayDeclaration>) -> Header {
        Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: format!("amrex-{name}"),
            about,
            ranks: self.ranks,
            seed: self.seed,
            files,
            arrays,
        }
    }

    /// Boxes, where each begins, their centring, and data.
    fn plot_arrays(&self, level: &Level) -> Result<Vec<ArrayDeclaration>> {
        let elements = level.cells() * self.components;
        let mut data = ArraySpec::new(Datatype::F64, &[elements]);
        if !self.filters.is_empty() {
            data.chunk = Some([CHUNK.min(elements)].into_iter().collect());
            data.filters = self.filters.clone();
        }
        let offsets = level.offsets().into_iter().flat_map(|cell| ((cell * self.components) as i64).to_le_bytes());
        let centres = vec![0; level.boxes() as usize * 12];
        Ok(vec![
            level.list()?,
            literal("<i8".parse()?, level.boxes() + 1, offsets.collect()),
            literal(
                Datatype::packed_compound(["i", "j", "k"].map(|name| (name, Datatype::I32)))?,
                level.boxes(),
                centres,
            ),
            ArrayDeclaration { spec: data, fill: Fill::Random },
        ])
    }
}

/// A list of values that are part of the workload.
fn literal(dtype: Datatype, len: u64, bytes: Vec<u8>) -> ArrayDeclaration {
    ArrayDeclaration { spec: ArraySpec::new(dtype, &[len]), fill: Fill::Literal(bytes) }
}
