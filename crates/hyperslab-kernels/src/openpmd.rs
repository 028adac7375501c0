//! openPMD: fields and particles of a particle-in-cell code, in files that openPMD-api reads.

mod patches;
mod read;
mod steps;

pub use read::ReadPattern;

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, Result, TransferMode, dims};
use patches::Patches;
use steps::Writing;

/// How iterations are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// A group for each, in one file.
    Group,
    /// A file for each.
    File,
}

/// Parameters of the writer, which the reader has to know too.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenPmd {
    /// Number of ranks.
    pub ranks: usize,
    /// Beginning of the file names, relative to the run's directory.
    pub file: String,
    /// Whether all ranks write as much in every step.
    pub balanced: bool,
    /// Particles per cell.
    pub ratio: f64,
    /// Iterations; they are numbered from 1.
    pub steps: u64,
    /// Cells of a mini-block along each of 1 to 3 dimensions.
    pub block: Dims,
    /// Mini-blocks along each dimension.
    pub grid: Dims,
    /// How iterations are laid out.
    pub encoding: Encoding,
    /// A rank writes its mini-blocks as one; otherwise each by itself.
    pub rank_blocks: bool,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// Names of the dimensions.
const AXES: [&str; 3] = ["x", "y", "z"];
/// The most iterations.
const MOST_STEPS: u64 = 1 << 16;
/// Every so many iterations the reader reads one.
const READ_EVERY: usize = 5;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "openpmd",
    about: "fields and particles of a particle-in-cell code, in openPMD files; and slices of them",
    stands_for: "The openPMD-api benchmark (h5bench's kind openpmd): a particle-in-cell code writes, in every iteration, the fields E \
        and B and the charge density rho as float64 meshes, which are cut into mini-blocks and dealt out to the ranks, and a \
        species of particles (id, charge, position/x). Then slices and blocks of them are read, every fifth iteration. The \
        files are openPMD 1.1 and open with openPMD-api.",
    keys: &[
        key("block", "XxYxZ", "16x16x16", "cells of a mini-block; 1 to 3 dimensions; published 64x32x32"),
        key("grid", "XxYxZ", "4x4x4", "mini-blocks along each dimension; their number is a multiple of the ranks"),
        key("steps", "N", "2", "iterations, numbered from 1"),
        key("ratio", "NUMBER", "1", "particles per cell"),
        key("balanced", "yes|no", "yes", "no: in some iterations some ranks write nothing and others double"),
        key("encoding", "group|file", "group", "iterations are groups of one file, or files"),
        key("rank_blocks", "yes|no", "yes", "a rank writes its mini-blocks as one; no: each by itself"),
        key(
            "read",
            "CODES|no",
            "sx+fx+m",
            "what is read afterwards, joined by +: m, sx, sy, sz, fx, fy, fz, or a code",
        ),
        key("collective", "yes|no", "no", "all ranks transfer together"),
        SEED,
    ],
    ranks: 2,
    growth: Growth::Total("grid"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let balanced = values.flag("balanced")?;
    let block = values.extents("block")?;
    let writer = OpenPmd {
        ranks,
        file: OpenPmd::usual_file(block.len(), balanced),
        balanced,
        ratio: values.decimal("ratio")?,
        steps: values.positive("steps")?,
        block,
        grid: values.extents("grid")?,
        encoding: values.word("encoding", &[("group", Encoding::Group), ("file", Encoding::File)])?,
        rank_blocks: values.flag("rank_blocks")?,
        transfer: values.transfer()?,
        seed: values.number("seed")?,
    };
    let mut phases = vec![Phase::new("openpmd write", writer.write()?)];
    let codes = values.text("read");
    for code in codes.split('+').filter(|_| codes != "no") {
        let pattern: ReadPattern = code.parse()?;
        phases.push(Phase::new(format!("openpmd read {code}"), writer.read(&pattern)?));
    }
    Ok(phases)
}

impl OpenPmd {
    /// The name that the benchmark gives its files.
    pub fn usual_file(dimensions: usize, balanced: bool) -> String {
        format!("8a_parallel_{dimensions}D{}", if balanced { 'b' } else { 'u' })
    }

    /// Creates every iteration with its fields and particles.
    pub fn write(&self) -> Result<Workload> {
        let header = self.header("write", FileDeclaration::created, self.steps)?;
        let patches = Patches::new(self)?;
        crate::batches::workload(header, Writing { kernel: self.clone(), patches })
    }

