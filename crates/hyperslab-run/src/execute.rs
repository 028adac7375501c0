//! Plays one rank's steps on a format.

use crate::buffers::Buffers;
use crate::clock::{Clock, Clocked};
use crate::data_seed::DataSeed;
use crate::expected_data::{ExpectedData, Extents, declaration};
use crate::latency::{CallTimes, Operation};
use crate::lookahead::Lookahead;
use crate::measure::{RankMeasurement, Recorder};
use crate::progress::Progress;
use hyperslab_comm::Solo;
use hyperslab_core::workload::{FileDeclaration, Step, Unchecked, Update, Workload};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, Error, ErrorKind, Format, OpenMode, Result,
    Selection, Strings, TransferMode,
};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What all ranks of a run have in common.
#[derive(Debug)]
pub struct RunContext<'a> {
    /// What to do.
    pub workload: &'a Workload,
    /// On what.
    pub format: &'a dyn Format,
    /// Where the workload's files lie.
    pub directory: &'a Path,
    /// Check what is read against what was written, and read back what is written.
    pub verify: bool,
    /// Turn every flush into a durable one.
    pub durable: bool,
    /// Write every call's time to `<prefix>-rank-<r>.csv`.
    pub samples: Option<PathBuf>,
    /// Counters, and the wish to stop.
    pub progress: &'a Progress,
}

impl RunContext<'_> {
    /// What the workload says about file number `file`.
    pub(crate) fn file(&self, file: u32) -> Result<&FileDeclaration> {
        self.workload
            .header
            .files
            .get(file as usize)
            .ok_or_else(|| Error::invalid("run workload", format!("a step uses file {file}, which is not declared")))
    }

    /// Where `rank` finds file number `file`.
    pub(crate) fn path(&self, file: u32, rank: usize) -> Result<PathBuf> {
        Ok(self.directory.join(self.file(file)?.path_of(rank)))
    }

    /// The files of all containers that were there before.
    #[cfg(feature = "mpi")]
    pub(crate) fn input_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for path in container_paths(self.workload, self.directory, |file| !file.created) {
            files.extend(self.format.files(&path)?);
        }
        Ok(files)
    }

    /// The communicator for a file: alone if every rank has its own.
    pub(crate) fn comm_for(&self, file: u32, comm: &Arc<dyn Communicator>) -> Arc<dyn Communicator> {
        let alone = self.workload.header.files.get(file as usize).is_some_and(|f| f.per_rank);
        if alone { Solo::shared() } else { comm.clone() }
    }
}

/// The containers of all ranks whose declaration fits.
pub(crate) fn container_paths(
    workload: &Workload,
    directory: &Path,
    wanted: impl Fn(&FileDeclaration) -> bool,
) -> Vec<PathBuf> {
    let header = &workload.header;
    let ranks_of = |per_rank: bool| if per_rank { header.ranks } else { 1 };
    header
        .files
        .iter()
        .filter(|file| wanted(file))
        .flat_map(|file| (0..ranks_of(file.per_rank)).map(|rank| directory.join(file.path_of(rank))))
        .collect()
}

/// The most arrays a rank may have open.
const MAX_SLOTS: usize = 1 << 20;
/// The longest sleep between two looks at the wish to stop.
const NAP: Duration = Duration::from_millis(50);

/// What one rank brings home.
#[derive(Debug, Serialize, Deserialize)]
pub struct RankRun {
    /// Its times and bytes.
    pub measured: RankMeasurement,
    /// The times of its calls, to be merged with those of others.
    pub calls: CallTimes,
    /// Something was read that no rule tells, so it was not compared although that was asked.
    pub read_unchecked: bool,
    /// A file that was overwritten held the same data before, so a lost write would not show.
    pub had_same_data: bool,
    /// What the format said about the transfers.
    pub remarks: Vec<String>,
}

