//! The access pattern of IOR: segments of one block per rank, each block written in transfers, to a shared file or to a
//! file per rank; in order, shuffled or at random places; and the variants of it that studies of striping use.

mod c_random;
mod layout;
mod order;
mod steps;
mod stripes;

pub use layout::Layout;
pub use order::{Order, Writers};
pub use stripes::{Stripes, targets_per_client};

use crate::ior::c_random::CRandom;
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Update, WORKLOAD_VERSION, Workload};
use hyperslab_core::{Error, Fill, Result, Selection, TransferMode};
use std::sync::Arc;
use steps::{Direction, Playing};

/// The most slots that a shuffled order is worked out for; some 200 MiB while it is made.
const MOST_SHUFFLED: u64 = 1 << 24;

/// Parameters of the pattern. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ior {
    /// Number of ranks.
    pub ranks: usize,
    /// The container, relative to the run's directory.
    pub file: String,
    /// Every rank has a container of its own.
    pub file_per_rank: bool,
    /// Contiguous bytes of a rank in each segment.
    pub block: u64,
    /// Bytes of a call; divides the block.
    pub transfer: u64,
    /// Number of segments.
    pub segments: u64,
    /// In which order a rank takes its transfers.
    pub order: Order,
    /// What the bytes are elements of.
    pub layout: Layout,
    /// Arrays have the chunks of the layout; formats without chunks do without.
    pub chunks: bool,
    /// So many blocks of a rank are transferred by one call, as a regular hyperslab; 1 is IOR's own way.
    pub gather: u64,
    /// Whether ranks transfer together.
    pub mode: TransferMode,
    /// A durable flush after every write.
    pub sync_each_write: bool,
    /// A durable flush after all writes.
    pub sync_at_end: bool,
    /// All ranks wait for each other between opening, transferring and closing.
    pub barriers: bool,
    /// Nanoseconds of computation after every transfer.
    pub compute: u64,
    /// Seed of the data.
    pub seed: u64,
}

impl Ior {
    /// IOR's defaults: one segment of 1 MiB per rank, in transfers of 256 KiB, to a shared file.
    pub fn new(ranks: usize, file: impl Into<String>) -> Self {
        Self {
            ranks,
            file: file.into(),
            file_per_rank: false,
            block: 1 << 20,
            transfer: 256 << 10,
            segments: 1,
            order: Order::Sequential,
            layout: Layout::Words,
            chunks: true,
            gather: 1,
            mode: TransferMode::Independent,
            sync_each_write: false,
            sync_at_end: false,
            barriers: false,
            compute: 0,
            seed: 0,
        }
    }

    /// Creates the file, writes what each rank has to write, and closes.
    pub fn write(&self) -> Result<Workload> {
        self.workload(Direction::Create, Readers::own())
    }

    /// Opens a file that is there and writes the same into it with this seed.
    pub fn overwrite(&self) -> Result<Workload> {
        self.workload(Direction::Overwrite, Readers::own())
    }

    /// Opens the file and reads, each rank what `readers` says.
    pub fn read(&self, readers: Readers) -> Result<Workload> {
        self.workload(Direction::Read, readers)
    }

