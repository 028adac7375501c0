//! Particles of a plasma or cosmology code, written (VPIC-IO) and read (BD-CATS-IO) as h5bench does it:
//! eight properties of four bytes each, in a group per time step.

mod distribution;
mod modify;
mod read;
mod subset;
mod write;

pub use subset::ParticleSubset;

use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, Step, StepSource, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{
    ArraySpec, Datatype, Dims, Error, Fill, Filter, MemoryLayout, Result, Selection, TransferMode, dims,
};
use std::sync::Arc;
use std::time::Duration;

/// How a rank's particles lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPattern {
    /// One buffer per property.
    Contiguous,
    /// One buffer of 32-byte structures.
    Interleaved,
}

/// How particles lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePattern {
    /// One array per property.
    Contiguous,
    /// One compound array.
    Interleaved,
}

/// Parameters of the particle kernels.
#[derive(Debug, Clone)]
pub struct Particles {
    /// Number of ranks.
    pub ranks: usize,
    /// The container, relative to the run's directory.
    pub file: String,
    /// A container per rank.
    pub file_per_rank: bool,
    /// Time steps; at least 1.
    pub time_steps: u64,
    /// Particles per rank along each of 1 to 3 dimensions. Ranks follow each other along the first.
    pub extent: Dims,
    /// Standard deviation of the ranks' extents along the first dimension; 0: all have the same.
    pub deviation: u64,
    /// Which of its particles a rank transfers.
    pub part: ParticleSubset,
    /// Layout in memory.
    pub memory: MemoryPattern,
    /// Layout in the file.
    pub pattern: FilePattern,
    /// Compute time between time steps; none after the last.
    pub compute: Duration,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Chunk extents.
    pub chunk: Option<Dims>,
    /// Filters of chunks.
    pub filters: Vec<Filter>,
    /// Arrays may grow without limit along every dimension; needs chunks.
    pub unlimited: bool,
    /// How often the file was appended to before.
    pub appended: u64,
    /// Arrays are closed this many time steps late.
    pub delayed_close: u64,
    /// Seed of the data.
    pub seed: u64,
}

/// Bytes of one particle.
pub(crate) const PARTICLE: u64 = 32;
/// Bytes of one property.
pub(crate) const PROPERTY: u64 = 4;
/// Name, type and data of each property, in the order of the structure.
const PROPERTIES: [(&str, Datatype, Fill); 8] = [
    ("x", Datatype::F32, Fill::Random),
    ("y", Datatype::F32, Fill::Random),
    ("z", Datatype::F32, Fill::Ramp),
    ("px", Datatype::F32, Fill::Random),
    ("py", Datatype::F32, Fill::Random),
    ("pz", Datatype::F32, Fill::Ramp),
    ("id_1", Datatype::I32, Fill::Index),
    ("id_2", Datatype::F32, Fill::Index),
];

impl Particles {
    /// Contiguous particles in one shared file, one time step, seed 0, nothing special.
    pub fn new(file: impl Into<String>, ranks: usize, extent: &[u64]) -> Self {
        Self {
            ranks,
            file: file.into(),
            file_per_rank: false,
            time_steps: 1,
            extent: extent.into(),
            deviation: 0,
            part: ParticleSubset::Whole,
            memory: MemoryPattern::Contiguous,
            pattern: FilePattern::Contiguous,
            compute: Duration::ZERO,
            transfer: TransferMode::Independent,
            chunk: None,
            filters: Vec::new(),
            unlimited: false,
            appended: 0,
            delayed_close: 0,
            seed: 0,
        }
    }

    /// Bytes of the largest rank in one time step, whether it transfers them all or not.
    pub fn bytes_per_step(&self) -> Result<u64> {
        dims::byte_count(&self.largest_extent()?, PARTICLE)
    }

    /// Bytes that all ranks together transfer.
    pub fn total_bytes(&self) -> Result<u64> {
        let too_much = || Error::invalid("plan particles", "the workload exceeds 2^63 bytes");
        self.bytes_per_step()?; // One rank's part fits in an integer.
        let starts = self.starts()?;
        let mut particles: u64 = 0;
        if self.deviation == 0 {
            particles = self.part.len(&self.extent)?.checked_mul(self.ranks as u64).ok_or_else(too_much)?;
        } else {
            for rank in 0..self.ranks {
                let one = self.part.len(&self.extent_of(rank, &starts))?;
                particles = particles.checked_add(one).ok_or_else(too_much)?;
            }
        }
        particles
            .checked_mul(PARTICLE)
            .and_then(|n| n.checked_mul(self.time_steps))
            .filter(|&n| n <= i64::MAX as u64)
            .ok_or_else(too_much)
    }

    /// Bytes of the largest buffer a rank holds at once.
    pub fn buffer_bytes(&self) -> Result<u64> {
        let per_element = match self.memory {
            MemoryPattern::Contiguous => PROPERTY,
            MemoryPattern::Interleaved => PARTICLE,
        };
        Ok(self.part.len(&self.largest_extent()?)?.saturating_mul(per_element))
    }

