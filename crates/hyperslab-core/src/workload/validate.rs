//! Validation of a workload before it runs: rejects invalid step sequences and collectives that would deadlock, and sums up the
//! resources that a run needs.

mod write_coverage;

use super::{FileDeclaration, Step, Unchecked, Update, Workload};
use crate::{Datatype, Dims, Error, MemoryLayout, OpenMode, Result, Selection, dims};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use write_coverage::WriteCoverage;

/// The most arrays that a workload may have open on a rank, or expect to be there.
const MAX_ARRAYS: usize = 1 << 20;

/// Totals of a workload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkloadSummary {
    /// Steps of all ranks.
    pub steps: u64,
    /// Bytes that all ranks write.
    pub bytes_written: u64,
    /// Bytes that all ranks read.
    pub bytes_read: u64,
    /// Bytes of the largest buffer of each rank, added up.
    pub buffers: u64,
    /// Bytes of the arrays that are created, at their largest extents.
    pub created_bytes: u64,
    /// The longest time that a rank computes.
    pub compute: Duration,
    /// The longest time that a rank's calls took when they were recorded; `None` if no step says.
    pub took: Option<Duration>,
    /// Arrays that must exist before the run, in containers that the workload does not create.
    pub inputs: Vec<InputArray>,
    /// By file: data that cannot be verified.
    pub unchecked: Vec<Option<Unchecked>>,
}

/// An array that must exist before the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputArray {
    /// Number of the file.
    pub file: u32,
    /// Number of the declaration.
    pub array: u32,
    /// Path of the array.
    pub name: Arc<str>,
}

impl WorkloadSummary {
    /// Walks every rank's steps.
    pub(super) fn of(workload: &Workload) -> Result<Self> {
        let header = &workload.header;
        let mut summary =
            Self { unchecked: header.files.iter().map(|file| file.unchecked).collect(), ..Self::default() };
        let mut together: Option<CollectiveSteps> = None;
        for rank in 0..header.ranks {
            let mut walk = Walk::new(workload, &mut summary, rank == 0);
            let mine = walk.all(rank).map_err(|error| error.rank(rank))?;
            match &together {
                None => together = Some(mine),
                Some(first) => first.check(&mine, rank)?,
            }
        }
        match &header.recorded {
            Some(recorded) if recorded.steps != summary.steps => Err(refuse(format!(
                "it holds {} steps, but {} were recorded: it was cut off or changed",
                summary.steps, recorded.steps
            ))
            .hint(
                "copy or record it again; without the header's \"recorded\" the steps that are there are taken as all",
            )),
            _ => Ok(summary),
        }
    }
}

/// Number and hash of a rank's collective steps. Equal on all ranks, or collective calls would deadlock.
#[derive(Debug, PartialEq, Eq)]
struct CollectiveSteps {
    steps: u64,
    hash: u64,
}

impl CollectiveSteps {
    fn new() -> Self {
        Self { steps: 0, hash: 0xCBF2_9CE4_8422_2325 }
    }

    fn add(&mut self, step: &Step) -> Result<()> {
        let text = serde_json::to_vec(&*step.in_common()).map_err(|e| refuse(e.to_string()))?;
        self.steps += 1;
        for byte in text {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        Ok(())
    }

    fn check(&self, other: &Self, rank: usize) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let said = if self.steps == other.steps {
            "takes other collective steps than rank 0, or in another order".into()
        } else {
            format!("takes {} collective steps, rank 0 {}", other.steps, self.steps)
        };
        Err(refuse(format!("rank {rank} {said}; the ranks would wait for each other for ever")))
    }
}

/// An array that is open on the rank that is walked.
struct OpenArray {
    file: u32,
    array: u32,
    name: Arc<str>,
    shape: Dims,
}

/// The walk over one rank's steps.
struct Walk<'a> {
    workload: &'a Workload,
    summary: &'a mut WorkloadSummary,
    first: bool,
    open_files: Vec<bool>,
    made: Vec<bool>,
    slots: HashMap<u32, OpenArray>,
    /// By file and name, what this rank has written so far.
    written: BTreeMap<(u32, Arc<str>), WriteCoverage>,
    buffer: u64,
    compute: u64,
    took: Option<u64>,
}

impl<'a> Walk<'a> {
    fn new(workload: &'a Workload, summary: &'a mut WorkloadSummary, first: bool) -> Self {
        let files = workload.header.files.len();
        Self {
            workload,
            summary,
            first,
            open_files: vec![false; files],
            made: vec![false; files],
            slots: HashMap::new(),
            written: BTreeMap::new(),
            buffer: 0,
            compute: 0,
            took: None,
        }
    }

