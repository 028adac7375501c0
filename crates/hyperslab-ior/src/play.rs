//! Plays one rank's steps of a phase: measured as IOR measures, stopped as IOR stops, and with wrong data counted instead of
//! ending at the first.

use crate::data::{Data, Words, Wrong};
use crate::settings::Packets;
use crate::stonewall::{Limit, Stonewall, Watch};
use hyperslab_core::workload::{MIXED_SEEDS, SEED_ATTRIBUTE, Step, Workload};
use hyperslab_core::{
    Array, Attribute, Communicator, Container, Datatype, Dims, Error, ErrorKind, Format, MemoryLayout, MemoryView,
    MemoryViewMut, PageBuffer, Result, Selection, TransferMode,
};
use hyperslab_kernels::ior::{Ior, Layout, Writers};
use hyperslab_run::{Busy, single_rank};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A phase, as one rank plays it.
#[derive(Debug)]
pub struct PlayPhase<'a> {
    /// The pattern.
    pub ior: &'a Ior,
    /// Its steps.
    pub workload: &'a Workload,
    /// On what.
    pub format: &'a dyn Format,
    /// The container of `owner`.
    pub path: &'a Path,
    /// Whose data this rank transfers.
    pub owner: usize,
    /// Which data.
    pub kind: Kind,
    /// Compare what is read.
    pub compare: bool,
    /// When to stop.
    pub limit: Limit,
    /// Bytes of the pieces in which the file is filled before a write; 0 for not at all.
    pub prefill: u64,
    /// Where the time of every transfer is written.
    pub per_op: Option<PathBuf>,
}

/// Which data a file has.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Every element from its place and this seed; `None`: the seed that the file says.
    ByPlace(Option<u64>),
    /// IOR's.
    Ior(Packets, u32),
}

/// When a rank was in calls.
#[derive(Debug, Default)]
pub struct Times {
    /// Opening and creating, before the first transfer.
    pub open: Busy,
    /// Transfers, what lies between them, and flushes.
    pub transfers: Busy,
    /// Closing.
    pub close: Busy,
}

/// What one rank brings home.
#[derive(Debug, Default)]
pub struct Played {
    /// When it was in calls.
    pub times: Times,
    /// Transfers.
    pub calls: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// What differs from what was expected.
    pub wrong: Wrong,
    /// Transfers and bytes of the ranks when the time was over.
    pub stonewall: Option<Stonewall>,
    /// What the format said.
    pub remarks: Vec<String>,
}

/// Plays the phase. Collective: every rank calls it, each with its own phase.
pub fn play(phase: &PlayPhase<'_>, comm: &Arc<dyn Communicator>) -> Result<Played> {
    let steps = phase.workload.steps(comm.rank())?;
    let per_op = phase.per_op.as_deref().map(open_per_op).transpose()?;
    let mut buffers = (PageBuffer::default(), Vec::new());
    buffers.0.set_len(phase.ior.call_bytes() as usize)?;
    comm.barrier()?;
    let began_at = Instant::now();
    let words = Data::Words(Words {
        packets: match phase.kind {
            Kind::Ior(packets, _) => packets,
            Kind::ByPlace(_) => Packets::ByPlace,
        },
        signature: if let Kind::Ior(_, signature) = phase.kind { signature } else { 0 },
        writers: Writers::of(phase.ior, phase.owner),
        transfer: phase.ior.transfer,
    });
    let mut player = Player {
        phase,
        comm: comm.clone(),
        began_at,
        played: Played::default(),
        container: None,
        data: words,
        buffer: buffers.0,
        expected: buffers.1,
        per_op,
        began: false,
    };
    let mut stonewall = phase.limit.start();
    let mut open: Option<OpenArray> = None;
    let mut steps = steps;
    loop {
        let Some(step) = steps.next() else { break };
        let step = step?;
        let over = stonewall.is_over(player.played.calls);
        match step {
            Step::Barrier => player.comm.barrier()?,
            Step::OpenFile { how, .. } => player.open_file(how)?,
            Step::Attribute { object, name, value, .. } => player.set_attribute(&object, &name, &value)?,
            Step::Create { .. } | Step::Open { .. } if over && player.began => {}
            Step::Create { name, array, .. } => {
                let spec = &phase.workload.header.arrays[array as usize].spec;
                let from = player.now();
                let new = player.container()?.create(&name, spec)?;
                player.opened_since(from);
                open = Some(player.opened(new, name)?);
            }
            Step::Open { name, .. } => {
                let from = player.now();
                let found = player.container()?.array(&name)?;
                player.opened_since(from);
                open = Some(player.opened(found, name)?);
            }
            Step::Resize { shape, .. } if !over => {
                if let Some((array, _, extents, ..)) = &mut open {
                    let from = player.now();
                    player.began = true;
                    array.resize(&shape)?;
                    *extents = shape;
                    player.moved_since(from);
                }
            }
            Step::Write { ref selection, transfer, .. } | Step::Read { ref selection, transfer, .. } if !over => {
                if player.played.calls == 0 {
                    stonewall.begin_now();
                }
                let writes = matches!(step, Step::Write { .. });
                player.transfer(&open, selection, transfer, writes, &stonewall)?;
                stonewall.after_transfer(&*player.comm, player.played.calls, player.played.bytes)?;
            }
            Step::Compute { nanoseconds } if !over => {
                let from = player.now();
                std::thread::sleep(std::time::Duration::from_nanos(nanoseconds));
                player.moved_since(from);
            }
            Step::Flush { how, .. } if !over || !phase.ior.sync_each_write => {
                if !phase.ior.sync_each_write {
                    player.agree_at_end(&mut stonewall)?;
                }
                let from = player.now();
                player.container()?.flush(how)?;
                player.moved_since(from);
            }
            Step::CloseArray { .. } => {
                if phase.ior.layout != Layout::WordsPerSegment {
                    player.agree_at_end(&mut stonewall)?;
                }
                if let Some((array, ..)) = open.take() {
                    let from = player.now();
                    array.close()?;
                    let until = player.now();
                    player.played.times.close.add(from, until);
                }
            }
            Step::CloseFile { .. } => {
                player.agree_at_end(&mut stonewall)?;
                player.close_file()?;
            }
            _ => {}
        }
    }
    if open.is_some() || player.container.is_some() {
        return Err(Error::invalid("run workload", "the workload ends with files or arrays open"));
    }
    if let Some(mut per_op) = player.per_op.take() {
        per_op.flush().map_err(|e| Error::io("write times", e))?;
    }
    player.played.stonewall = stonewall.into_found();
    Ok(player.played)
}

