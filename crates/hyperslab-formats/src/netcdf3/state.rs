//! An open file on one rank: its header, and who may do what with it meanwhile.

use super::arrays::Array;
use super::encode::encoded_len;
use super::header::Header;
use super::header_file;
use super::journal::sync_directory;
use super::names::unused;
use super::options::Options;
use crate::posix::data_file::{Access, DataFile};
use crate::posix::staging::Staging;
use hyperslab_core::{Communicator, Error, ErrorKind, Result, agree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Shared by a container and its arrays.
#[derive(Debug)]
pub(crate) struct Shared {
    pub path: PathBuf,
    pub comm: Arc<dyn Communicator>,
    pub options: Options,
    pub writable: bool,
    pub staging: Arc<Staging>,
    /// Whether this rank may have put elements where the header says, so that they cannot be placed anew for nothing.
    pub touched: AtomicBool,
    closed: AtomicBool,
    /// Read-locked by transfers, write-locked by whatever changes the header.
    state: RwLock<Option<Open>>,
}

/// What is known of the open file. The same on all ranks, but for what says otherwise.
#[derive(Debug)]
pub(crate) struct Open {
    pub file: DataFile,
    pub header: Header,
    /// In the order of the header's variables.
    pub arrays: Vec<Array>,
    /// Numbers of the arrays by their names.
    pub by_name: BTreeMap<String, usize>,
    /// The most bytes that the header had: elements never lie there.
    pub longest: u64,
    /// What the file has for a header. On rank 0.
    pub stored: Vec<u8>,
    /// Whether the header may differ from that.
    pub changed: bool,
    /// Whether what is in the file was promised to survive loss of power.
    pub durable: bool,
    /// Whether the name of the file was.
    pub named: bool,
}

impl Open {
    pub fn new(file: DataFile, header: Header, stored: Vec<u8>, existed: bool) -> Self {
        let mut arrays: Vec<Array> = header.variables.iter().map(|variable| Array::of(&header, variable)).collect();
        let mut by_name = BTreeMap::new();
        // Variables go by their own names first: what an attribute says may be taken.
        for own in [true, false] {
            let is_own = |number: &usize| arrays[*number].name == header.variables[*number].name;
            let numbers: Vec<usize> = (0..arrays.len()).filter(|number| is_own(number) == own).collect();
            for number in numbers {
                if by_name.contains_key(&arrays[number].name) {
                    let name = header.variables[number].name.clone();
                    arrays[number].name = unused(name, |taken| by_name.contains_key(taken));
                }
                by_name.insert(arrays[number].name.clone(), number);
            }
        }
        let longest = stored.len() as u64;
        let changed = encoded_len(&header) != longest;
        let (durable, named) = (existed, existed);
        Self { file, header, arrays, by_name, longest, stored, changed, durable, named }
    }

    /// The number of an array.
    pub fn number(&self, name: &str) -> Result<usize> {
        self.by_name.get(name).copied().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "open array", "there is no such array")
                .hint("hyperslab show lists what is there")
        })
    }

    /// Makes the file as long as its header says. What lies beyond byte `end`, where elements ended so far, belongs to no array
    /// and becomes zeros. On rank 0.
    pub fn lengthen(&self, end: u64) -> Result<()> {
        let (len, new) = (self.file.len()?, self.header.end());
        let kept = len.min(end.max(self.longest));
        if kept < len {
            self.file.set_len(kept)?;
        }
        if kept < new { self.file.set_len(new) } else { Ok(()) }
    }
}

impl Shared {
    pub fn new(path: &Path, comm: &Arc<dyn Communicator>, options: Options, writable: bool) -> Self {
        Self {
            path: path.into(),
            comm: comm.clone(),
            options,
            writable,
            staging: Arc::new(Staging::new(options.buffer, 64)),
            touched: AtomicBool::new(false),
            closed: AtomicBool::new(true),
            state: RwLock::new(None),
        }
    }

    /// Opens the file for itself.
    pub fn open_file(&self) -> Result<DataFile> {
        let access = if self.writable { Access::Write } else { Access::Read };
        DataFile::open(&self.path, access, false, &self.staging)
    }

    pub fn begin(&self, open: Open) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(open);
        self.closed.store(false, Ordering::Release);
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Option<Open>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Option<Open>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn closed_error(operation: &'static str) -> Error {
        Error::invalid(operation, "the container is closed")
    }

    /// Does `work` with what is open.
    pub fn with<T>(&self, operation: &'static str, work: impl FnOnce(&Open) -> Result<T>) -> Result<T> {
        work(self.read().as_ref().ok_or_else(|| Self::closed_error(operation))?)
    }

    /// The same, to change it.
    pub fn with_mut<T>(&self, operation: &'static str, work: impl FnOnce(&mut Open) -> Result<T>) -> Result<T> {
        work(self.write().as_mut().ok_or_else(|| Self::closed_error(operation))?)
    }

    /// What is open, if it may be changed.
    pub fn writable<'a>(&self, state: &'a mut Option<Open>, operation: &'static str) -> Result<&'a mut Open> {
        let open = state.as_mut().ok_or_else(|| Self::closed_error(operation))?;
        if !self.writable {
            return Err(Error::invalid(operation, "the container is open for reading only"));
        }
        Ok(open)
    }

    pub fn check_writable(&self, operation: &'static str) -> Result<()> {
        self.with(operation, |_| Ok(()))?;
        if !self.writable {
            return Err(Error::invalid(operation, "the container is open for reading only"));
        }
        Ok(())
    }

    pub fn is_root(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Does `work` on rank 0; all ranks succeed or fail together. Collective.
    pub fn on_root(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        agree(&*self.comm, if self.is_root() { work() } else { Ok(()) })
    }

    /// Puts the header into the file if it changed. On rank 0, by itself.
    pub fn store_header(&self) -> Result<()> {
        if !self.writable || !self.is_root() {
            return Ok(());
        }
        self.with_mut("flush", |open| {
            if open.changed {
                open.stored = header_file::replace(&self.path, &open.file, &open.stored, &open.header, open.durable)?;
                open.changed = false;
                // Whoever reads the file may rely on where its arrays are.
                self.touched.store(true, Ordering::Release);
            }
            Ok(())
        })
    }

    /// Makes elements, then the header, then the name survive loss of power. Collective.
    pub fn sync(&self) -> Result<()> {
        agree(&*self.comm, self.with("flush", |open| open.file.sync()))?;
        self.on_root(|| {
            self.store_header()?;
            self.with_mut("flush", |open| {
                open.file.sync()?;
                if self.writable && !open.named {
                    sync_directory(&self.path).map_err(|cause| open.file.fail("flush", cause))?;
                }
                (open.durable, open.named) = (true, true);
                Ok(())
            })
        })?;
        self.with_mut("flush", |open| {
            (open.durable, open.named) = (true, true);
            Ok(())
        })
    }

    /// Releases the file. `None` but for the first time.
    pub fn close(&self) -> Option<Result<()>> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        let stored = self.store_header();
        self.write().take();
        Some(stored)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // An error is lost, as it is for whoever drops a container.
        let _ = self.close();
    }
}