    /// Refuses parameters that contradict each other.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String, hint: &str| Err(Error::invalid("plan IOR", message).hint(hint));
        if self.ranks == 0 || self.segments == 0 || self.gather == 0 {
            return bad("ranks, segments and gathered blocks must be at least 1".into(), "use 1 or more");
        }
        if self.transfer == 0 || self.transfer > self.block || !self.block.is_multiple_of(self.transfer) {
            return bad(
                format!("a block of {} bytes is not a multiple of a transfer of {}", self.block, self.transfer),
                "choose -b as a multiple of -t",
            );
        }
        if !self.transfer.is_multiple_of(8) {
            return bad(format!("a transfer of {} bytes is not a multiple of 8", self.transfer), "use 8, 16, 4k, 1m");
        }
        if self.gather > 1 && self.order != Order::Sequential {
            return bad("gathered blocks are regular, a random order is not".into(), "leave out one of both");
        }
        if self.total_bytes().is_none_or(|bytes| bytes > i64::MAX as u64) {
            return bad("the file would have more bytes than a file can have".into(), "use fewer or smaller blocks");
        }
        self.order.check(self)?;
        self.layout.check(self)
    }

    /// Bytes of all files together; `None` if that is no number.
    pub fn total_bytes(&self) -> Option<u64> {
        self.block.checked_mul(self.segments)?.checked_mul(self.ranks as u64)
    }

    /// Bytes of one container.
    pub fn container_bytes(&self) -> u64 {
        self.segment_bytes() * self.segments
    }

    /// Bytes of one segment of one container.
    pub fn segment_bytes(&self) -> u64 {
        self.block * if self.file_per_rank { 1 } else { self.ranks as u64 }
    }

    /// Where transfer `transfer` of segment `segment` of `rank` begins: `i*N*b + r*b + j*t` in a shared file, `i*b + j*t`
    /// in a file of its own.
    pub fn offset(&self, rank: usize, segment: u64, transfer: u64) -> u64 {
        let of_rank = if self.file_per_rank { 0 } else { rank as u64 * self.block };
        segment * self.segment_bytes() + of_rank + transfer * self.transfer
    }

    /// Bytes of the largest call.
    pub fn call_bytes(&self) -> u64 {
        if self.gather > 1 { self.block * self.gather.min(self.segments) } else { self.transfer }
    }

    /// Whether all ranks make equally many calls and have to make them together: a rank that stops alone would leave the
    /// others waiting.
    pub fn in_step(&self) -> bool {
        let together = self.mode == TransferMode::Collective || self.sync_each_write || self.layout.is_collective();
        together && !self.file_per_rank
    }

    /// The elements that hold `length` bytes from `offset` of the container on. With a dataset for each segment, those of the
    /// segment that the offset lies in.
    pub fn elements(&self, offset: u64, length: u64) -> Result<Selection> {
        self.layout.selection(self, offset, length, 1, length)
    }

    /// How many calls `rank` makes.
    pub fn calls(&self, rank: usize) -> Result<u64> {
        Ok(order::Calls::of(self, rank)?.total())
    }

    fn workload(&self, direction: Direction, readers: Readers) -> Result<Workload> {
        self.check()?;
        readers.check(self.ranks)?;
        let (name, file) = match direction {
            Direction::Create => ("ior-write", FileDeclaration::created(&self.file)),
            Direction::Overwrite => ("ior-overwrite", FileDeclaration::updated(&self.file, Update::Overwrite)),
            Direction::Read => ("ior-read", FileDeclaration::read(&self.file)),
        };
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: name.into(),
            about: self.about(direction),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![file.per_rank(self.file_per_rank)],
            arrays: vec![ArrayDeclaration { spec: self.layout.spec(self, direction), fill: Fill::Random }],
        };
        Workload::new(header, Arc::new(Playing { ior: self.clone(), direction, readers }))
    }

    /// A one-line description.
    fn about(&self, direction: Direction) -> String {
        let verb = if direction == Direction::Read { "read" } else { "write" };
        let files = if self.file_per_rank { "a file per rank" } else { "a shared file" };
        format!(
            "{verb} {} segments of a block of {} bytes per rank in transfers of {}, {files}, {}",
            self.segments,
            self.block,
            self.call_bytes(),
            self.order.words(),
        )
    }
}

/// Whose transfers each rank takes in a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readers {
    /// Those of the rank so many after it; 0 are its own.
    Shifted(usize),
    /// Those of the rank at its place in this list.
    Listed(Vec<usize>),
}

impl Readers {
    /// Each its own.
    pub fn own() -> Self {
        Self::Shifted(0)
    }

    /// Each those of some rank at random, independently, as IOR's `-Z` draws them from C's `rand` with `seed + rank`; at least
    /// `distance` ranks away.
    pub fn random(ranks: usize, seed: u32, distance: usize) -> Self {
        let draw = |rank: usize| {
            let mut random = CRandom::new(seed.wrapping_add(rank as u32));
            loop {
                let away = random.below(ranks as u64) as usize;
                if away >= distance.min(ranks - 1) {
                    return (rank + away) % ranks;
                }
            }
        };
        Self::Listed((0..ranks).map(draw).collect())
    }

    /// Each those of another one, as IOR's `-ZZ` shuffles them.
    pub fn shuffled(ranks: usize, seed: u32) -> Self {
        let mut random = CRandom::new(seed);
        let mut readers: Vec<usize> = (0..ranks).collect();
        for at in 0..ranks {
            readers.swap(at, at + random.below((ranks - at) as u64) as usize);
        }
        Self::Listed(readers)
    }

    /// Whose transfers `rank` takes, of so many ranks.
    pub fn of(&self, rank: usize, ranks: usize) -> usize {
        match self {
            Self::Shifted(by) => (rank + by % ranks) % ranks,
            Self::Listed(readers) => readers[rank],
        }
    }

    fn check(&self, ranks: usize) -> Result<()> {
        match self {
            Self::Listed(readers) if readers.len() != ranks || readers.iter().any(|&reader| reader >= ranks) => {
                Err(Error::invalid("plan IOR", format!("the list of readers is not one of {ranks} ranks")))
            }
            _ => Ok(()),
        }
    }
}
