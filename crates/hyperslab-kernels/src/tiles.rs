//! Tiles of two-dimensional arrays over time steps, as the HDF Group's iotest (h5bench's `metadata`) writes and reads
//! them: the same numbers in one dataset of four dimensions, in some of three, or in many of two.

mod steps;

use crate::direction::Direction;
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, Result, Selection, TransferMode, dims};
use std::sync::Arc;
use steps::Tiling;

/// What `rows` and `columns` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// Those of one rank's tile: more ranks, more data.
    Weak,
    /// Those of all ranks together: more ranks, smaller tiles.
    Strong,
}

/// How many dimensions the datasets have, and so how many datasets there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetRank {
    /// One dataset for each step and array, in a group per step or per array.
    Two,
    /// One dataset per step or per array, whichever is slowest.
    Three,
    /// One dataset.
    Four,
}

/// Which of the two outer dimensions comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowestDim {
    /// Steps, then arrays.
    Step,
    /// Arrays, then steps.
    Array,
}

/// Parameters of the tiles kernel. Whatever the slowest dimension, all arrays of a step are transferred before the next
/// step begins, a tile per call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tiles {
    /// Number of ranks: the product of the process grid.
    pub ranks: usize,
    /// Ranks one below the other.
    pub process_rows: u64,
    /// Ranks side by side.
    pub process_columns: u64,
    /// The container, relative to the run's directory.
    pub file: String,
    /// Time steps; at least 1.
    pub steps: u64,
    /// Arrays of each step; at least 1.
    pub arrays: u64,
    /// Rows of a tile or of an array; at least 2.
    pub rows: u64,
    /// Columns of a tile or of an array; at least 2.
    pub columns: u64,
    /// Which of both.
    pub scaling: Scaling,
    /// Dimensions of the datasets.
    pub dataset_rank: DatasetRank,
    /// The first of the outer dimensions.
    pub slowest: SlowestDim,
    /// A chunk is one tile, and with four dimensions one tile of every array; otherwise there are no chunks.
    pub chunked: bool,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

/// Bytes of an element.
const ELEMENT: u64 = 8;

impl Tiles {
    /// Creates the file and every dataset when its first tile is due, writes all tiles, flushes and closes.
    pub fn write(&self) -> Result<Workload> {
        self.workload(Direction::Write)
    }

    /// Opens the file and reads every tile by the rank that wrote it.
    pub fn read(&self) -> Result<Workload> {
        self.workload(Direction::Read)
    }

    /// Bytes that all ranks together write or read.
    pub fn total_bytes(&self) -> Result<u64> {
        self.check()?;
        self.moved_bytes()
    }

    /// Bytes that each rank writes or reads.
    pub fn rank_bytes(&self) -> Result<u64> {
        Ok(self.total_bytes()? / self.ranks as u64)
    }

    /// Bytes of the largest buffer a rank holds at once: a tile.
    pub fn buffer_bytes(&self) -> Result<u64> {
        self.check()?;
        dims::byte_count(&self.tile(), ELEMENT)
    }