/// Runs all steps of this rank. Collective: every rank of `comm` calls it. Any error ends the run.
pub fn run_rank(context: &RunContext<'_>, comm: &Arc<dyn Communicator>) -> Result<RankRun> {
    let rank = comm.rank();
    if comm.size() != context.workload.header.ranks {
        return Err(Error::invalid(
            "run workload",
            format!("the workload is for {} ranks, not {}", context.workload.header.ranks, comm.size()),
        ));
    }
    let samples = context.samples.as_ref().map(|prefix| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!("-rank-{rank}.csv"));
        PathBuf::from(name)
    });
    comm.barrier()?;
    let clock = Clock::start();
    let mut executor = Executor {
        context,
        comm: Clocked::wrap(comm.clone(), clock.clone()),
        rank,
        files: context.workload.header.files.iter().map(|_| None).collect(),
        origins: vec![None; context.workload.header.files.len()],
        slots: Vec::new(),
        read_unchecked: false,
        remarks: Vec::new(),
        buffers: Buffers::default(),
        recorder: Recorder::start(rank, clock.clone(), samples.as_deref())?,
        clock,
    };
    let (steps, _) = executor.clock.exclude(|| context.workload.steps(rank));
    let mut steps = Lookahead::new(steps?, context.format.caps().execution.prefetch);
    // Working out what to do is not part of doing it.
    while let (Some(step), took) = executor.clock.exclude(|| steps.next()) {
        executor.recorder.prepare += took;
        for (slot, selection) in steps.reads() {
            if let Ok(Slot { array, content, .. }) = occupied(&executor.slots, slot)
                && content.dtype != Datatype::VariableString
            {
                array.prefetch(selection);
            }
        }
        if context.progress.stop_requested() {
            return Err(Error::new(ErrorKind::Interrupted, "run workload", "stopped on request").rank(rank));
        }
        let bytes = executor.take(step?).map_err(|error| error.rank(rank))?;
        executor.recorder.steps += 1;
        context.progress.advance(bytes);
    }
    executor.finish(&**comm)
}

struct Executor<'a> {
    context: &'a RunContext<'a>,
    comm: Arc<dyn Communicator>,
    clock: Arc<Clock>,
    rank: usize,
    files: Vec<Option<Arc<dyn Container>>>,
    /// By file, from its first opening on: the workload may change what a file says about itself.
    origins: Vec<Option<DataSeed>>,
    slots: Vec<Option<Slot>>,
    read_unchecked: bool,
    remarks: Vec<String>,
    buffers: Buffers,
    recorder: Recorder,
}

struct Slot {
    array: Arc<dyn Array>,
    content: ExpectedData,
    /// Reads of it have to be compared, and can be.
    checked: bool,
    /// It is in a file that ranks share.
    shared: bool,
    /// Its chunks have filters.
    codes: bool,
    /// This rank wrote to it.
    written: Cell<bool>,
}

