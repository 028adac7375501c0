//! A workload is data: arrays declared once, then for each rank a lazy stream of steps.
//! The same workload can be run, predicted and simulated.

mod json_lines;
mod source;
mod step;
mod trace_info;
mod validate;

pub use json_lines::{JsonLines, read_header, write_header, write_json_lines, write_step};
pub use source::{StepSource, Steps, TimedSteps, WrittenSteps};
pub use step::Step;
pub use trace_info::TraceInfo;
pub use validate::{Input, WorkloadSummary};

use crate::{ArraySpec, Error, Fill, Result, TransferMode};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

/// The version of the written form that this build writes. It reads all from 1 to this one.
pub const WORKLOAD_VERSION: u32 = 2;

/// The integer attribute of a container's root that says with which seed its data were made.
pub const SEED_ATTRIBUTE: &str = "hyperslab_seed";

/// Value of [`SEED_ATTRIBUTE`] when parts of the data were made with different seeds, so that no rule tells them all.
pub const MIXED_SEEDS: i64 = -1;

/// The text attribute of a container's root that says, where not all elements were written, which ones were.
pub const PART_ATTRIBUTE: &str = "hyperslab_part";

/// The most ranks, files and array kinds a workload may declare.
const MAX_DECLARED: usize = 1 << 20;

/// What is the same for all ranks and steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the written form.
    #[serde(rename = "hyperslab_workload")]
    pub version: u32,
    /// A short name.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub about: String,
    /// Number of ranks that take part.
    pub ranks: usize,
    /// Seed of the data.
    #[serde(default)]
    pub seed: u64,
    /// Says that it was recorded from a run, and how much of it. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<TraceInfo>,
    /// Containers used, by number.
    pub files: Vec<FileDeclaration>,
    /// Kinds of arrays used, by number; each may be created under several names.
    pub arrays: Vec<ArrayDeclaration>,
}

/// A container that steps refer to by its place in [`Header::files`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDeclaration {
    /// Path relative to the directory of the run.
    pub name: String,
    /// The workload creates it; otherwise it must be there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// The workload changes one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// Which elements are transferred, in words, if not all of each array. Data of a container that was written in part
    /// can be checked only by workloads that transfer the same part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Every rank has a container of its own, named `rank_<r>_<name>`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_rank: bool,
    /// What of it no rule tells, so that it is never compared. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<Unchecked>,
}

/// What of a container's data is not compared with the rules, even when that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unchecked {
    /// Reads of the workload: they may meet elements that nobody wrote, or that were made by another rule.
    Reads,
    /// Nothing of it: arrays changed their shapes so that written elements moved or went, or it was made anew.
    All,
}

/// How a workload changes a container that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Update {
    /// Elements get new values, made with the workload's seed; it should differ from the seed of the old ones.
    Overwrite,
    /// Elements are added, made with the seed that the container says its data have.
    Extend,
}

impl FileDeclaration {
    /// One that the workload creates.
    pub fn created(name: impl Into<String>) -> Self {
        Self { name: name.into(), created: true, update: None, part: String::new(), per_rank: false, unchecked: None }
    }

    /// One that is there and only read.
    pub fn read(name: impl Into<String>) -> Self {
        Self { name: name.into(), created: false, update: None, part: String::new(), per_rank: false, unchecked: None }
    }

    /// One that is there and changed.
    pub fn updated(name: impl Into<String>, how: Update) -> Self {
        Self { update: Some(how), ..Self::read(name) }
    }

    /// The same with a container per rank, or not.
    pub fn per_rank(self, per_rank: bool) -> Self {
        Self { per_rank, ..self }
    }

    /// The path, relative to the directory of the run, that `rank` uses.
    pub fn path_of(&self, rank: usize) -> String {
        if !self.per_rank {
            return self.name.clone();
        }
        match self.name.rsplit_once('/') {
            Some((directory, base)) => format!("{directory}/rank_{rank}_{base}"),
            None => format!("rank_{rank}_{}", self.name),
        }
    }
}

/// A kind of array and the data it gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayDeclaration {
    /// What it is.
    #[serde(flatten)]
    pub spec: ArraySpec,
    /// What it contains.
    #[serde(default)]
    pub fill: Fill,
}

impl Header {
    /// Refuses headers that contradict themselves.
    pub fn check(&self) -> Result<()> {
        let bad = |m: String| Err(Error::invalid("check workload", m));
        if !(1..=WORKLOAD_VERSION).contains(&self.version) {
            return bad(format!(
                "version {} of the workload form; this build reads 1 to {WORKLOAD_VERSION}",
                self.version
            ));
        }
        if self.version < 2 && (self.recorded.is_some() || self.files.iter().any(|file| file.unchecked.is_some())) {
            return bad("recorded and unchecked belong to version 2".into());
        }
        if self.ranks == 0 || self.ranks > MAX_DECLARED {
            return bad(format!("{} ranks; 1 to {MAX_DECLARED} are possible", self.ranks));
        }
        if self.files.len() > MAX_DECLARED || self.arrays.len() > MAX_DECLARED {
            return bad(format!("more than {MAX_DECLARED} files or arrays are declared"));
        }
        for file in &self.files {
            let safe = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
            if !file.name.split('/').all(safe) {
                return bad(format!("{:?} is not a relative file name", file.name));
            }
            if file.created && file.update.is_some() {
                return bad(format!("{:?} is both created and updated", file.name));
            }
        }
        self.arrays.iter().try_for_each(|array| array.spec.check())
    }
}

/// A header and its streams of steps.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What is the same for all ranks.
    pub header: Header,
    source: Arc<dyn StepSource>,
}

impl Workload {
    /// A checked workload.
    pub fn new(header: Header, source: Arc<dyn StepSource>) -> Result<Self> {
        header.check()?;
        Ok(Self { header, source })
    }

    /// The steps of `rank`, lazily and in order.
    pub fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        self.check_rank(rank)?;
        self.source.steps(rank)
    }

    /// The steps of `rank` with the nanoseconds that each took when it was recorded, where that is known.
    pub fn timed_steps(&self, rank: usize) -> Result<TimedSteps<'_>> {
        self.check_rank(rank)?;
        self.source.timed_steps(rank)
    }

    /// The same without its compute steps.
    pub fn without_compute(&self) -> Self {
        Self { header: self.header.clone(), source: source::without_compute(self.source.clone()) }
    }

    /// The same with all reads and writes alone, or all together. Ranks that make different ones would wait for each other for
    /// ever: [`Workload::validate`] refuses that.
    pub fn with_transfers(&self, transfer: TransferMode) -> Self {
        Self { header: self.header.clone(), source: source::with_transfers(self.source.clone(), transfer) }
    }

    /// The same steps under another header.
    pub fn with_header(&self, header: Header) -> Result<Self> {
        Self::new(header, self.source.clone())
    }

    /// Walks all steps of all ranks: refuses what cannot be run, and says what running it takes.
    pub fn validate(&self) -> Result<WorkloadSummary> {
        WorkloadSummary::of(self)
    }

    fn check_rank(&self, rank: usize) -> Result<()> {
        if rank >= self.header.ranks {
            return Err(Error::invalid("walk workload", format!("rank {rank} of {}", self.header.ranks)));
        }
        Ok(())
    }
}
