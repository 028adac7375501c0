//! All objects of one container, copied to another by ranks that are threads.

use super::made_order::MadeOrder;
use super::progress::{Copied, Watch};
use super::rechunk::RechunkPlan;
use super::scratch::{Scratch, with_scratch};
use super::storage::Storage;
use hyperslab_core::{
    Array, ArraySpec, Caps, Communicator, Container, Datatype, Durability, Error, ErrorKind, Filter, Format,
    MemoryView, MemoryViewMut, OpenMode, Result, Selection, TransferMode, agree, dims,
};
use hyperslab_layers::ChunkBlocks;
use hyperslab_run::Progress;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Strings of variable length that a rank has in memory at a time.
const MOST_STRINGS: u64 = 1 << 16;

/// What is to be copied, and how.
pub struct Conversion<'a> {
    pub from: Arc<dyn Format>,
    pub input: &'a Path,
    pub to: Arc<dyn Format>,
    /// How arrays are to be stored, beside what the stack says.
    pub storage: &'a Storage,
    pub threads: usize,
    /// Bytes of elements in memory at a time.
    pub memory: u64,
    /// What cannot be held is left out.
    pub lossy: bool,
    /// The user asks for alignment, and wants to know what came of it.
    pub aligned: bool,
    /// In which order things were made.
    pub order: MadeOrder,
}

/// What was copied.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    pub arrays: usize,
    pub groups: usize,
    pub attributes: usize,
    pub bytes: u64,
    /// What people should know.
    pub notes: BTreeSet<String>,
    /// What the output cannot hold.
    pub left_out: Vec<String>,
}

/// One rank's part.
struct Copying<'a> {
    comm: &'a Arc<dyn Communicator>,
    input: Arc<dyn Container>,
    output: Arc<dyn Container>,
    caps: Caps,
    storage: &'a Storage,
    /// Bytes of elements in memory at a time, of all ranks.
    memory: u64,
    /// Where a scratch array may be.
    scratch: PathBuf,
    copied: &'a Copied,
    progress: &'a Progress,
    lossy: bool,
    order: &'a MadeOrder,
    /// How many rows arrays that grow together have.
    rows: Option<u64>,
    summary: Summary,
}

impl Conversion<'_> {
    /// Copies everything to a new container at `output`.
    pub fn run(&self, output: &Path, progress: &Progress) -> Result<Summary> {
        let copied = Arc::new(Copied::default());
        let _watch = Watch::start(&copied);
        let all = hyperslab_run::on_threads(self.threads, |comm| self.rank(&comm, output, &copied, progress))?;
        let mut summary = all.into_iter().next().unwrap_or_default();
        summary.bytes = copied.done();
        Ok(summary)
    }

    fn rank(
        &self,
        comm: &Arc<dyn Communicator>,
        output: &Path,
        copied: &Copied,
        progress: &Progress,
    ) -> Result<Summary> {
        let input = self.from.open(self.input, OpenMode::Read, comm)?;
        let mut scratch = output.as_os_str().to_owned();
        scratch.push(".scratch");
        let output = self.to.open(output, OpenMode::Create, comm)?;
        let mut copying = Copying {
            comm,
            input,
            output,
            caps: self.to.caps(),
            storage: self.storage,
            memory: self.memory,
            scratch: scratch.into(),
            copied,
            progress,
            lossy: self.lossy,
            order: &self.order,
            rows: None,
            summary: Summary::default(),
        };
        copying.everything()?;
        if self.aligned {
            copying.summary.notes.extend(copying.output.diagnostics());
        }
        copying.output.flush(Durability::Durable)?;
        copying.output.close()?;
        copying.input.close()?;
        Ok(copying.summary)
    }
}

