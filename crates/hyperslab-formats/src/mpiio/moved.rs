//! The data file of an array, moved by MPI-IO.

use super::elements::Memory;
use super::filetype::{Filetype, Regular};
use super::handle::{Direction, Handle, Place, Who};
use super::library;
use super::options::Options;
use super::steps::{Limits, Step, Steps};
use crate::posix::mover::{Elements, MovedFile, Mover};
use crate::posix::staging::Staging;
use hyperslab_core::{
    Communicator, Error, ErrorKind, MemoryView, MemoryViewMut, Reduce, Result, Run, TransferMode, agree,
};
use mpi_sys as ffi;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ranks of a container as MPI knows them.
#[derive(Debug, Clone)]
pub(super) struct Job {
    comm: Arc<dyn Communicator>,
    /// `None` for one rank alone.
    handle: Option<i32>,
    options: Arc<Options>,
}

impl Job {
    /// Refuses ranks that are no processes of MPI.
    pub fn new(comm: &Arc<dyn Communicator>, options: &Options) -> Result<Self> {
        let handle = comm.mpi_handle();
        if handle.is_none() && comm.size() > 1 {
            return Err(Error::unsupported("open", "MPI-IO needs ranks that are processes of an MPI job")
                .hint("run under mpirun with --launcher mpi, or use posix, which stores the same files"));
        }
        library::check_running("open")?;
        Ok(Self { comm: comm.clone(), handle, options: Arc::new(options.clone()) })
    }

    fn communicator(&self) -> ffi::MPI_Comm {
        // SAFETY: the handle is that of a live communicator, for `comm` lives; the other is a constant.
        unsafe { self.handle.map_or(ffi::RSMPI_COMM_SELF, |handle| ffi::RSMPI_Comm_f2c(handle)) }
    }
}

impl Mover for Job {
    fn open(&self, path: &Path, writable: bool, staging: &Arc<Staging>) -> Result<Box<dyn MovedFile>> {
        let opened = Handle::open(self.communicator(), path, writable, &self.options);
        // If it is open on some ranks only, those cannot close it: that would need the others.
        let together = agree(&*self.comm, opened.map_err(|error| error.target(path.display())))?;
        Ok(Box::new(MpiioFile {
            job: self.clone(),
            path: path.into(),
            writable,
            staging: staging.clone(),
            together: Mutex::new(Some(together)),
            alone: Mutex::new(None),
            dirty: AtomicBool::new(false),
        }))
    }
}

/// An open data file.
#[derive(Debug)]
struct MpiioFile {
    job: Job,
    path: PathBuf,
    writable: bool,
    staging: Arc<Staging>,
    /// Open on all ranks.
    together: Mutex<Option<Handle>>,
    /// Open on this rank, from the first transfer of its own that has a view: views are set by all who share a file.
    alone: Mutex<Option<Handle>>,
    dirty: AtomicBool,
}

/// A transfer of this rank, ready to be made.
struct Planned<'a> {
    memory: Memory<'a>,
    steps: Steps<'a>,
    /// The selection, if one call with a regular type says it.
    regular: Option<Regular>,
}

fn lock(handle: &Mutex<Option<Handle>>) -> MutexGuard<'_, Option<Handle>> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Error::invalid("transfer", "the data file is closed")
}

impl Planned<'_> {
    /// How many calls, and whether one of them needs a view.
    fn count(&self) -> (u64, bool) {
        match &self.regular {
            Some(slab) => (1, !slab.levels.is_empty()),
            None => self.steps.count(),
        }
    }

    /// The next call: its step, and where it goes in the file.
    fn next(&mut self) -> Result<Option<(Step, Place)>> {
        if let Some(slab) = self.regular.take() {
            let bytes = self.steps.whole();
            let place = match slab.levels.is_empty() {
                true => Place::Run(slab.offset),
                false => Place::View(slab.offset, Filetype::regular(&slab)?),
            };
            return Ok(Some((bytes, place)));
        }
        let Some(step) = self.steps.advance() else { return Ok(None) };
        let place = match self.steps.runs() {
            [Run { offset, .. }] => Place::Run(*offset),
            runs => Place::View(runs.first().map_or(0, |run| run.offset), Filetype::runs(runs)?),
        };
        Ok(Some((step, place)))
    }

    /// Makes a call. With `view`, all who share the file set theirs.
    fn call(&mut self, (step, place): (Step, Place), handle: &mut Handle, who: Who, view: bool) -> Result<()> {
        let direction = self.memory.direction();
        let address = self.memory.before(step);
        // SAFETY: `before` gives as many bytes as the step has, and to be written to for reads.
        unsafe { handle.transfer((direction, who), place, view, address, step.len)? };
        self.memory.after(step);
        Ok(())
    }
}