    fn all(&mut self, rank: usize) -> Result<CollectiveSteps> {
        let mut together = CollectiveSteps::new();
        for step in self.workload.timed_steps(rank)? {
            let (step, took) = step?;
            self.summary.steps += 1;
            if let Some(took) = took {
                self.took = Some(self.took.unwrap_or(0).saturating_add(took));
            }
            let alone = self.step(&step).map_err(|error| error.target(format!("step {}", self.summary.steps)))?;
            if step.is_collective() && !alone {
                together.add(&step)?;
            }
        }
        if self.open_files.contains(&true) || !self.slots.is_empty() {
            return Err(refuse("it ends with files or arrays open").hint("was it cut off?"));
        }
        self.summary.buffers = self.summary.buffers.saturating_add(self.buffer);
        self.summary.compute = self.summary.compute.max(Duration::from_nanos(self.compute));
        self.summary.took = self.summary.took.max(self.took.map(Duration::from_nanos));
        Ok(together)
    }

    /// Looks at a step; returns whether it concerns a file of this rank alone.
    fn step(&mut self, step: &Step) -> Result<bool> {
        let file = match step {
            Step::OpenFile { file, how } => self.open_file(*file, *how)?,
            Step::Group { file, .. } | Step::Attribute { file, .. } | Step::Flush { file, .. } => {
                self.file_in_use(*file)?
            }
            Step::Create { slot, file, array, name } => self.create(*slot, *file, *array, name)?,
            Step::Open { slot, file, array, name } => self.open(*slot, *file, *array, name)?,
            Step::Write { slot, selection, memory, .. } => self.transfer(*slot, selection, memory, true)?,
            Step::Read { slot, selection, memory, .. } => self.transfer(*slot, selection, memory, false)?,
            Step::Resize { slot, shape } => self.resize(*slot, shape)?,
            Step::CloseArray { slot } => {
                let closed = self.slots.remove(slot).ok_or_else(|| no_array(*slot))?;
                closed.file
            }
            Step::CloseFile { file } => {
                let number = self.file_in_use(*file)?;
                if self.slots.values().any(|open| open.file == number) {
                    return Err(refuse(format!("file {file} is closed while arrays of it are open")));
                }
                self.open_files[number as usize] = false;
                number
            }
            Step::Compute { nanoseconds } => {
                self.compute = self.compute.saturating_add(*nanoseconds);
                return Ok(true);
            }
            Step::Barrier | Step::Epoch { .. } => return Ok(false),
        };
        Ok(self.declaration(file)?.per_rank)
    }