impl Copying<'_> {
    fn everything(&mut self) -> Result<()> {
        self.attributes("")?;
        let (groups, names) = (self.input.groups()?, self.input.arrays()?);
        let mut total = 0u64;
        let mut readable = Vec::with_capacity(names.len());
        for name in self.order.sorted(names) {
            match self.spec_of(&name).and_then(|spec| Ok((dims::byte_count(&spec.shape, spec.dtype.size())?, spec))) {
                Ok((bytes, spec)) => {
                    total = total.saturating_add(bytes);
                    readable.push((name, spec));
                }
                Err(error) => self.leave_out(error)?,
            }
        }
        self.storage.check_arrays(&readable)?;
        self.copied.expect(total);
        let readable: BTreeSet<String> = readable.into_iter().map(|(name, _)| name).collect();
        let objects = groups.iter().chain(&readable).cloned().collect();
        for name in self.order.sorted(objects) {
            if !readable.contains(&name) {
                self.group(&name)?;
                continue;
            }
            match self.array(&name).map_err(|error| error.target(&name)) {
                Ok(()) => self.summary.arrays += 1,
                Err(error) => self.leave_out(error)?,
            }
        }
        Ok(())
    }

    fn group(&mut self, group: &str) -> Result<()> {
        if !self.caps.data.groups {
            return self.without_group(group);
        }
        self.output.create_group(group)?;
        self.attributes(group)?;
        self.summary.groups += 1;
        Ok(())
    }

    /// An array of the input.
    fn spec_of(&self, name: &str) -> Result<ArraySpec> {
        let array = self.input.array(name)?;
        let spec = array.spec().map_err(|error| error.target(name));
        let closed = array.close();
        let spec = spec?;
        closed.map(|()| spec)
    }

    /// Notes what cannot be held, if the user allows that. Any other error is one.
    fn leave_out(&mut self, error: Error) -> Result<()> {
        if self.lossy && matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Peer) {
            // Every rank comes here, unless it failed for another reason and is gone.
            self.comm.barrier()?;
            self.summary.left_out.push(error.to_string().replace('\n', " "));
            return Ok(());
        }
        Err(error)
    }

    /// A group that is only a part of names in the output. What would be lost with it is refused.
    fn without_group(&mut self, group: &str) -> Result<()> {
        // Formats without groups of their own have no attributes of them either.
        for name in self.input.attributes(group).unwrap_or_default() {
            let message =
                format!("the group has the attribute {name:?}, and the other format has no groups to keep it");
            self.leave_out(Error::unsupported("convert", message).target(group))?;
        }
        self.summary.notes.insert("groups become parts of names: the other format does not have them".into());
        Ok(())
    }

    fn attributes(&mut self, object: &str) -> Result<()> {
        for name in self.order.attributes(object, self.input.attributes(object)?) {
            let located = |error: Error| error.target(format!("attribute {name} of {object:?}"));
            let value = self.input.attribute(object, &name);
            match value.and_then(|value| self.output.set_attribute(object, &name, &value)).map_err(located) {
                Ok(()) => self.summary.attributes += 1,
                Err(error) => self.leave_out(error)?,
            }
        }
        Ok(())
    }

    /// The array as the output can have it. What it leaves out is no data.
    fn adapt(&mut self, mut spec: ArraySpec) -> ArraySpec {
        let (kept, left_out): (Vec<Filter>, Vec<Filter>) =
            spec.filters.into_iter().partition(|filter| self.caps.has(filter));
        spec.filters = kept;
        for filter in left_out {
            self.summary.notes.insert(format!("filter {filter:?} is left out: the other format does not have it"));
        }
        if spec.chunk.is_some() && !self.caps.data.chunks {
            spec.chunk = None;
            self.summary.notes.insert("chunks are left out: the other format does not have them".into());
        }
        if !self.caps.data.dimension_names && spec.dims.take().is_some() {
            self.summary.notes.insert("names of dimensions are left out: the other format does not have them".into());
        }
        if self.caps.data.shared_growth && spec.max_shape.as_ref().is_some_and(|max| !self.shares_growth(&spec, max)) {
            spec.max_shape = None;
            let message = "some arrays cannot grow any more: all that grow in the other format do so together, by rows";
            self.summary.notes.insert(message.into());
        }
        // Chunks larger than the array are the format's business.
        spec
    }

    /// Whether an array grows by rows without end and has as many as those before it, or does not grow.
    fn shares_growth(&mut self, spec: &ArraySpec, max: &[Option<u64>]) -> bool {
        let fixed = |(max, extent): (&Option<u64>, &u64)| *max == Some(*extent);
        let inner = max.iter().zip(&spec.shape).skip(1).all(fixed);
        if inner && max.iter().zip(&spec.shape).all(fixed) {
            return true; // it does not grow
        }
        let (Some(None), Some(rows)) = (max.first(), spec.shape.first()) else { return false };
        inner && *self.rows.get_or_insert(*rows) == *rows
    }

    fn array(&mut self, name: &str) -> Result<()> {
        let source = self.input.array(name)?;
        let from = source.spec()?;
        let mut asked = from.clone();
        self.storage.apply(name, &mut asked);
        let spec = self.adapt(asked);
        let target = self.output.create(name, &spec)?;
        self.attributes(name)?;
        // Chunks as they are now: two ranks never write to the same.
        let plan = RechunkPlan::new(&from, &target.spec()?, self.memory, self.comm.size())?;
        let done = match &plan.reads {
            _ if from.dtype == Datatype::VariableString => agree(&**self.comm, self.strings(&*source, &*target, &plan)),
            None => agree(&**self.comm, self.direct(&*source, &*target, &plan)),
            Some(reads) => {
                let message = "arrays whose chunks had too little in common for the memory went through a scratch array \
                               beside OUT; more --memory may spare that";
                self.summary.notes.insert(message.into());
                self.copied.expect_staged(dims::byte_count(&from.shape, from.dtype.size())?, self.comm.rank());
                with_scratch(self.comm, &self.scratch, &from, &plan.writes, |scratch| {
                    agree(&**self.comm, self.put(&*source, reads, &plan, scratch))?;
                    self.get(&*target, &plan, scratch)
                })
            }
        };
        if !plan.fits {
            let message = "chunks too large for the memory were copied in parts, which is slow; more --memory helps";
            self.summary.notes.insert(message.into());
        }
        // The same calls on every rank, whatever happened.
        done.and(target.close()).and(source.close())
    }

    /// The blocks that this rank works on.
    fn mine(&self, plan: &RechunkPlan, blocks: &ChunkBlocks) -> impl Iterator<Item = u64> + use<> {
        let rank = self.comm.rank();
        let end = if rank < plan.ranks { blocks.len() } else { 0 };
        (rank as u64..end).step_by(plan.ranks)
    }

    fn check_stop(&self) -> Result<()> {
        match self.progress.stop_requested() {
            true => Err(Error::new(ErrorKind::Interrupted, "convert", "stopped")),
            false => Ok(()),
        }
    }

    /// Copies blocks of the output, reading what they need.
    fn direct(&self, source: &dyn Array, target: &dyn Array, plan: &RechunkPlan) -> Result<()> {
        let size = target.spec()?.dtype.size();
        let mut buffer = Vec::new();
        for number in self.mine(plan, &plan.writes) {
            plan.writes.each_piece(number, plan.piece / size, |piece| {
                self.check_stop()?;
                let len = resize(&mut buffer, piece, size);
                source.read(piece, MemoryViewMut::packed(&mut buffer), TransferMode::Independent)?;
                target.write(piece, MemoryView::packed(&buffer), TransferMode::Independent)?;
                self.copied.add(len);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Copies blocks of strings of variable length. How much memory they take is known once they are read.
    fn strings(&self, source: &dyn Array, target: &dyn Array, plan: &RechunkPlan) -> Result<()> {
        let size = target.spec()?.dtype.size();
        for number in self.mine(plan, &plan.writes) {
            plan.writes.each_piece(number, (plan.piece / size).min(MOST_STRINGS), |piece| {
                self.check_stop()?;
                let strings = source.read_strings(piece, TransferMode::Independent)?;
                target.write_strings(piece, &strings, TransferMode::Independent)?;
                self.copied.add(piece.len() * size);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Reads blocks of the input into the scratch array.
    fn put(&self, source: &dyn Array, reads: &ChunkBlocks, plan: &RechunkPlan, scratch: &Scratch<'_>) -> Result<()> {
        let size = source.spec()?.dtype.size();
        let mut buffer = Vec::new();
        for number in self.mine(plan, reads) {
            self.check_stop()?;
            let block = reads.block(number)?;
            let len = resize(&mut buffer, &block, size);
            source.read(&block, MemoryViewMut::packed(&mut buffer), TransferMode::Independent)?;
            scratch.put(&block, &buffer)?;
            self.copied.add_staged(len);
        }
        Ok(())
    }

    /// Writes blocks of the output from the scratch array.
    fn get(&self, target: &dyn Array, plan: &RechunkPlan, scratch: &Scratch<'_>) -> Result<()> {
        let size = target.spec()?.dtype.size();
        let mut buffer = Vec::new();
        for number in self.mine(plan, &plan.writes) {
            self.check_stop()?;
            let block = plan.writes.block(number)?;
            let len = resize(&mut buffer, &block, size);
            scratch.get(number, &mut buffer)?;
            target.write(&block, MemoryView::packed(&buffer), TransferMode::Independent)?;
            self.copied.add(len);
        }
        Ok(())
    }
}

/// Room for the packed elements of a selection: their number of bytes.
fn resize(buffer: &mut Vec<u8>, selection: &Selection, size: u64) -> u64 {
    let len = selection.len() * size;
    buffer.resize(len as usize, 0);
    len
}