impl Executor<'_> {
    /// Takes one step; returns the bytes it transferred.
    fn take(&mut self, step: Step) -> Result<u64> {
        match step {
            Step::OpenFile { file, how } => self.open_file(file, how)?,
            Step::Group { file, name } => {
                self.meet(self.is_shared(file)?)?;
                let container = container(&self.files, file)?;
                self.recorder.time(Operation::Group, 0, || container.create_group(&name))?;
            }
            Step::Create { slot, file, array, name } => {
                let declaration = declaration(self.context.workload, array)?;
                self.meet(self.is_shared(file)?)?;
                let container = container(&self.files, file)?;
                // Names of dimensions are for formats that keep them.
                let dims = declaration.spec.dims.clone().filter(|_| self.context.format.caps().data.dimension_names);
                let spec = ArraySpec { dims, ..declaration.spec.clone() };
                let new = self.recorder.time(Operation::Create, 0, || container.create(&name, &spec))?;
                self.occupy(slot, file, array, &name, new)?;
            }
            Step::Open { slot, file, array, name } => {
                self.meet(self.is_shared(file)?)?;
                let container = container(&self.files, file)?;
                let found = self.recorder.time(Operation::Open, 0, || container.array(&name))?;
                self.occupy(slot, file, array, &name, found)?;
            }
            Step::Write { slot, selection, transfer, .. } if self.holds_strings(slot)? => {
                return self.write_strings(slot, &selection, transfer);
            }
            Step::Read { slot, selection, transfer, .. } if self.holds_strings(slot)? => {
                return self.read_strings(slot, &selection, transfer);
            }
            Step::Write { slot, selection, memory, transfer } => {
                let Slot { array, content, written, .. } = occupied(&self.slots, slot)?;
                written.set(true);
                let bytes = Buffers::payload(content, &selection, &memory)?;
                let (prepared, took) = self.clock.exclude(|| self.buffers.prepare(content, &selection, &memory));
                prepared?;
                self.recorder.prepare += took;
                let view = self.buffers.view(&memory);
                self.recorder
                    .time(Operation::Write, bytes, || array.write(&selection, view, transfer))
                    .map_err(|error| error.target(&content.name))?;
                return Ok(bytes);
            }
            Step::Read { slot, selection, memory, transfer } => {
                let Slot { array, content, checked, .. } = occupied(&self.slots, slot)?;
                let (checked, stale) = (*checked, *checked);
                let bytes = Buffers::payload(content, &selection, &memory)?;
                let (cleared, took) = self.clock.exclude(|| self.buffers.clear(content, &selection, &memory, stale));
                cleared?;
                self.recorder.prepare += took;
                let view = self.buffers.view_mut(&memory);
                self.recorder
                    .time(Operation::Read, bytes, || array.read(&selection, view, transfer))
                    .map_err(|error| error.target(&content.name))?;
                if checked {
                    let (right, took) = self.clock.exclude(|| self.buffers.check(content, &selection, &memory));
                    right?;
                    self.recorder.check += took;
                }
                self.read_unchecked |= self.context.verify && !checked;
                return Ok(bytes);
            }
            Step::Resize { slot, shape } => {
                self.meet(occupied(&self.slots, slot)?.shared)?;
                let slot = occupied_mut(&mut self.slots, slot)?;
                self.recorder.time(Operation::Resize, 0, || slot.array.resize(&shape))?;
                slot.content.shape = shape;
            }
            Step::Attribute { file, object, name, value } => {
                self.meet(self.is_shared(file)?)?;
                let container = container(&self.files, file)?;
                self.recorder.time(Operation::Attribute, 0, || container.set_attribute(&object, &name, &value))?;
            }
            Step::Barrier => self.recorder.time(Operation::Barrier, 0, || self.comm.barrier())?,
            Step::Compute { nanoseconds } => self.compute(Duration::from_nanos(nanoseconds)),
            Step::Epoch { .. } => {}
            Step::Flush { file, how } => {
                let how = if self.context.durable { Durability::Durable } else { how };
                let container = container(&self.files, file)?;
                self.recorder.time(Operation::Flush, 0, || container.flush(how))?;
            }
            Step::CloseArray { slot } => {
                self.meet(occupied(&self.slots, slot)?.shared)?;
                if let Some(Slot { array, codes, written, .. }) = self.slots[slot as usize].take() {
                    self.recorder.time_close(codes && written.get(), || array.close())?;
                }
            }
            Step::CloseFile { file } => {
                let container = container(&self.files, file)?.clone();
                self.files[file as usize] = None;
                let closed = self.recorder.time(Operation::CloseFile, 0, || container.close());
                // After the close, which may wait for what a layer still does.
                self.clock.exclude(|| self.remarks.extend(container.diagnostics()));
                self.recorder.background += container.background();
                closed?;
            }
        }
        Ok(0)
    }

    fn holds_strings(&self, slot: u32) -> Result<bool> {
        Ok(occupied(&self.slots, slot)?.content.dtype == Datatype::VariableString)
    }

    fn write_strings(&mut self, slot: u32, selection: &Selection, transfer: TransferMode) -> Result<u64> {
        let Slot { array, content, written, .. } = occupied(&self.slots, slot)?;
        written.set(true);
        let (strings, took) = self.clock.exclude(|| content.rules.strings(&content.shape, selection));
        let strings = strings?;
        self.recorder.prepare += took;
        self.recorder
            .time(Operation::Write, strings.bytes(), || array.write_strings(selection, &strings, transfer))
            .map_err(|error| error.target(&content.name))?;
        Ok(strings.bytes())
    }

    fn read_strings(&mut self, slot: u32, selection: &Selection, transfer: TransferMode) -> Result<u64> {
        let Slot { array, content, checked, .. } = occupied(&self.slots, slot)?;
        let checked = *checked;
        let read = || array.read_strings(selection, transfer);
        let found = self
            .recorder
            .time_sized(Operation::Read, read, Strings::bytes)
            .map_err(|error| error.target(&content.name))?;
        if checked {
            let (right, took) = self.clock.exclude(|| Buffers::check_strings(content, selection, &found));
            right?;
            self.recorder.check += took;
        }
        self.read_unchecked |= self.context.verify && !checked;
        Ok(found.bytes())
    }

    fn open_file(&mut self, file: u32, how: OpenMode) -> Result<()> {
        let path = self.context.path(file, self.rank)?;
        if self.files[file as usize].is_some() {
            return Err(Error::invalid("run workload", "a file is opened that is open already").target(path.display()));
        }
        let declaration = self.context.file(file)?;
        let declared = match how {
            OpenMode::Read => true,
            OpenMode::Update => declaration.created || declaration.update.is_some(),
            OpenMode::Create | OpenMode::Truncate => declaration.created,
        };
        if !declared {
            return Err(Error::invalid("run workload", "a file is created or changed that is not declared so")
                .target(path.display()));
        }
        // Not even what is written can be read back and compared.
        self.read_unchecked |= self.context.verify && declaration.unchecked == Some(Unchecked::All);
        let comm = self.context.comm_for(file, &self.comm);
        let container = self.recorder.time(Operation::OpenFile, 0, || self.context.format.open(&path, how, &comm))?;
        if self.origins[file as usize].is_none() {
            let (origin, took) = self.clock.exclude(|| DataSeed::of(self.context, declaration, &*container));
            self.recorder.prepare += took;
            let mut origin = origin.map_err(|error| error.target(path.display()))?;
            // The first rank changes what a shared file says about itself, perhaps before another has looked.
            origin.had_same_data &= self.rank == 0 || declaration.per_rank;
            self.origins[file as usize] = Some(origin);
        }
        self.files[file as usize] = Some(container);
        Ok(())
    }

    fn occupy(&mut self, slot: u32, file: u32, array: u32, name: &str, open: Arc<dyn Array>) -> Result<()> {
        let index = slot as usize;
        if index >= MAX_SLOTS {
            return Err(Error::invalid("run workload", format!("slot {slot}; at most {MAX_SLOTS} are possible")));
        }
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        if self.slots[index].is_some() {
            return Err(Error::invalid("run workload", format!("slot {slot} is in use already")).target(name));
        }
        let origin = self.origins.get(file as usize).copied().flatten().ok_or_else(|| not_open(file))?;
        let extends = self.context.file(file)?.update == Some(Update::Extend);
        // A format that keeps nothing cannot be put back between repetitions either.
        let exactly = extends && self.context.format.caps().data.readable;
        let extents = if exactly { Extents::Exactly } else { Extents::AtLeast };
        // Looking at what was opened is for our own checks, not what the workload asks for.
        let of = || ExpectedData::of(self.context.workload, array, name, &*open, origin.seed, extents);
        let (content, took) = self.clock.exclude(of);
        self.recorder.prepare += took;
        let content = content?;
        let checked = self.context.verify && !origin.mixed;
        let shared = self.is_shared(file)?;
        let (codes, took) = self.clock.exclude(|| open.spec().is_ok_and(|spec| !spec.filters.is_empty()));
        self.recorder.prepare += took;
        let written = Cell::new(false);
        self.slots[index] = Some(Slot { array: open, content, checked, shared, codes, written });
        Ok(())
    }

    fn is_shared(&self, file: u32) -> Result<bool> {
        Ok(!self.context.file(file)?.per_rank)
    }

    /// Waits until all ranks are at a collective step, so that the time of the step is not that of waiting for them.
    fn meet(&mut self, shared: bool) -> Result<()> {
        if shared && self.comm.size() > 1 { self.recorder.wait(|| self.comm.barrier()) } else { Ok(()) }
    }

    fn compute(&mut self, how_long: Duration) {
        let progress = self.context.progress;
        let ((), took) = self.clock.exclude(|| {
            let from = Instant::now();
            while let Some(left) = how_long.checked_sub(from.elapsed()).filter(|left| !left.is_zero()) {
                if progress.stop_requested() {
                    break;
                }
                std::thread::sleep(left.min(NAP));
            }
        });
        self.recorder.compute += took;
    }

    fn finish(self, comm: &dyn Communicator) -> Result<RankRun> {
        if self.files.iter().any(Option::is_some) || self.slots.iter().any(Option::is_some) {
            return Err(Error::invalid("run workload", "the workload ends with files or arrays open").rank(self.rank));
        }
        let (measured, calls) = self.recorder.finish(comm)?;
        let had_same_data = self.origins.iter().flatten().any(|origin| origin.had_same_data);
        let (read_unchecked, remarks) = (self.read_unchecked, self.remarks);
        Ok(RankRun { measured, calls, read_unchecked, had_same_data, remarks })
    }
}

pub(crate) fn container(files: &[Option<Arc<dyn Container>>], file: u32) -> Result<&Arc<dyn Container>> {
    files.get(file as usize).and_then(Option::as_ref).ok_or_else(|| not_open(file))
}

fn not_open(file: u32) -> Error {
    Error::invalid("run workload", format!("a step uses file {file}, which is not open"))
}

fn occupied(slots: &[Option<Slot>], slot: u32) -> Result<&Slot> {
    slots.get(slot as usize).and_then(Option::as_ref).ok_or_else(|| no_array(slot))
}

fn occupied_mut(slots: &mut [Option<Slot>], slot: u32) -> Result<&mut Slot> {
    slots.get_mut(slot as usize).and_then(Option::as_mut).ok_or_else(|| no_array(slot))
}

pub(crate) fn no_array(slot: u32) -> Error {
    Error::invalid("run workload", format!("a step uses slot {slot}, where no array is open"))
}
