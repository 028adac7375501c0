//! Arrays of doubles in growing sizes, with blocks and gaps in memory and in the file: h5bench's exerciser.

mod geometry;
mod steps;

use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, MAX_RANK, Result, TransferMode, dims};
use std::sync::Arc;
use steps::{Turn, reading, writing};

/// Parameters of the exerciser kernel for one size; [`Sweep::sizes`] lists those of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Number of ranks.
    pub ranks: usize,
    /// The container, relative to the run's directory.
    pub file: String,
    /// Elements of one rank along each dimension; at least 1.
    pub extent: Dims,
    /// Ranks along each dimension; their product is the number of ranks. See [`Sweep::process_grid`].
    pub grid: Dims,
    /// Elements that follow each other in memory. 0, or what does not divide a rank's elements, means all.
    pub memory_block: u64,
    /// Elements from one block in memory to the next; less than a block means no gap.
    pub memory_stride: u64,
    /// Elements that follow each other in the file along each dimension. 0, or what does not divide the extent, means
    /// all, and then the stride has no effect.
    pub file_blocks: Dims,
    /// Elements from one block in the file to the next; less than a block means no gap.
    pub file_strides: Dims,
    /// A chunk is one block of the file; otherwise there are no chunks.
    pub chunked: bool,
    /// A rank writes the part of the rank this many places after it, and reads that of twice as many.
    pub shift: u64,
    /// Whether the group gets 64 attributes of a kibibyte.
    pub attributes: bool,
    /// Whether a second dataset of as many compounds of eight doubles is written. It has no gaps and is never read.
    pub derived: bool,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// The most sizes of a sweep.
pub const MAX_SIZES: u64 = 1000;

/// Bytes of a double.
const DOUBLE: u64 = 8;
/// The fields of the compound, all doubles.
const DERIVED_FIELDS: [&str; 8] =
    ["total_blocks", "number_of_steps", "nxb", "nyb", "nzb", "time", "time_step", "reserved"];
/// Bytes of the compound.
const DERIVED: u64 = DOUBLE * DERIVED_FIELDS.len() as u64;

impl Sweep {
    /// The extents of a sweep: the smallest, then each dimension multiplied by its factor, `count` in all.
    pub fn sizes(smallest: &[u64], factors: &[u64], count: u64) -> Result<Vec<Dims>> {
        if smallest.len() != factors.len() {
            return Err(invalid(format!("{} extents, but {} factors", smallest.len(), factors.len())));
        }
        if !(1..=MAX_SIZES).contains(&count) {
            return Err(invalid(format!("{count} sizes; 1 to {MAX_SIZES} are possible")));
        }
        let mut sizes = vec![Dims::from_slice(smallest)];
        for _ in 1..count {
            let next = sizes[sizes.len() - 1].iter().zip(factors).map(|(n, factor)| n.checked_mul(*factor));
            let next: Dims = next.collect::<Option<_>>().ok_or_else(|| {
                invalid(format!("size {} has an extent beyond 2^64", sizes.len() + 1)).hint("use fewer sizes")
            })?;
            sizes.push(next);
        }
        Ok(sizes)
    }

    /// How `ranks` divide an array of some dimensions: as `asked`, or along the first dimension alone if that is not
    /// for as many dimensions or ranks. The second value says whether `asked` was taken.
    pub fn process_grid(asked: &[u64], dimensions: usize, ranks: usize) -> (Dims, bool) {
        let fits = asked.len() == dimensions && product(asked) == Some(ranks as u64);
        if fits {
            return (asked.into(), true);
        }
        let mut grid = Dims::from_elem(1, dimensions);
        if let Some(first) = grid.first_mut() {
            *first = ranks as u64;
        }
        (grid, false)
    }

    /// Creates the file, a group and a dataset, writes it, flushes and closes; with attributes and a second dataset if
    /// asked for.
    pub fn write(&self) -> Result<Workload> {
        self.workload("sweep-write", "write", FileDeclaration::created(&self.file), writing)
    }

    /// Opens the file and reads the dataset of doubles, each rank what another wrote if ranks are shifted.
    pub fn read(&self) -> Result<Workload> {
        self.workload("sweep-read", "read", FileDeclaration::read(&self.file), reading)
    }

    /// Bytes that all ranks together write.
    pub fn total_bytes(&self) -> Result<u64> {
        self.check()?;
        self.moved_bytes(self.written_element())
    }