    /// Reads some of every fifth iteration.
    pub fn read(&self, pattern: &ReadPattern) -> Result<Workload> {
        let header = self.header("read", FileDeclaration::read, self.steps)?;
        Patches::new(self)?;
        read::workload(self, header, pattern)
    }

    /// Extents of the meshes.
    pub fn mesh(&self) -> Dims {
        self.block.iter().zip(&self.grid).map(|(cells, blocks)| cells * blocks).collect()
    }

    /// Particles of so many cells.
    fn particles_in(&self, cells: u64) -> u64 {
        (cells as f64 * self.ratio) as u64
    }

    /// Particles of all ranks: each mini-block has as many.
    pub fn particles(&self) -> u64 {
        self.particles_in(self.block.iter().product()) * self.grid.iter().product::<u64>()
    }

    /// The meshes in the order in which they are written: record, and component unless it is a scalar.
    fn meshes(&self) -> Vec<(&'static str, Option<&'static str>)> {
        let vectors = AXES[..self.block.len()].iter().flat_map(|axis| [("E", Some(*axis)), ("B", Some(*axis))]);
        vectors.chain([("rho", None)]).collect()
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("plan openPMD", message));
        if !(1..=3).contains(&self.block.len()) || self.block.len() != self.grid.len() {
            return bad(format!("mini-blocks of {:?} on a grid of {:?}", self.block, self.grid));
        }
        if self.ranks == 0 || self.block.contains(&0) || self.grid.contains(&0) {
            return bad("ranks and all extents must be at least 1".into());
        }
        if self.steps == 0 || self.steps > MOST_STEPS {
            return bad(format!("{} iterations; 1 to {MOST_STEPS} are possible", self.steps));
        }
        if !self.ratio.is_finite() || !(0.0..=1e6).contains(&self.ratio) {
            return bad(format!("{} particles per cell", self.ratio));
        }
        let pairs = self.block.iter().zip(&self.grid);
        let mesh: Option<Vec<u64>> = pairs.map(|(cells, blocks)| cells.checked_mul(*blocks)).collect();
        let Some(mesh) = mesh else { return bad("the mesh exceeds 2^64".into()) };
        let cells = dims::byte_count(&mesh, 8)? / 8;
        dims::byte_count(&[cells, self.steps, 1 + self.ratio as u64], 64).map(|_| ())
    }

    fn header(&self, name: &str, declare: fn(String) -> FileDeclaration, files: u64) -> Result<Header> {
        self.check()?;
        let files = match self.encoding {
            Encoding::Group => vec![declare(format!("{}.h5", self.file))],
            Encoding::File => (1..=files).map(|step| declare(format!("{}_{step:07}.h5", self.file))).collect(),
        };
        let array =
            |dtype: Datatype, shape: &[u64], fill| ArrayDeclaration { spec: ArraySpec::new(dtype, shape), fill };
        let particles = [self.particles()];
        Ok(Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: format!("openpmd-{name}"),
            about: format!(
                "{name} {} iterations of meshes of {} and {} particles",
                self.steps,
                dims::display(&self.mesh()),
                particles[0]
            ),
            ranks: self.ranks,
            seed: self.seed,
            files,
            arrays: vec![
                array(Datatype::F64, &self.mesh(), Fill::Random),
                array(crate::attributes::U64, &particles, Fill::Index),
                array(Datatype::F64, &particles, Fill::Ramp),
            ],
        })
    }

    /// The number of the file of an iteration, and the path of its group.
    fn place(&self, step: u64) -> (u32, String) {
        let file = if self.encoding == Encoding::File { step as u32 - 1 } else { 0 };
        (file, format!("data/{step}"))
    }

    /// The iterations that are read.
    fn read_steps(&self) -> impl Iterator<Item = u64> + use<> {
        (1..=self.steps).step_by(READ_EVERY)
    }
}

/// The path of a mesh in the group of its iteration.
fn mesh_path(group: &str, (record, component): (&str, Option<&str>)) -> String {
    match component {
        Some(component) => format!("{group}/fields/{record}/{component}"),
        None => format!("{group}/fields/{record}"),
    }
}

/// The arrays of the species: path below it, and number of the declaration.
const SPECIES: [(&str, u32); 3] = [("id", 1), ("charge", 2), ("position/x", 2)];