/// Takes part in a collective call with nothing.
fn call_with_nothing(handle: &mut Handle, direction: Direction, view: bool) -> Result<()> {
    // An address that means nothing special to any MPI library.
    let mut nothing = [0u8; 1];
    // SAFETY: no byte is moved.
    unsafe { handle.transfer((direction, Who::Together), Place::Run(0), view, nothing.as_mut_ptr().cast(), 0) }
}

impl MpiioFile {
    fn limits(&self) -> Limits {
        Limits { fill: 0, call: self.job.options.round, view: self.job.options.view }
    }

    /// The one call with a regular type, where views are wanted, the selection is a slab and memory holds it at once.
    fn regular(&self, elements: Elements<'_>, memory: &Memory<'_>, steps: &Steps<'_>) -> Option<Regular> {
        let whole = !matches!(memory, Memory::Gathered { fields, .. } if !fields.is_empty());
        let fits = steps.fits_one_call() && !elements.selection.is_empty();
        if !(self.job.options.view && whole && fits) {
            return None;
        }
        Regular::of(elements.selection, elements.shape, elements.dtype.size())
    }

    /// Refuses to read beyond the end of the file: ROMIO reports all bytes as read in collective calls, whether there were
    /// any or not.
    fn refuse_short(&self, elements: Elements<'_>) -> Result<()> {
        let last = elements.selection.last_byte(elements.shape, elements.dtype.size());
        let len = std::fs::metadata(&self.path).map_err(|cause| Error::io("read", cause))?.len();
        match last.filter(|last| *last >= len) {
            Some(last) => {
                let message = format!("the data file has {len} bytes, byte {last} is wanted");
                Err(Error::new(ErrorKind::Corrupt, "read", message))
            }
            None => Ok(()),
        }
    }

    fn plan<'a>(&self, elements: Elements<'a>, ready: Result<(Memory<'a>, Steps<'a>)>) -> Result<Planned<'a>> {
        let (memory, steps) = ready?;
        Ok(Planned { regular: self.regular(elements, &memory, &steps), memory, steps })
    }

    fn transfer(&self, planned: Result<Planned<'_>>, direction: Direction, transfer: TransferMode) -> Result<()> {
        let result = match transfer {
            TransferMode::Independent => self.move_alone(planned?),
            TransferMode::Collective => self.move_together(planned, direction),
        };
        if direction == Direction::Write {
            // Afterwards, so that a flush that runs meanwhile cannot clear it for bytes it has not seen.
            self.dirty.store(true, Ordering::Release);
        }
        result.map_err(|error| error.target(self.path.display()))
    }

    fn move_alone(&self, mut planned: Planned<'_>) -> Result<()> {
        self.on_own(|handle| {
            while let Some(next) = planned.next()? {
                planned.call(next, handle, Who::Alone, false)?;
            }
            Ok(())
        })
    }

    /// Runs `work` on a file that this rank may use by itself.
    fn on_own<T>(&self, work: impl FnOnce(&mut Handle) -> Result<T>) -> Result<T> {
        if !self.job.options.view || self.job.comm.size() == 1 {
            // Its view is never set, or by nobody else.
            return work(lock(&self.together).as_mut().ok_or_else(closed)?);
        }
        let mut alone = lock(&self.alone);
        if alone.is_none() {
            // SAFETY: reading a constant of the library.
            let myself = unsafe { ffi::RSMPI_COMM_SELF };
            *alone = Some(Handle::open(myself, &self.path, self.writable, &self.job.options)?);
        }
        work(alone.as_mut().ok_or_else(closed)?)
    }

    /// Every rank makes as many calls as the one with most, and all hear of the failure of any.
    fn move_together(&self, planned: Result<Planned<'_>>, direction: Direction) -> Result<()> {
        let comm = &*self.job.comm;
        let (calls, view) = planned.as_ref().map_or((0, false), Planned::count);
        let mut most = [u64::from(planned.is_err()), calls, u64::from(view)];
        if comm.size() > 1 {
            comm.all_reduce(&mut most, Reduce::Max)?;
        }
        let [failed, calls, view] = most;
        if failed > 0 {
            return agree(comm, planned.map(drop));
        }
        let mut planned = planned?;
        let mut together = lock(&self.together);
        let handle = together.as_mut().ok_or_else(closed)?;
        let mut result = Ok(());
        for _ in 0..calls {
            // Who failed has nothing more to move, but the others need its calls.
            let next = if result.is_ok() { planned.next() } else { Ok(None) };
            let called = match next {
                Ok(Some(next)) => planned.call(next, handle, Who::Together, view > 0),
                Ok(None) => call_with_nothing(handle, direction, view > 0),
                Err(error) => call_with_nothing(handle, direction, view > 0).and(Err(error)),
            };
            result = result.and(called);
        }
        drop(together);
        agree(comm, result)
    }
}

