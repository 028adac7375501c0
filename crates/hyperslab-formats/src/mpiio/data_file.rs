//! The data file of an array, by MPI-IO.

use super::filetype::{Filetype, Regular};
use super::handle::{Direction, FileRegion, Handle, Participants};
use super::library;
use super::memory_side::Memory;
use super::options::Options;
use super::requests::{Request, RequestLimits, Requests};
use crate::posix::buffer_pool::BufferPool;
use crate::posix::data_backend::{BackendFile, DataBackend, Elements};
use hyperslab_core::{
    Communicator, Error, ErrorKind, MemoryView, MemoryViewMut, Reduce, Result, Run, TransferMode, agree,
};
use mpi_sys as ffi;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Communicator and options of a container.
#[derive(Debug, Clone)]
pub(super) struct MpiContext {
    comm: Arc<dyn Communicator>,
    /// MPI communicator handle; `None` for a single rank.
    handle: Option<i32>,
    options: Arc<Options>,
}

impl MpiContext {
    /// Fails for ranks that are not processes of an MPI job.
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

impl DataBackend for MpiContext {
    fn open(&self, path: &Path, writable: bool, staging: &Arc<BufferPool>) -> Result<Box<dyn BackendFile>> {
        let opened = Handle::open(self.communicator(), path, writable, &self.options);
        // If the open fails on some ranks only, the others cannot close the file: that is collective.
        let shared = agree(&*self.comm, opened.map_err(|error| error.target(path.display())))?;
        Ok(Box::new(MpiioFile {
            job: self.clone(),
            path: path.into(),
            writable,
            staging: staging.clone(),
            shared: Mutex::new(Some(shared)),
            own: Mutex::new(None),
            dirty: AtomicBool::new(false),
        }))
    }
}

/// An open data file.
#[derive(Debug)]
struct MpiioFile {
    job: MpiContext,
    path: PathBuf,
    writable: bool,
    staging: Arc<BufferPool>,
    /// Opened by all ranks together; `None` after close.
    shared: Mutex<Option<Handle>>,
    /// Opened by this rank alone, at its first independent transfer with a view: setting a view is collective.
    own: Mutex<Option<Handle>>,
    dirty: AtomicBool,
}

/// A prepared transfer of this rank.
struct PlannedTransfer<'a> {
    memory: Memory<'a>,
    requests: Requests<'a>,
    /// The selection as a regular datatype, if one call suffices.
    regular: Option<Regular>,
}

fn lock(handle: &Mutex<Option<Handle>>) -> MutexGuard<'_, Option<Handle>> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Error::invalid("transfer", "the data file is closed")
}

impl PlannedTransfer<'_> {
    /// Number of calls, and whether any needs a view.
    fn count(&self) -> (u64, bool) {
        match &self.regular {
            Some(slab) => (1, !slab.levels.is_empty()),
            None => self.requests.count(),
        }
    }

    /// The next request and its file region.
    fn next(&mut self) -> Result<Option<(Request, FileRegion)>> {
        if let Some(slab) = self.regular.take() {
            let bytes = self.requests.whole();
            let place = match slab.levels.is_empty() {
                true => FileRegion::Run(slab.offset),
                false => FileRegion::View(slab.offset, Filetype::regular(&slab)?),
            };
            return Ok(Some((bytes, place)));
        }
        let Some(request) = self.requests.advance() else { return Ok(None) };
        let place = match self.requests.runs() {
            [Run { offset, .. }] => FileRegion::Run(*offset),
            runs => FileRegion::View(runs.first().map_or(0, |run| run.offset), Filetype::runs(runs)?),
        };
        Ok(Some((request, place)))
    }

    /// Executes a request. With `view`, all ranks that share the handle set a view.
    fn call(
        &mut self,
        (request, place): (Request, FileRegion),
        handle: &mut Handle,
        who: Participants,
        view: bool,
    ) -> Result<()> {
        let direction = self.memory.direction();
        let address = self.memory.before(request);
        // SAFETY: `before` gives as many bytes as the step has, and to be written to for reads.
        unsafe { handle.transfer((direction, who), place, view, address, request.len)? };
        self.memory.after(request);
        Ok(())
    }
}

/// Takes part in a collective call without elements.
fn call_with_nothing(handle: &mut Handle, direction: Direction, view: bool) -> Result<()> {
    // A valid address: some MPI libraries treat null specially.
    let mut nothing = [0u8; 1];
    // SAFETY: no byte is moved.
    unsafe {
        handle.transfer((direction, Participants::AllRanks), FileRegion::Run(0), view, nothing.as_mut_ptr().cast(), 0)
    }
}

impl MpiioFile {
    fn limits(&self) -> RequestLimits {
        RequestLimits { fill: 0, call: self.job.options.round, view: self.job.options.view }
    }

    /// The selection as a regular datatype, if views are enabled, it is a slab, and one request holds it.
    fn regular(&self, elements: Elements<'_>, memory: &Memory<'_>, requests: &Requests<'_>) -> Option<Regular> {
        let whole = !matches!(memory, Memory::Gathered { fields, .. } if !fields.is_empty());
        let fits = requests.fits_one_call() && !elements.selection.is_empty();
        if !(self.job.options.view && whole && fits) {
            return None;
        }
        Regular::of(elements.selection, elements.shape, elements.dtype.size())
    }