    /// A one-line description.
    fn about(&self, verb: &str) -> String {
        let word = |interleaved| if interleaved { "interleaved" } else { "contiguous" };
        let spread =
            if self.deviation > 0 { format!(" (standard deviation {})", self.deviation) } else { String::new() };
        format!(
            "{verb} {}{} particles{spread} per rank in {} time steps, {} in memory, {} in the file",
            self.part.about(),
            dims::display(&self.extent),
            self.time_steps,
            word(self.memory == MemoryPattern::Interleaved),
            word(self.pattern == FilePattern::Interleaved),
        )
    }

    fn check(&self) -> Result<()> {
        let bad = |m: &str| Err(Error::invalid("plan particles", m));
        if !(1..=3).contains(&self.extent.len()) {
            return bad("particles have 1 to 3 dimensions");
        }
        if self.extent.contains(&0) || self.time_steps == 0 || self.ranks == 0 {
            return bad("every extent, the time steps and the ranks must be at least 1");
        }
        if self.deviation > 0 && self.file_per_rank {
            return bad("ranks with a file each and different extents cannot be declared; use one shared file");
        }
        if self.unlimited && self.chunk.is_none() {
            return bad("arrays without limit need chunks");
        }
        self.file_shape()?;
        self.part.check(&self.extent)?;
        self.total_bytes()?;
        Ok(())
    }

    /// Extents of an array in the file.
    pub(crate) fn file_shape(&self) -> Result<Dims> {
        let mut shape = self.extent.clone();
        let once = if self.file_per_rank { self.extent[0] } else { self.starts()?[self.ranks] };
        shape[0] = self
            .appended
            .checked_add(1)
            .and_then(|times| times.checked_mul(once))
            .ok_or_else(|| Error::invalid("plan particles", "the first extent of all ranks exceeds 2^64"))?;
        Ok(shape)
    }

    /// The particles that `rank` transfers, those of the first rank beginning at `base` along the first dimension.
    fn selection_of(&self, rank: usize, base: u64, starts: &[u64]) -> Result<Selection> {
        let mut start = Dims::from_elem(0, self.extent.len());
        start[0] = base + if self.file_per_rank { 0 } else { starts[rank] };
        self.part.within(&start, &self.extent_of(rank, starts))
    }

    /// The elements that are transferred, in words, if not all.
    fn part_words(&self) -> String {
        match self.part {
            ParticleSubset::Whole => String::new(),
            _ => format!("{}{} particles of {} ranks", self.part.about(), dims::display(&self.extent), self.ranks),
        }
    }

    /// The arrays of a time step: name and declaration.
    fn arrays(&self) -> Result<Vec<(&'static str, ArrayDeclaration)>> {
        let declare = |dtype: Datatype, fill: Fill| -> Result<ArrayDeclaration> {
            let mut spec = ArraySpec::new(dtype, &self.file_shape()?);
            spec.chunk = self.chunk.clone();
            spec.filters = self.filters.clone();
            spec.max_shape = self.unlimited.then(|| vec![None; self.extent.len()]);
            Ok(ArrayDeclaration { spec, fill })
        };
        match (self.pattern, self.memory) {
            (FilePattern::Interleaved, _) => {
                let compound = Datatype::packed_compound(PROPERTIES.map(|(name, dtype, _)| (name, dtype)))?;
                let fills = PROPERTIES.map(|(_, _, fill)| fill).to_vec();
                Ok(vec![("particles", declare(compound, Fill::Fields(fills))?)])
            }
            (FilePattern::Contiguous, MemoryPattern::Contiguous) => {
                PROPERTIES.into_iter().map(|(name, dtype, fill)| Ok((name, declare(dtype, fill)?))).collect()
            }
            // As in h5bench: a compound of one field, so that the library itself takes the field out of the structure.
            (FilePattern::Contiguous, MemoryPattern::Interleaved) => PROPERTIES
                .into_iter()
                .map(|(name, dtype, fill)| {
                    Ok((name, declare(Datatype::packed_compound([(name, dtype)])?, Fill::Fields(vec![fill]))?))
                })
                .collect(),
        }
    }

    /// The transfers of a time step: which of its arrays, and how the elements lie in memory.
    fn transfers(&self) -> Vec<(usize, Arc<MemoryLayout>)> {
        let names = PROPERTIES.map(|(name, ..)| name);
        match (self.memory, self.pattern) {
            (MemoryPattern::Contiguous, FilePattern::Contiguous) => {
                let packed = Arc::new(MemoryLayout::packed());
                (0..names.len()).map(|i| (i, packed.clone())).collect()
            }
            (MemoryPattern::Contiguous, FilePattern::Interleaved) => {
                names.iter().map(|name| (0, Arc::new(MemoryLayout::fields(PROPERTY, [(*name, 0)])))).collect()
            }
            (MemoryPattern::Interleaved, FilePattern::Contiguous) => names
                .iter()
                .enumerate()
                .map(|(i, name)| (i, Arc::new(MemoryLayout::fields(PARTICLE, [(*name, i as u64 * PROPERTY)]))))
                .collect(),
            (MemoryPattern::Interleaved, FilePattern::Interleaved) => vec![(0, Arc::new(MemoryLayout::packed()))],
        }
    }