impl MovedFile for MpiioFile {
    fn write(&self, wanted: Result<Elements<'_>>, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        let planned = wanted
            .and_then(|elements| self.plan(elements, Memory::to_write(elements, memory, &self.staging, self.limits())));
        self.transfer(planned, Direction::Write, transfer)
    }

    fn read(&self, wanted: Result<Elements<'_>>, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let planned = wanted.and_then(|elements| {
            if transfer == TransferMode::Collective {
                self.refuse_short(elements)?;
            }
            self.plan(elements, Memory::to_read(elements, memory, &self.staging, self.limits()))
        });
        self.transfer(planned, Direction::Read, transfer)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.on_own(|handle| {
            let mut at = offset;
            for part in bytes.chunks(self.job.options.round as usize) {
                let way = (Direction::Write, Who::Alone);
                // SAFETY: the address and the length are those of the slice, which MPI only reads.
                unsafe {
                    handle.transfer(way, Place::Run(at), false, part.as_ptr().cast_mut().cast(), part.len() as u64)?;
                }
                at += part.len() as u64;
            }
            Ok(())
        });
        self.dirty.store(true, Ordering::Release);
        written.map_err(|error| error.target(self.path.display()))
    }

    fn sync(&self) -> Result<()> {
        if !self.writable {
            return Ok(());
        }
        let was_dirty = self.dirty.swap(false, Ordering::AcqRel);
        let alone = lock(&self.alone).as_mut().filter(|_| was_dirty).map_or(Ok(()), Handle::sync);
        // Whatever came before: the others wait for this rank.
        let together = lock(&self.together).as_mut().map_or(Ok(()), Handle::sync);
        let synced = alone.and(together).map_err(|error| error.target(self.path.display()));
        if synced.is_err() {
            self.dirty.store(was_dirty, Ordering::Release);
        }
        synced
    }

    fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    fn close(&self) -> Result<()> {
        let alone = lock(&self.alone).take().map_or(Ok(()), Handle::close);
        let together = lock(&self.together).take().map_or(Ok(()), Handle::close);
        alone.and(together).map_err(|error| error.target(self.path.display()))
    }
}

impl Drop for MpiioFile {
    fn drop(&mut self) {
        // An error has nobody to go to. Closing what is open together needs the other ranks, who may be elsewhere; MPI
        // takes it along when it ends.
        let _ = lock(&self.alone).take().map(Handle::close);
        if self.job.comm.size() == 1 {
            let _ = lock(&self.together).take().map(Handle::close);
        }
    }
}
