//! An open array.

use super::data_file::{Access, DataFile};
use super::description::{self, ArrayDescription, Of};
use super::directory::{data_file, description_file};
use super::home::Home;
use super::mover::{Elements, MovedFile};
use super::names::{RANKS, with_extension};
use super::options::Files;
use super::placement::Placement;
use super::rank_files::{RankFiles, fill_with};
use super::transfer;
use hyperslab_core::{
    Array, ArraySpec, Dims, Error, ErrorKind, MemoryView, MemoryViewMut, Result, Selection, TransferMode, agree, dims,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// One array on one rank, shared by all its handles there.
#[derive(Debug)]
pub(crate) struct ArrayState {
    stem: PathBuf,
    /// As opened; the shape of now is in `open`.
    spec: ArraySpec,
    open: RwLock<Option<Opened>>,
    /// Range locks do not exclude threads that share a descriptor.
    fields: Mutex<()>,
}

#[derive(Debug)]
struct Opened {
    shape: Dims,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Shared(DataFile),
    PerRank(RankFiles),
    /// In the shared form, moved by somebody else.
    Moved(Box<dyn MovedFile>),
}

impl ArrayState {
    /// Opens the data of an array on this rank.
    pub fn open(home: &Home, stem: &Path, spec: &ArraySpec, files: Files) -> Result<Self> {
        let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?;
        let shared = || {
            let access = if home.writable { Access::Write } else { Access::Read };
            let file = DataFile::open(&data_file(stem), access, home.options.direct, &home.staging)?;
            let found = file.len()?;
            if found < bytes {
                let message = format!("the data file has {found} bytes, the array {bytes}");
                return Err(Error::new(ErrorKind::Corrupt, "open array", message).target(file.path().display()));
            }
            Ok(file)
        };
        let data = match (files, &home.mover) {
            (Files::Shared, None) => Data::Shared(shared()?),
            (Files::Shared, Some(mover)) => {
                // Opening is collective, so every rank must know first that every rank will.
                agree(&*home.comm, shared().map(drop))?;
                Data::Moved(mover.open(&data_file(stem), home.writable, &home.staging)?)
            }
            (Files::PerRank, Some(_)) => {
                return Err(Error::unsupported(
                    "open array",
                    "its data is in a file for each rank, not in a shared one",
                )
                .hint("read it with posix"));
            }
            (Files::PerRank, None) => {
                let place = (home.comm.rank(), home.comm.size());
                let (directory, direct) = (with_extension(stem, RANKS), home.options.direct);
                let dimensions = spec.shape.len();
                Data::PerRank(RankFiles::open(&directory, place, dimensions, direct, &home.staging, &home.clock)?)
            }
        };
        let open = RwLock::new(Some(Opened { shape: spec.shape.clone(), data }));
        Ok(Self { stem: stem.into(), spec: spec.clone(), open, fields: Mutex::default() })
    }

    fn read_lock(&self) -> RwLockReadGuard<'_, Option<Opened>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the files. Returns those whose content may not have reached the device. Collective if somebody else
    /// moves the data.
    pub fn release(&self) -> Result<Vec<PathBuf>> {
        let opened = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
        match opened.map(|opened| opened.data) {
            Some(Data::Shared(file)) if file.is_dirty() => Ok(vec![file.path().into()]),
            Some(Data::PerRank(files)) => Ok(files.own_paths()),
            Some(Data::Moved(file)) => {
                file.close()?;
                Ok(if file.is_dirty() { vec![data_file(&self.stem)] } else { Vec::new() })
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Makes the data survive loss of power. Returns what must be synced besides. Collective if somebody else moves it.
    pub fn sync(&self) -> Result<Vec<PathBuf>> {
        match self.read_lock().as_ref().map(|opened| &opened.data) {
            Some(Data::Shared(file)) => file.sync().map(|()| Vec::new()),
            Some(Data::PerRank(files)) => files.sync().map(|directory| directory.into_iter().collect()),
            Some(Data::Moved(file)) => file.sync().map(|()| Vec::new()),
            None => Ok(Vec::new()),
        }
    }

    /// Writes the fill value into this rank's share of the elements from row `from` on; nothing if that is zero.
    pub fn fill_from_row(&self, home: &Home, from: u64) -> Result<()> {
        let Some(fill) = self.spec.fill_value.as_deref().filter(|fill| fill.iter().any(|byte| *byte != 0)) else {
            return Ok(());
        };
        let guard = self.read_lock();
        let Some(Opened { shape, data }) = guard.as_ref() else { return Ok(()) };
        let write_at = |bytes: &[u8], at: u64| match data {
            Data::Shared(file) => file.write_at(bytes, at),
            Data::Moved(file) => file.write_at(bytes, at),
            Data::PerRank(_) => Ok(()),
        };
        if matches!(data, Data::PerRank(_)) {
            return Ok(()); // its indices say what was never written
        }
        let element = fill.len() as u64;
        let total = dims::element_count(shape)?;
        let first = if shape.is_empty() { 0 } else { total / shape[0].max(1) * from };
        let share = |rank: usize| first + (u128::from(total - first) * rank as u128 / home.comm.size() as u128) as u64;
        let (mut at, end) = (share(home.comm.rank()) * element, share(home.comm.rank() + 1) * element);
        let whole = (home.staging.size() as u64 / element).max(1) * element;
        let mut buffer = home.staging.take(whole.min(end - at) as usize);
        fill_with(&mut buffer, Some(fill));
        while at < end {
            let n = (end - at).min(buffer.len() as u64);
            write_at(&buffer[..n as usize], at)?;
            at += n;
        }
        Ok(())
    }
}

/// A handle of an open array.
#[derive(Debug)]
pub(crate) struct PosixArray {
    pub home: Arc<Home>,
    pub state: Arc<ArrayState>,
    pub name: String,
    pub closed: AtomicBool,
}

impl PosixArray {
    fn opened(&self, operation: &'static str) -> Result<RwLockReadGuard<'_, Option<Opened>>> {
        self.home.check_open(operation).map_err(|error| self.locate(error))?;
        if self.closed.load(Ordering::Acquire) {
            return Err(self.closed_error(operation));
        }
        Ok(self.state.read_lock())
    }

    fn closed_error(&self, operation: &'static str) -> Error {
        self.locate(Error::invalid(operation, "the array is closed"))
    }

    fn locate(&self, error: Error) -> Error {
        error.backend(self.home.backend).target(&self.name).rank(self.home.comm.rank())
    }

    fn check_write<'a>(
        &'a self,
        shape: &'a [u64],
        selection: &'a Selection,
        memory: MemoryView<'_>,
    ) -> Result<Elements<'a>> {
        self.home.check_writable("write")?;
        let dtype = &self.state.spec.dtype;
        selection.check_inside(shape)?;
        if !memory.layout.is_packed() || memory.data.len() as u64 != selection.len() * dtype.size() {
            memory.check(dtype, selection.len())?;
        }
        Ok(Elements { selection, shape, dtype })
    }

    fn try_write(
        &self,
        opened: &Opened,
        selection: &Selection,
        memory: MemoryView<'_>,
        how: TransferMode,
    ) -> Result<()> {
        let Opened { shape, data } = opened;
        let staging = &self.home.staging;
        let whole = |dtype| Ok(memory.layout.is_packed() || memory.layout.plan(dtype)?.covers_element());
        match (data, self.check_write(shape, selection, memory)) {
            (Data::Moved(file), checked) => file.write(checked, memory, how),
            (_, Err(error)) => Err(error),
            (_, Ok(_)) if selection.is_empty() => Ok(()),
            (Data::Shared(file), Ok(Elements { selection, shape, dtype })) if whole(dtype)? => {
                transfer::write((file, &Placement::ALONE), staging, selection, shape, dtype, memory)
            }
            (Data::Shared(file), Ok(Elements { selection, shape, dtype })) => {
                let _one_at_a_time = self.state.fields.lock().unwrap_or_else(PoisonError::into_inner);
                transfer::write_fields(file, staging, selection, shape, dtype, memory)
            }
            (Data::PerRank(files), Ok(Elements { selection, shape, dtype })) if whole(dtype)? => {
                files.write(selection, shape, dtype, memory)
            }
            (Data::PerRank(_), Ok(_)) => {
                Err(Error::unsupported("write", "an array with a file per rank cannot take some fields of an element")
                    .hint("write whole elements, or create the array with files=shared"))
            }
        }
    }

    fn check_read<'a>(
        &'a self,
        shape: &'a [u64],
        selection: &'a Selection,
        memory: &MemoryViewMut<'_>,
    ) -> Result<Elements<'a>> {
        let dtype = &self.state.spec.dtype;
        selection.check_inside(shape)?;
        if !memory.layout.is_packed() || memory.data.len() as u64 != selection.len() * dtype.size() {
            memory.check(dtype, selection.len())?;
        }
        Ok(Elements { selection, shape, dtype })
    }

    fn try_read(
        &self,
        opened: &Opened,
        selection: &Selection,
        memory: MemoryViewMut<'_>,
        how: TransferMode,
    ) -> Result<()> {
        let Opened { shape, data } = opened;
        let fill = self.state.spec.fill_value.as_deref();
        match (data, self.check_read(shape, selection, &memory)) {
            (Data::Moved(file), checked) => file.read(checked, memory, how),
            (_, Err(error)) => Err(error),
            (_, Ok(_)) if selection.is_empty() => Ok(()),
            (Data::Shared(file), Ok(Elements { selection, shape, dtype })) => {
                transfer::read_file((file, &Placement::ALONE), &self.home.staging, selection, shape, dtype, memory)
            }
            (Data::PerRank(files), Ok(Elements { selection, shape, dtype })) => {
                files.read(selection, shape, dtype, fill, memory)
            }
        }
    }

    /// Refuses shapes that the array cannot have. Returns the shape of now.
    fn check_resize(&self, shape: &[u64]) -> Result<Dims> {
        self.home.check_writable("resize")?;
        let guard = self.opened("resize")?;
        let Some(Opened { shape: now, .. }) = guard.as_ref() else { return Err(self.closed_error("resize")) };
        let spec = ArraySpec { shape: shape.into(), ..self.state.spec.clone() };
        if spec.max_shape.is_none() {
            return Err(Error::invalid("resize", "the array has a fixed shape").hint("create it with a maximum shape"));
        }
        spec.check()?;
        if shape.len() != now.len() || shape.iter().skip(1).ne(now.iter().skip(1)) {
            return Err(Error::unsupported(
                "resize",
                format!(
                    "{} cannot become {}: only the slowest dimension can change, since other elements would move",
                    dims::display(now),
                    dims::display(shape)
                ),
            )
            .hint("make the dimension that grows the first one, or use a format with chunks"));
        }
        Ok(now.clone())
    }

    /// Changes the files and the description. On rank 0, while no rank transfers.
    fn change_shape(&self, now: &[u64], shape: &[u64]) -> Result<()> {
        let element = self.state.spec.dtype.size();
        let shrinks = shape < now;
        let path = description_file(&self.state.stem);
        let describe = || {
            let mut description: ArrayDescription = description::decode(&description::load(&path)?, Of::Array, &path)?;
            description.shape = shape.into();
            description::store(&path, &description)
        };
        let guard = self.state.read_lock();
        let Some(opened) = guard.as_ref() else { return Err(self.closed_error("resize")) };
        let through_mine;
        let file = match &opened.data {
            Data::PerRank(files) => {
                if shrinks {
                    files.cut(shape)?;
                }
                describe()?;
                None
            }
            Data::Shared(file) => Some(file),
            Data::Moved(_) => {
                let data = data_file(&self.state.stem);
                through_mine = DataFile::open(&data, Access::Write, false, &self.home.staging)?;
                self.home.note_files([data]);
                Some(&through_mine)
            }
        };
        // What a description promises must be there: it shrinks before the file and grows after it.
        match file {
            Some(file) if shrinks => {
                describe()?;
                file.set_len(dims::byte_count(shape, element)?)?;
            }
            Some(file) => {
                // A shrink that was interrupted may have left old elements beyond the end.
                file.set_len(dims::byte_count(now, element)?)?;
                let bytes = dims::byte_count(shape, element)?;
                file.set_len(bytes)?;
                if self.home.options.preallocate {
                    file.reserve(bytes)?;
                }
                describe()?;
            }
            None => {}
        }
        self.home.note_files([path]);
        if let Some(directory) = self.state.stem.parent() {
            self.home.note_directory(directory.into());
        }
        Ok(())
    }
}

impl Array for PosixArray {
    fn spec(&self) -> Result<ArraySpec> {
        match self.opened("describe")?.as_ref() {
            Some(opened) => Ok(ArraySpec { shape: opened.shape.clone(), ..self.state.spec.clone() }),
            None => Err(self.closed_error("describe")),
        }
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.opened("write")?.as_ref() {
            Some(opened) => self.try_write(opened, selection, memory, transfer).map_err(|error| self.locate(error)),
            None => Err(self.closed_error("write")),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        match self.opened("read")?.as_ref() {
            Some(opened) => self.try_read(opened, selection, memory, transfer).map_err(|error| self.locate(error)),
            None => Err(self.closed_error("read")),
        }
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let comm = &*self.home.comm;
        let now = agree(comm, self.check_resize(shape).map_err(|error| self.locate(error)))?;
        if now.as_slice() == shape {
            return Ok(());
        }
        self.home.clock.agree(comm)?;
        self.home.on_root(|| self.change_shape(&now, shape).map_err(|error| self.locate(error)))?;
        if let Some(opened) = self.state.open.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            opened.shape = shape.into();
        }
        self.home.clock.agree(comm)?;
        let filled = if shape > now.as_slice() { self.state.fill_from_row(&self.home, now[0]) } else { Ok(()) };
        agree(comm, filled.map_err(|error| self.locate(error)))
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if self.home.mover.is_some() {
            return self.home.give_back_together(&self.name).map_err(|error| self.locate(error));
        }
        self.home.give_back(&self.name);
        Ok(())
    }
}

impl Drop for PosixArray {
    fn drop(&mut self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.home.give_back(&self.name);
        }
    }
}
