//! The published tables of [hdf5-lustre], their rows as workloads (data/lustre_ior_2014.csv: facts, cited).

use crate::calibrate::MeasuredRun;
use crate::stage::Rates;
use crate::system::System;
use crate::walk::{RunPlacement, walk};
use hyperslab_core::units::parse_size;
use hyperslab_core::{Error, Result, Stack, TransferMode};
use hyperslab_kernels::ior::{Ior, Layout, Readers};

const TABLES: &str = include_str!("../data/lustre_ior_2014.csv");
/// Bytes that each of the clients moved.
const PER_CLIENT: u64 = 20 << 30;
/// Calls of a client that are walked through: steady long before, so that the rate is that of all.
const MOST_CALLS: u64 = 2000;
const CLIENTS: usize = 10;
const STRIPE: u64 = 1 << 20;

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// The table, such as `A.1`.
    pub table: String,
    /// `disjoint`, `1-OST` and so on.
    pub pattern: String,
    /// `contiguous`, or in chunks.
    pub layout: String,
    /// What it was called through.
    pub api: String,
    /// Whether it wrote.
    pub writes: bool,
    /// Whether calls were collective.
    pub collective: bool,
    /// Whether objects began at stripes.
    pub aligned: bool,
    /// Bytes of a call.
    pub transfer: u64,
    /// Bytes of a chunk.
    pub chunk: Option<u64>,
    /// MiB/s: smallest, mean and largest of three runs.
    pub rate: [f64; 3],
    /// Where it was published.
    pub source: String,
}

/// The groups that errors are given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowGroup {
    /// Datasets in one piece.
    Contiguous,
    /// Chunked, clients in regions of their own.
    ChunkedDisjoint,
    /// Chunked, clients in turn.
    ChunkedInterleaved,
}

impl RowGroup {
    /// Words for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::ChunkedDisjoint => "chunked disjoint",
            Self::ChunkedInterleaved => "chunked interleaved",
        }
    }
}

impl TableRow {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let size = |text: &str| parse_size(&text.replace(' ', "")).ok();
        let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Self {
            table: (*fields.first()?).into(),
            pattern: (*fields.get(2)?).into(),
            layout: (*fields.get(3)?).into(),
            api: (*fields.get(5)?).into(),
            writes: *fields.get(6)? == "write",
            collective: *fields.get(7)? == "collective",
            aligned: *fields.get(8)? == "aligned",
            transfer: size(fields.get(9)?)?,
            chunk: size(fields.get(10)?),
            rate: [number(13)?, number(14)?, number(15)?],
            source: (*fields.last()?).into(),
        })
    }

    /// The group that it is judged in.
    pub fn group(&self) -> RowGroup {
        match (self.chunk.is_some(), self.pattern == "disjoint") {
            (false, _) => RowGroup::Contiguous,
            (true, true) => RowGroup::ChunkedDisjoint,
            (true, false) => RowGroup::ChunkedInterleaved,
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        let chunk = self.chunk.map_or(String::new(), |chunk| format!(" chunk {}", short(chunk)));
        format!(
            "{} {} {} {} {} {}{chunk}",
            self.pattern,
            self.api,
            if self.writes { "write" } else { "read" },
            if self.collective { "coll" } else { "ind" },
            if self.aligned { "al" } else { "unal" },
            short(self.transfer),
        )
    }

    /// The same measurement, perhaps in another table.
    pub fn is_same_run(&self, other: &Self) -> bool {
        let key = |row: &Self| (row.words(), row.rate.map(f64::to_bits));
        key(self) == key(other)
    }

    /// The workload that it measured, and the stack.
    pub fn workload(&self) -> Result<(hyperslab_core::workload::Workload, Stack)> {
        let interleaved = self.pattern != "disjoint";
        // Blocks of clients begin on the same server, as those of 20 GiB do.
        let bytes = (self.transfer * MOST_CALLS).min(PER_CLIENT);
        let block = if interleaved { self.transfer } else { bytes };
        let ior = Ior {
            block,
            transfer: self.transfer,
            segments: (bytes / block).max(1),
            layout: Layout::Bytes { chunk: self.chunk },
            mode: if self.collective { TransferMode::Collective } else { TransferMode::Independent },
            ..Ior::new(CLIENTS, "ior")
        };
        let align = if self.aligned { "align=1MiB," } else { "" };
        let stack = match self.api.as_str() {
            "POSIX" => "posix".to_owned(),
            "MPI-IO" => "mpiio".to_owned(),
            _ => format!("hdf5({align}meta_block=2KiB)"),
        };
        let workload = if self.writes { ior.write()? } else { ior.read(Readers::own())? };
        Ok((workload, stack.parse()?))
    }

    /// The row as a run to fit or judge on.
    pub fn measured(&self, system: &System) -> Result<MeasuredRun> {
        let (workload, stack) = self.workload()?;
        let run = RunPlacement { stripe_size: STRIPE, ..RunPlacement::of(system) };
        let walked = walk(&workload, &stack, system, &run)?;
        let bytes = walked.written + walked.read;
        let seconds = bytes / (self.rate[1] * 1048576.0);
        let name = format!("{} {}", self.table, self.words());
        Ok(MeasuredRun { name, walked, rates: Rates::of(system), seconds, weight: 1.0 })
    }
}

fn short(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{}M", bytes >> 20) } else { format!("{}K", bytes >> 10) }
}

/// All rows.
pub fn published_tables() -> Result<Vec<TableRow>> {
    let rows: Vec<TableRow> = TABLES.lines().skip(1).filter_map(TableRow::parse).collect();
    if rows.len() + 1 != TABLES.lines().count() {
        return Err(Error::invalid("read published tables", "a row of the table is not understood"));
    }
    Ok(rows)
}