    /// Bytes that all ranks together read.
    pub fn read_bytes(&self) -> Result<u64> {
        self.check()?;
        self.moved_bytes(DOUBLE)
    }

    /// Bytes of the doubles of one rank, gaps not counted: what the exerciser calls `Bufsize`.
    pub fn rank_bytes(&self) -> Result<u64> {
        Ok(self.read_bytes()? / self.ranks as u64)
    }

    /// Bytes of the largest buffer a rank holds at once, gaps in memory included.
    pub fn buffer_bytes(&self) -> Result<u64> {
        self.check()?;
        let doubles = dims::byte_count(&[self.memory_elements()?], DOUBLE)?;
        let derived = if self.derived { dims::byte_count(&self.extent, DERIVED)? } else { 0 };
        Ok(doubles.max(derived))
    }

    /// Whether all blocks that were asked for divide the extents. Those that do not have no effect.
    pub fn blocks_fit(&self) -> bool {
        let divides = |block: u64, whole: u64| block == 0 || whole.is_multiple_of(block);
        self.file_blocks.iter().zip(&self.extent).all(|(block, extent)| divides(*block, *extent))
            && product(&self.extent).is_some_and(|elements| divides(self.memory_block, elements))
    }

    /// Refuses parameters that contradict each other or lead to more bytes than a file can have.
    pub fn check(&self) -> Result<()> {
        let rank = self.extent.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(invalid(format!("{rank} dimensions; 1 to {MAX_RANK} are possible")));
        }
        for (what, list) in [("grid", &self.grid), ("blocks", &self.file_blocks), ("strides", &self.file_strides)] {
            if list.len() != rank {
                return Err(invalid(format!("the {what} {list:?} are not for {rank} dimensions")));
            }
        }
        if self.extent.contains(&0) {
            return Err(invalid("every extent must be at least 1"));
        }
        if self.ranks == 0 || product(&self.grid) != Some(self.ranks as u64) {
            let grid = dims::display(&self.grid);
            return Err(invalid(format!("a process grid of {grid} is not for {} ranks", self.ranks))
                .hint("use a grid whose product is the number of ranks, or Sweep::process_grid"));
        }
        dims::byte_count(&[self.memory_elements()?], DOUBLE)?;
        self.moved_bytes(self.written_element())?;
        self.declarations()?.iter().try_for_each(|array| array.spec.check())
    }

    /// Bytes written for each element of a rank.
    fn written_element(&self) -> u64 {
        DOUBLE + if self.derived { DERIVED } else { 0 }
    }

    fn moved_bytes(&self, element: u64) -> Result<u64> {
        let elements = dims::element_count(&self.extent)?;
        dims::byte_count(&[elements, self.ranks as u64], element)
    }

    /// The dataset of doubles and, if asked for, the one of compounds.
    fn declarations(&self) -> Result<Vec<ArrayDeclaration>> {
        let mut doubles = ArraySpec::new(Datatype::F64, &self.file_shape()?);
        doubles.chunk = self.chunked.then(|| self.file_stripes().map(|stripes| stripes.block).collect());
        let mut specs = vec![doubles];
        if self.derived {
            let compound = Datatype::packed_compound(DERIVED_FIELDS.map(|name| (name, Datatype::F64)))?;
            let mut derived = ArraySpec::new(compound, &self.derived_shape()?);
            derived.chunk = self.chunked.then(|| self.extent.clone());
            specs.push(derived);
        }
        Ok(specs.into_iter().map(|spec| ArrayDeclaration { spec, fill: Fill::Random }).collect())
    }

    fn workload(&self, name: &str, verb: &str, file: FileDeclaration, steps: steps::StepsOf) -> Result<Workload> {
        self.check()?;
        let mut about = format!(
            "{verb} {} doubles per rank on a grid of {} ranks",
            dims::display(&self.extent),
            dims::display(&self.grid)
        );
        for (word, said) in [("chunked", self.chunked), ("with a derived type", self.derived && verb == "write")] {
            if said {
                about.push_str(&format!(", {word}"));
            }
        }
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: name.into(),
            about,
            ranks: self.ranks,
            seed: self.seed,
            files: vec![file],
            arrays: self.declarations()?,
        };
        Workload::new(header, Arc::new(Turn { sweep: self.clone(), steps }))
    }
}

fn product(numbers: &[u64]) -> Option<u64> {
    numbers.iter().try_fold(1u64, |product, n| product.checked_mul(*n))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid("plan exerciser", message)
}