    fn declaration(&self, file: u32) -> Result<&'a FileDeclaration> {
        let found = self.workload.header.files.get(file as usize);
        found.ok_or_else(|| refuse(format!("file {file} is not declared")))
    }

    fn file_in_use(&self, file: u32) -> Result<u32> {
        match self.open_files.get(file as usize) {
            Some(true) => Ok(file),
            _ => Err(refuse(format!("file {file} is used but not open"))),
        }
    }

    fn open_file(&mut self, file: u32, how: OpenMode) -> Result<u32> {
        let declaration = self.declaration(file)?;
        let at = file as usize;
        if std::mem::replace(&mut self.open_files[at], true) {
            return Err(refuse(format!("file {file} is opened twice")));
        }
        let makes = matches!(how, OpenMode::Create | OpenMode::Truncate);
        if makes && !declaration.created
            || how == OpenMode::Update && !declaration.created && declaration.update.is_none()
        {
            return Err(refuse(format!("{:?} is created or changed, but not declared so", declaration.name)));
        }
        if makes && std::mem::replace(&mut self.made[at], true) {
            self.leave_unchecked(file, Unchecked::All);
        }
        if declaration.created && !self.made[at] {
            return Err(refuse(format!("{:?} is declared as created, but opened before that", declaration.name)));
        }
        Ok(file)
    }

    fn create(&mut self, slot: u32, file: u32, array: u32, name: &Arc<str>) -> Result<u32> {
        let open = self.occupy(slot, file, array, name)?;
        let bytes = self.byte_count(array, &open)?;
        if self.first || self.declaration(file)?.per_rank {
            self.summary.created_bytes = self.summary.created_bytes.saturating_add(bytes);
        }
        self.written.insert((file, name.clone()), WriteCoverage::nothing(open.len()));
        Ok(file)
    }

    fn open(&mut self, slot: u32, file: u32, array: u32, name: &Arc<str>) -> Result<u32> {
        self.occupy(slot, file, array, name)?;
        let known = self.written.contains_key(&(file, name.clone()));
        if !known {
            self.written.insert((file, name.clone()), WriteCoverage::all());
            if self.first && !self.declaration(file)?.created {
                if self.summary.inputs.len() >= MAX_ARRAYS {
                    return Err(refuse(format!("it reads more than {MAX_ARRAYS} arrays")));
                }
                self.summary.inputs.push(InputArray { file, array, name: name.clone() });
            }
        }
        Ok(file)
    }

    /// Notes an open array; returns its extents.
    fn occupy(&mut self, slot: u32, file: u32, array: u32, name: &Arc<str>) -> Result<Dims> {
        self.file_in_use(file)?;
        let declared = self.workload.header.arrays.get(array as usize);
        let shape = declared.ok_or_else(|| refuse(format!("array {array} is not declared")))?.spec.shape.clone();
        if slot as usize >= MAX_ARRAYS || self.written.len() >= MAX_ARRAYS {
            return Err(refuse(format!("slot {slot}; at most {MAX_ARRAYS} slots and arrays are possible")));
        }
        let open = OpenArray { file, array, name: name.clone(), shape: shape.clone() };
        match self.slots.insert(slot, open) {
            None => Ok(shape),
            Some(_) => Err(refuse(format!("slot {slot} is in use already"))),
        }
    }

    fn byte_count(&self, array: u32, shape: &[u64]) -> Result<u64> {
        dims::byte_count(shape, self.workload.header.arrays[array as usize].spec.dtype.size())
    }

    fn transfer(&mut self, slot: u32, selection: &Selection, memory: &MemoryLayout, write: bool) -> Result<u32> {
        let open = self.slots.get(&slot).ok_or_else(|| no_array(slot))?;
        let dtype = &self.workload.header.arrays[open.array as usize].spec.dtype;
        selection.check_inside(&open.shape)?;
        let (each, whole, buffer) = match dtype {
            Datatype::VariableString if !memory.is_packed() => {
                return Err(refuse("strings of variable length can only be packed in memory"));
            }
            // How long they are is known when they are made.
            Datatype::VariableString => (dtype.size(), true, selection.len().saturating_mul(dtype.size())),
            _ => {
                let plan = memory.plan(dtype)?;
                let each = plan.pieces.iter().map(|piece| piece.len).sum();
                (each, plan.covers_element(), memory.buffer_len(dtype, selection.len())?)
            }
        };
        let bytes = selection.len().saturating_mul(each);
        self.buffer = self.buffer.max(buffer);
        let file = open.file;
        // Every open array has an entry.
        let entry = self.written.get_mut(&(file, open.name.clone()));
        let told = match (entry, write) {
            (Some(written), true) if whole => {
                written.add(selection);
                true
            }
            (Some(written), false) => written.covers(selection),
            _ => true,
        };
        let total = if write { &mut self.summary.bytes_written } else { &mut self.summary.bytes_read };
        *total = total.saturating_add(bytes);
        let replaces = self.declaration(file)?.update == Some(Update::Overwrite);
        if !write && !selection.is_empty() && (!told || replaces) {
            self.leave_unchecked(file, Unchecked::Reads);
        }
        Ok(file)
    }

    fn resize(&mut self, slot: u32, shape: &Dims) -> Result<u32> {
        let open = self.slots.get_mut(&slot).ok_or_else(|| no_array(slot))?;
        let (file, array, before) = (open.file, open.array, std::mem::replace(&mut open.shape, shape.clone()));
        if before.len() != shape.len() {
            return Err(refuse(format!("slot {slot} is given another number of dimensions")));
        }
        let bytes = self.byte_count(array, shape)?;
        if self.first || self.declaration(file)?.per_rank {
            let more = bytes.saturating_sub(self.byte_count(array, &before)?);
            self.summary.created_bytes = self.summary.created_bytes.saturating_add(more);
        }
        // Row-major indices are preserved only if the slowest dimension grows.
        let grows = shape.first() >= before.first() && shape.get(1..) == before.get(1..);
        if !grows {
            self.leave_unchecked(file, Unchecked::All);
        }
        // "All" meant the old extents.
        if let Some(open) = self.slots.get(&slot)
            && let Some(written) = self.written.get_mut(&(file, open.name.clone()))
        {
            written.grown_from(&before);
        }
        Ok(file)
    }

    fn leave_unchecked(&mut self, file: u32, what: Unchecked) {
        let known = &mut self.summary.unchecked[file as usize];
        *known = (*known).max(Some(what));
    }
}

fn refuse(message: impl Into<String>) -> Error {
    Error::invalid("check workload", message)
}

fn no_array(slot: u32) -> Error {
    refuse(format!("slot {slot} is used, but no array is open there"))
}