type OpenArray = (Arc<dyn Array>, Arc<str>, Dims, u64, Datatype);

struct Player<'a> {
    phase: &'a PlayPhase<'a>,
    comm: Arc<dyn Communicator>,
    began_at: Instant,
    played: Played,
    container: Option<Arc<dyn Container>>,
    data: Data,
    buffer: PageBuffer,
    expected: Vec<u8>,
    per_op: Option<BufWriter<File>>,
    /// The first transfer was made.
    began: bool,
}

impl Player<'_> {
    /// Seconds since all ranks began.
    fn now(&self) -> f64 {
        self.began_at.elapsed().as_secs_f64()
    }

    /// A call of the kind that opens ends now.
    fn opened_since(&mut self, from: f64) {
        let until = self.now();
        let times = &mut self.played.times;
        if self.began { times.transfers.add(from, until) } else { times.open.add(from, until) }
    }

    /// A call of the kind that moves bytes ends now.
    fn moved_since(&mut self, from: f64) {
        let until = self.now();
        self.played.times.transfers.add(from, until);
    }

    fn agree_at_end(&self, stonewall: &mut Watch) -> Result<()> {
        stonewall.at_end(&*self.comm, self.played.calls, self.played.bytes)
    }

    fn container(&self) -> Result<&Arc<dyn Container>> {
        self.container.as_ref().ok_or_else(|| Error::invalid("run workload", "a step uses a file that is not open"))
    }

    fn open_file(&mut self, how: hyperslab_core::OpenMode) -> Result<()> {
        let comm = if self.phase.ior.file_per_rank { single_rank() } else { self.comm.clone() };
        let from = self.now();
        let container = self.phase.format.open(self.phase.path, how, &comm)?;
        self.opened_since(from);
        if let Some(seed) = self.seed(&*container)? {
            self.data = Data::ByPlace(seed);
        }
        self.container = Some(container);
        Ok(())
    }

    /// The seed of data by place.
    fn seed(&self, container: &dyn Container) -> Result<Option<u64>> {
        match self.phase.kind {
            Kind::Ior(..) => Ok(None),
            Kind::ByPlace(Some(seed)) => Ok(Some(seed)),
            Kind::ByPlace(None) if !self.phase.compare => Ok(Some(0)),
            Kind::ByPlace(None) => {
                let unknown = || {
                    Error::invalid("verify", "the file does not say with which seed its data were made")
                        .target(self.phase.path.display())
                        .hint("give the signature of a file that IOR wrote, -G N; or read without -R and -W")
                };
                let stated = container.attribute("", SEED_ATTRIBUTE).map_err(|error| match error.kind() {
                    ErrorKind::NotFound | ErrorKind::Unsupported => unknown(),
                    _ => error,
                })?;
                let bytes: [u8; 8] = stated.data.as_slice().try_into().map_err(|_| unknown())?;
                match i64::from_ne_bytes(bytes) {
                    MIXED_SEEDS => Err(unknown()),
                    seed => Ok(Some(seed as u64)),
                }
            }
        }
    }

    /// Says in the file by which rule its data are made, if by one of ours.
    fn set_attribute(&mut self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let stated = match self.phase.kind {
            Kind::ByPlace(Some(seed)) if name == SEED_ATTRIBUTE => Attribute::integer(seed as i64),
            Kind::Ior(..) if name == SEED_ATTRIBUTE => Attribute::integer(MIXED_SEEDS),
            _ => value.clone(),
        };
        let from = self.now();
        self.container()?.set_attribute(object, name, &stated)?;
        self.opened_since(from);
        Ok(())
    }

    fn opened(&self, array: Arc<dyn Array>, name: Arc<str>) -> Result<OpenArray> {
        let spec = array.spec()?;
        let declared = &self.phase.workload.header.arrays[0].spec;
        if spec.dtype != declared.dtype || spec.shape.len() != declared.shape.len() {
            let message = format!("it has elements of {} in {} dimensions", spec.dtype, spec.shape.len());
            return Err(Error::invalid("open array", message).target(&name).hint(format!(
                "this test expects {} in {}; use the options that it was written with",
                declared.dtype,
                declared.shape.len()
            )));
        }
        let element = spec.dtype.size();
        Ok((array, name, spec.shape, element, spec.dtype))
    }

    fn transfer(
        &mut self,
        open: &Option<OpenArray>,
        selection: &Selection,
        transfer: TransferMode,
        writes: bool,
        stonewall: &Watch,
    ) -> Result<()> {
        let (array, name, shape, element, dtype) =
            open.as_ref().ok_or_else(|| Error::invalid("run workload", "a step uses an array that is not open"))?;
        let segment: u64 = name.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        let base = segment * self.phase.ior.segment_bytes();
        if writes && !self.began && self.phase.prefill > 0 {
            self.prefill(&**array, transfer)?;
            self.comm.barrier()?;
        }
        self.began = true;
        let length = (selection.len() * element) as usize;
        let data = self.data.of_array(dtype, name, base)?;
        self.buffer.set_len(length)?;
        if writes {
            data.fill(shape, selection, *element, &mut self.buffer)?;
        } else if self.phase.compare {
            // Nothing right is left from before.
            self.buffer.fill(0xA5);
        }
        let packed = MemoryLayout::packed();
        let from = self.now();
        if writes {
            array.write(selection, MemoryView { data: &self.buffer, layout: &packed }, transfer)
        } else {
            array.read(selection, MemoryViewMut { data: &mut self.buffer, layout: &packed }, transfer)
        }
        .map_err(|error| error.target(name))?;
        let until = self.now();
        self.played.times.transfers.add(from, until);
        self.played.calls += 1;
        self.played.bytes += length as u64;
        if let Some(per_op) = &mut self.per_op {
            let (at, took) = ((from - stonewall.began(self.began_at)).max(0.0), until - from);
            writeln!(per_op, "{at:.8e},{took:.8e},{:e}", length as f64 / took.max(1e-9))
                .map_err(|e| Error::io("write times", e))?;
        }
        if !writes && self.phase.compare {
            self.expected.resize(length, 0);
            data.fill(shape, selection, *element, &mut self.expected)?;
            let offset = selection.first_byte(shape, *element).unwrap_or(0);
            self.played.wrong.compare(name, offset, &self.expected, &self.buffer);
        }
        Ok(())
    }

    /// Fills this rank's blocks with bytes that are never right.
    fn prefill(&mut self, array: &dyn Array, transfer: TransferMode) -> Result<()> {
        let (ior, piece) = (self.phase.ior, self.phase.prefill);
        let bytes = vec![0xFF; piece as usize];
        let packed = MemoryLayout::packed();
        for segment in 0..ior.segments {
            for at in (0..ior.block).step_by(piece as usize) {
                let selection = ior.elements(ior.offset(self.phase.owner, segment, 0) + at, piece)?;
                array.write(&selection, MemoryView { data: &bytes, layout: &packed }, transfer)?;
            }
        }
        Ok(())
    }

    fn close_file(&mut self) -> Result<()> {
        let container = self.container()?.clone();
        self.container = None;
        let from = self.now();
        let closed = container.close();
        let until = self.now();
        self.played.times.close.add(from, until);
        self.played.remarks.extend(container.diagnostics());
        closed
    }
}

fn open_per_op(path: &Path) -> Result<BufWriter<File>> {
    let failed = |e| Error::io("write times", e).target(path.display());
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    writeln!(file, "time,runtime,tp").map_err(failed)?;
    Ok(file)
}