    fn header(&self, name: &str, about: String, file: FileDeclaration) -> Result<Header> {
        let file = FileDeclaration { part: self.part_words(), ..file.per_rank(self.file_per_rank) };
        Ok(Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: name.into(),
            about,
            ranks: self.ranks,
            seed: self.seed,
            files: vec![file],
            arrays: self.arrays()?.into_iter().map(|(_, declaration)| declaration).collect(),
        })
    }
}

/// What a phase of a particle kernel needs at hand.
#[derive(Debug)]
struct Plan {
    parameters: Particles,
    names: Vec<&'static str>,
    transfers: Vec<(usize, Arc<MemoryLayout>)>,
    /// Where each rank begins along the first dimension, and where the last ends.
    starts: Vec<u64>,
}

impl Plan {
    fn new(parameters: &Particles) -> Result<Self> {
        parameters.check()?;
        let names = parameters.arrays()?.into_iter().map(|(name, _)| name).collect();
        let starts = parameters.starts()?;
        Ok(Self { parameters: parameters.clone(), names, transfers: parameters.transfers(), starts })
    }

    /// The slot of array `index` at time step `step`.
    fn slot(&self, step: u64, index: usize) -> u32 {
        let generation = step % (self.parameters.delayed_close + 1);
        generation as u32 * self.names.len() as u32 + index as u32
    }

    fn group(step: u64) -> String {
        format!("Timestep_{step}")
    }

    fn array_name(&self, step: u64, index: usize) -> Arc<str> {
        format!("{}/{}", Self::group(step), self.names[index]).into()
    }

    /// What `rank` transfers of every array, those of the first rank beginning at `base` along the first dimension.
    fn selection_of(&self, rank: usize, base: u64) -> Result<Selection> {
        self.parameters.selection_of(rank, base, &self.starts)
    }

    /// Opens the arrays of a time step.
    fn open(&self, step: u64, steps: &mut Vec<Step>) {
        steps.extend((0..self.names.len()).map(|i| Step::Open {
            slot: self.slot(step, i),
            file: 0,
            array: i as u32,
            name: self.array_name(step, i),
        }));
    }

    /// Writes the arrays of a time step.
    fn write(&self, step: u64, selection: &Selection, steps: &mut Vec<Step>) {
        steps.extend(self.transfers_at(step).map(|(slot, memory, transfer)| Step::Write {
            slot,
            selection: selection.clone(),
            memory,
            transfer,
        }));
    }

    /// The transfers of a time step: slot, memory and manner of each.
    fn transfers_at(&self, step: u64) -> impl Iterator<Item = (u32, Arc<MemoryLayout>, TransferMode)> + '_ {
        let transfer = self.parameters.transfer;
        self.transfers.iter().map(move |(array, memory)| (self.slot(step, *array), memory.clone(), transfer))
    }

    /// Closes what is due at the end of time step `step`.
    fn close_due(&self, step: u64, steps: &mut Vec<Step>) {
        let delay = self.parameters.delayed_close;
        if let Some(due) = step.checked_sub(delay) {
            self.close(due, steps);
        }
        if step + 1 == self.parameters.time_steps {
            let first_open = (step + 1).saturating_sub(delay);
            (first_open..=step).for_each(|late| self.close(late, steps));
        }
    }

    fn close(&self, step: u64, steps: &mut Vec<Step>) {
        steps.extend((0..self.names.len()).map(|i| Step::CloseArray { slot: self.slot(step, i) }));
    }

    fn compute_after(&self, step: u64, steps: &mut Vec<Step>) {
        let nanoseconds = self.parameters.compute.as_nanos().min(u128::from(u64::MAX)) as u64;
        if nanoseconds > 0 && step + 1 < self.parameters.time_steps {
            steps.push(Step::Compute { nanoseconds });
        }
    }
}

/// A kernel as phases: one before the first time step, one per time step, one after the last.
trait Phases: Send + Sync + std::fmt::Debug {
    fn time_steps(&self) -> u64;
    fn before(&self) -> Vec<Step>;
    /// What `rank` transfers of every array in every time step.
    fn selection(&self, rank: usize) -> Result<Selection>;
    fn during(&self, selection: &Selection, step: u64) -> Vec<Step>;
    fn after(&self) -> Vec<Step>;
}

#[derive(Debug)]
struct Phased<P>(P);

impl<P: Phases> StepSource for Phased<P> {
    fn steps(&self, rank: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        // Made once: unions of many blocks take time.
        let selection = self.0.selection(rank)?;
        let during = (0..self.0.time_steps()).flat_map(move |step| self.0.during(&selection, step));
        Ok(Box::new(self.0.before().into_iter().chain(during).chain(self.0.after()).map(Ok)))
    }
}

fn workload(header: Header, phases: impl Phases + 'static) -> Result<Workload> {
    Workload::new(header, Arc::new(Phased(phases)))
}