    /// Refuses parameters that contradict each other or lead to more bytes than a file can have.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String, hint: &str| Err(Error::invalid("plan tiles", message).hint(hint));
        if self.steps == 0 || self.arrays == 0 || self.process_rows == 0 || self.process_columns == 0 {
            return bad("steps, arrays, process rows and process columns must be at least 1".into(), "use 1 or more");
        }
        if self.rows < 2 || self.columns < 2 {
            return bad(
                format!("{} rows and {} columns are too few", self.rows, self.columns),
                "use at least 2 rows and 2 columns",
            );
        }
        if self.process_rows.checked_mul(self.process_columns) != Some(self.ranks as u64) {
            return bad(
                format!(
                    "a process grid of {} rows and {} columns is not for {} ranks",
                    self.process_rows, self.process_columns, self.ranks
                ),
                "choose process rows and columns whose product is the number of ranks",
            );
        }
        let divides = self.rows.is_multiple_of(self.process_rows) && self.columns.is_multiple_of(self.process_columns);
        if self.scaling == Scaling::Strong && !divides {
            return bad(
                format!(
                    "{} rows and {} columns cannot be divided evenly among {} and {} processes",
                    self.rows, self.columns, self.process_rows, self.process_columns
                ),
                "with strong scaling, use rows and columns that are multiples of the process rows and columns",
            );
        }
        self.moved_bytes().map(|_| ())
    }

    fn moved_bytes(&self) -> Result<u64> {
        let [rows, columns] = self.tile();
        dims::byte_count(&[self.steps, self.arrays, self.ranks as u64, rows, columns], ELEMENT)
    }

    /// Rows and columns of one rank's tile.
    fn tile(&self) -> [u64; 2] {
        match self.scaling {
            Scaling::Weak => [self.rows, self.columns],
            Scaling::Strong => [self.rows / self.process_rows, self.columns / self.process_columns],
        }
    }

    /// Rows and columns of an array.
    fn plane(&self) -> [u64; 2] {
        let [rows, columns] = self.tile();
        [rows * self.process_rows, columns * self.process_columns]
    }

    /// The outer indices of a tile in its dataset, out of those of its step and its array.
    fn outer<T: Copy>(&self, step: T, array: T) -> Vec<T> {
        match (self.dataset_rank, self.slowest) {
            (DatasetRank::Two, _) => Vec::new(),
            (DatasetRank::Three, SlowestDim::Step) => vec![array],
            (DatasetRank::Three, SlowestDim::Array) => vec![step],
            (DatasetRank::Four, SlowestDim::Step) => vec![step, array],
            (DatasetRank::Four, SlowestDim::Array) => vec![array, step],
        }
    }

    /// The name of the dataset that holds a tile.
    fn dataset(&self, step: u64, array: u64) -> Arc<str> {
        match (self.dataset_rank, self.slowest) {
            (DatasetRank::Two, SlowestDim::Step) => format!("step={step}/array={array}").into(),
            (DatasetRank::Two, SlowestDim::Array) => format!("array={array}/step={step}").into(),
            (DatasetRank::Three, SlowestDim::Step) => format!("step={step}").into(),
            (DatasetRank::Three, SlowestDim::Array) => format!("array={array}").into(),
            (DatasetRank::Four, _) => "dataset".into(),
        }
    }

    /// The tile of `rank` in its dataset.
    fn selection(&self, rank: usize, step: u64, array: u64) -> Result<Selection> {
        let [rows, columns] = self.tile();
        let (row, column) = (rank as u64 / self.process_columns, rank as u64 % self.process_columns);
        let mut start = Dims::from_vec(self.outer(step, array));
        let mut count = Dims::from_elem(1, start.len());
        start.extend([row * rows, column * columns]);
        count.extend([rows, columns]);
        Selection::dense(&start, &count)
    }

    /// What every dataset is. Chunked ones may get more steps later, as in iotest.
    fn spec(&self) -> ArraySpec {
        let whole = |outer: Vec<u64>, inner: [u64; 2]| outer.into_iter().chain(inner).collect::<Dims>();
        let mut spec = ArraySpec::new(Datatype::F64, &whole(self.outer(self.steps, self.arrays), self.plane()));
        if self.chunked {
            let arrays = if self.dataset_rank == DatasetRank::Four { self.arrays } else { 1 };
            spec.chunk = Some(whole(self.outer(1, arrays), self.tile()));
            let steps_grow = self.outer(true, false);
            if steps_grow.contains(&true) {
                let grows = steps_grow.into_iter().chain([false; 2]);
                spec.max_shape = Some(spec.shape.iter().zip(grows).map(|(&n, grows)| (!grows).then_some(n)).collect());
            }
        }
        spec
    }

    fn workload(&self, direction: Direction) -> Result<Workload> {
        self.check()?;
        let (name, file) = match direction {
            Direction::Write => ("tiles-write", FileDeclaration::created(&self.file)),
            Direction::Read => ("tiles-read", FileDeclaration::read(&self.file)),
        };
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: name.into(),
            about: self.about(direction),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![file],
            arrays: vec![ArrayDeclaration { spec: self.spec(), fill: Fill::Random }],
        };
        Workload::new(header, Arc::new(Tiling { tiles: self.clone(), direction }))
    }

    /// A one-line description.
    fn about(&self, direction: Direction) -> String {
        let verb = direction.verb();
        let datasets = match (self.dataset_rank, self.slowest) {
            (DatasetRank::Four, _) => "one dataset",
            (DatasetRank::Three, SlowestDim::Step) => "a dataset per step",
            (DatasetRank::Three, SlowestDim::Array) => "a dataset per array",
            (DatasetRank::Two, _) => "a dataset per step and array",
        };
        format!(
            "{verb} {} steps of {} arrays in tiles of {}, {datasets}, {}",
            self.steps,
            self.arrays,
            dims::display(&self.tile()),
            if self.chunked { "chunked" } else { "contiguous" },
        )
    }
}
