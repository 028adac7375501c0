//! MACSio: dumps of a multi-physics code whose mesh is in parts, each rank with its own files or all with one.

mod parts;
mod steps;

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, Result, dims};
use parts::Mesh;
use std::time::Duration;
use steps::Dumping;

/// How ranks share files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParallelFiles {
    /// Multiple independent files: so many, or one per rank if there are fewer ranks.
    Independent {
        /// Files of a dump.
        files: usize,
    },
    /// A single shared file.
    Shared,
}

/// Parameters of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Macsio {
    /// Number of ranks.
    pub ranks: usize,
    /// Beginning of the file names, relative to the run's directory.
    pub file: String,
    /// How ranks share files.
    pub mode: ParallelFiles,
    /// Parts of all ranks.
    pub parts: u64,
    /// Bytes of a float64 variable on the nodes of a part.
    pub part_bytes: u64,
    /// Dimensions of the mesh: 1 to 3.
    pub dimensions: usize,
    /// Variables of a part.
    pub variables: usize,
    /// Dumps.
    pub dumps: u64,
    /// Compute time between dumps.
    pub compute: Duration,
    /// Seed of the data.
    pub seed: u64,
}

/// The variables that are cycled through: name, whether it is on nodes (otherwise zones), and whether it is of integers.
const VARIABLES: [(&str, bool, bool); 8] = [
    ("constant", false, false),
    ("random", false, false),
    ("spherical", false, false),
    ("xramp", true, false),
    ("ysin", true, false),
    ("noise", true, false),
    ("noise_sum", true, false),
    ("xlayers", false, true),
];
/// The most dumps: each has a file.
const MOST_DUMPS: u64 = 1 << 16;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "macsio",
    about: "dumps of a multi-physics code, mesh part by mesh part, in a file per rank or one for all",
    stands_for: "MACSio, the proxy for I/O of multi-physics codes (h5bench's kind macsio). The mesh is in parts; each has variables on \
        zones and nodes, which cycle through constant, random, spherical, xramp, ysin, noise, noise_sum (float64) and xlayers \
        (int32). mode=MIF: every rank has its own file, with a group per part and an array per variable. mode=SIF: all ranks \
        write their parts of one array per variable together.",
    keys: &[
        key("mode", "MIF|SIF", "MIF", "a file per rank, or one for all"),
        key("parts", "NUMBER", "1", "parts per rank on average; whole numbers for SIF"),
        key("part_size", "SIZE", "80000", "bytes of a float64 variable on the nodes of a part"),
        key("part_dim", "N", "2", "dimensions of the mesh"),
        key("vars", "N", "20", "variables of a part"),
        key("dumps", "N", "5", "dumps; MACSio has 10"),
        key("compute", "TIME", "0", "pause between dumps"),
        SEED,
    ],
    ranks: 4,
    growth: Growth::PerRank("parts"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let mode =
        values.word("mode", &[("MIF", ParallelFiles::Independent { files: ranks }), ("SIF", ParallelFiles::Shared)])?;
    let kernel = Macsio {
        ranks,
        file: "macsio".into(),
        mode,
        parts: Macsio::parts_of(values.decimal("parts")?, ranks),
        part_bytes: values.positive("part_size")?,
        dimensions: values.count("part_dim")?,
        variables: values.count("vars")?,
        dumps: values.positive("dumps")?,
        compute: values.time("compute")?,
        seed: values.number("seed")?,
    };
    Ok(vec![Phase::new("macsio dumps", kernel.write()?)])
}

impl Macsio {
    /// Parts of all ranks, out of their average number per rank.
    pub fn parts_of(average: f64, ranks: usize) -> u64 {
        (average * ranks as f64).round() as u64
    }

    /// Writes all dumps.
    pub fn write(&self) -> Result<Workload> {
        let mesh = self.mesh()?;
        let declare = |shape: &Dims, integers: bool| {
            let dtype = if integers { Datatype::I32 } else { Datatype::F64 };
            ArrayDeclaration { spec: ArraySpec::new(dtype, shape), fill: Fill::Random }
        };
        let (zones, nodes) = match self.mode {
            ParallelFiles::Independent { .. } => (mesh.zones.clone(), mesh.nodes.clone()),
            ParallelFiles::Shared => mesh.global(),
        };
        let shared = self.mode == ParallelFiles::Shared;
        let file = |dump: u64| FileDeclaration::created(format!("{}_hdf5_{dump:03}.h5", self.file)).per_rank(!shared);
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: "macsio".into(),
            about: format!(
                "write {} dumps of {} variables of {} parts with {} nodes, {}",
                self.dumps,
                self.variables,
                self.parts,
                dims::display(&mesh.nodes),
                if shared { "one file" } else { "a file per rank" }
            ),
            ranks: self.ranks,
            seed: self.seed,
            files: (0..self.dumps).map(file).collect(),
            arrays: vec![declare(&zones, false), declare(&nodes, false), declare(&zones, true)],
        };
        for array in &header.arrays {
            let elements = dims::element_count(&array.spec.shape)?;
            let parts = if shared { 1 } else { self.parts };
            dims::byte_count(&[elements, parts, self.variables as u64, self.dumps], array.spec.dtype.size())?;
        }
        crate::batches::workload(header, Dumping { kernel: self.clone(), mesh })
    }

    fn mesh(&self) -> Result<Mesh> {
        let bad = |message: String, hint: &str| Err(Error::invalid("plan MACSio", message).hint(hint));
        if self.ranks == 0 || self.variables == 0 || self.dumps == 0 || self.dumps > MOST_DUMPS {
            return bad(
                format!("{} dumps of {} variables", self.dumps, self.variables),
                "use 1 or more, and 65536 dumps at most",
            );
        }
        if !(1..=3).contains(&self.dimensions) {
            return bad(format!("{} dimensions", self.dimensions), "use 1, 2 or 3");
        }
        if self.parts == 0 || self.parts > 1 << 32 {
            return bad(format!("{} parts", self.parts), "use at least 1 part, and 2^32 at most");
        }
        match self.mode {
            ParallelFiles::Independent { files } if files < self.ranks => bad(
                format!(
                    "{files} files for {} ranks: ranks that take turns with a file are not in the workload language",
                    self.ranks
                ),
                "use as many files as ranks, or SIF",
            ),
            ParallelFiles::Shared if !self.parts.is_multiple_of(self.ranks as u64) => bad(
                format!("SIF with {} parts for {} ranks", self.parts, self.ranks),
                "use a whole number of parts per rank",
            ),
            _ => Mesh::new(self),
        }
    }

    /// The name of variable number `number`, and the number of its declaration.
    fn variable(number: usize) -> (String, u32) {
        let (name, nodes, integers) = VARIABLES[number % VARIABLES.len()];
        let array = if integers { 2 } else { u32::from(nodes) };
        let name = if number < VARIABLES.len() { name.to_owned() } else { format!("{name}_{number:03}") };
        (name, array)
    }
}