    /// Fails for reads beyond the end of the file: ROMIO reports all bytes as read in collective calls, even if they do
    /// not exist.
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

    fn plan<'a>(
        &self,
        elements: Elements<'a>,
        ready: Result<(Memory<'a>, Requests<'a>)>,
    ) -> Result<PlannedTransfer<'a>> {
        let (memory, requests) = ready?;
        Ok(PlannedTransfer { regular: self.regular(elements, &memory, &requests), memory, requests })
    }

    fn transfer(
        &self,
        planned: Result<PlannedTransfer<'_>>,
        direction: Direction,
        transfer: TransferMode,
    ) -> Result<()> {
        let result = match transfer {
            TransferMode::Independent => self.transfer_independent(planned?),
            TransferMode::Collective => self.transfer_collective(planned, direction),
        };
        if direction == Direction::Write {
            // After the write, so that a concurrent flush cannot clear the flag for bytes it has not synced.
            self.dirty.store(true, Ordering::Release);
        }
        result.map_err(|error| error.target(self.path.display()))
    }

    fn transfer_independent(&self, mut planned: PlannedTransfer<'_>) -> Result<()> {
        self.with_own_handle(|handle| {
            while let Some(next) = planned.next()? {
                planned.call(next, handle, Participants::ThisRank, false)?;
            }
            Ok(())
        })
    }

    /// Runs `work` on a handle that this rank may use independently.
    fn with_own_handle<T>(&self, work: impl FnOnce(&mut Handle) -> Result<T>) -> Result<T> {
        if !self.job.options.view || self.job.comm.size() == 1 {
            // No view is ever set on it, or there is no other rank.
            return work(lock(&self.shared).as_mut().ok_or_else(closed)?);
        }
        let mut own = lock(&self.own);
        if own.is_none() {
            // SAFETY: reading a constant of the library.
            let myself = unsafe { ffi::RSMPI_COMM_SELF };
            *own = Some(Handle::open(myself, &self.path, self.writable, &self.job.options)?);
        }
        work(own.as_mut().ok_or_else(closed)?)
    }

    /// Every rank makes as many calls as the rank with most; all fail if any does.
    fn transfer_collective(&self, planned: Result<PlannedTransfer<'_>>, direction: Direction) -> Result<()> {
        let comm = &*self.job.comm;
        let (calls, view) = planned.as_ref().map_or((0, false), PlannedTransfer::count);
        let mut most = [u64::from(planned.is_err()), calls, u64::from(view)];
        if comm.size() > 1 {
            comm.all_reduce(&mut most, Reduce::Max)?;
        }
        let [failed, calls, view] = most;
        if failed > 0 {
            return agree(comm, planned.map(drop));
        }
        let mut planned = planned?;
        let mut shared = lock(&self.shared);
        let handle = shared.as_mut().ok_or_else(closed)?;
        let mut result = Ok(());
        for _ in 0..calls {
            // A failed rank transfers nothing more, but must take part in the others' calls.
            let next = if result.is_ok() { planned.next() } else { Ok(None) };
            let called = match next {
                Ok(Some(next)) => planned.call(next, handle, Participants::AllRanks, view > 0),
                Ok(None) => call_with_nothing(handle, direction, view > 0),
                Err(error) => call_with_nothing(handle, direction, view > 0).and(Err(error)),
            };
            result = result.and(called);
        }
        drop(shared);
        agree(comm, result)
    }
}

impl BackendFile for MpiioFile {
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
        let written = self.with_own_handle(|handle| {
            let mut at = offset;
            for part in bytes.chunks(self.job.options.round as usize) {
                let way = (Direction::Write, Participants::ThisRank);
                // SAFETY: the address and the length are those of the slice, which MPI only reads.
                unsafe {
                    handle.transfer(
                        way,
                        FileRegion::Run(at),
                        false,
                        part.as_ptr().cast_mut().cast(),
                        part.len() as u64,
                    )?;
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
        let own = lock(&self.own).as_mut().filter(|_| was_dirty).map_or(Ok(()), Handle::sync);
        // Even after an error, since it is collective.
        let shared = lock(&self.shared).as_mut().map_or(Ok(()), Handle::sync);
        let synced = own.and(shared).map_err(|error| error.target(self.path.display()));
        if synced.is_err() {
            self.dirty.store(was_dirty, Ordering::Release);
        }
        synced
    }

    fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    fn close(&self) -> Result<()> {
        let own = lock(&self.own).take().map_or(Ok(()), Handle::close);
        let shared = lock(&self.shared).take().map_or(Ok(()), Handle::close);
        own.and(shared).map_err(|error| error.target(self.path.display()))
    }
}

impl Drop for MpiioFile {
    fn drop(&mut self) {
        // A drop cannot report errors. Closing the shared handle is collective; MPI releases it when it ends.
        let _ = lock(&self.own).take().map(Handle::close);
        if self.job.comm.size() == 1 {
            let _ = lock(&self.shared).take().map(Handle::close);
        }
    }
}
