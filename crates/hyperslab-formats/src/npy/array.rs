//! An open array.

use super::header::{Header, decode};
use super::shared::Shared;
use crate::posix::data_file::{Access, DataFile};
use crate::posix::placement::Placement;
use crate::posix::transfer;
use hyperslab_core::{Array, ArraySpec, Error, MemoryView, MemoryViewMut, Result, Selection, TransferMode};
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// A handle of an array.
#[derive(Debug)]
pub(super) struct NpyArray {
    shared: Arc<Shared>,
    name: String,
    spec: ArraySpec,
    place: Placement,
    /// `None` when closed.
    file: RwLock<Option<Arc<DataFile>>>,
}

impl NpyArray {
    /// Opens the file of an array. On each rank.
    pub fn open(shared: &Arc<Shared>, path: &Path, name: &str) -> Result<Self> {
        let access = if shared.writable { Access::Write } else { Access::Read };
        let file = Arc::new(DataFile::open(path, access, false, &shared.staging)?);
        let header = decode(BufReader::new(file.buffered()), file.len()?);
        let Header { spec, begin } = header.map_err(|error| error.target(path.display()))?;
        shared.opened(&file);
        let place = Placement { begin, ..Placement::ALONE };
        Ok(Self { shared: shared.clone(), name: name.into(), spec, place, file: RwLock::new(Some(file)) })
    }

    fn with(&self, operation: &'static str, work: impl FnOnce(&DataFile) -> Result<()>) -> Result<()> {
        let run = || {
            self.shared.check_open(operation)?;
            match self.file.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
                Some(file) => work(file),
                None => Err(Error::invalid(operation, "the array is closed")),
            }
        };
        run().map_err(|error: Error| error.backend(super::NAME).target(&self.name).rank(self.shared.comm.rank()))
    }
}

impl Array for NpyArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.with("describe", |_| Ok(())).map(|()| self.spec.clone())
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, _transfer: TransferMode) -> Result<()> {
        self.with("write", |file| {
            self.shared.check_writable("write")?;
            selection.check_inside(&self.spec.shape)?;
            memory.check(&self.spec.dtype, selection.len())?;
            if selection.is_empty() {
                return Ok(());
            }
            let target = (file, &self.place);
            transfer::write(target, &self.shared.staging, selection, &self.spec.shape, &self.spec.dtype, memory)
        })
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, _transfer: TransferMode) -> Result<()> {
        self.with("read", |file| {
            selection.check_inside(&self.spec.shape)?;
            memory.check(&self.spec.dtype, selection.len())?;
            if selection.is_empty() {
                return Ok(());
            }
            let source = (file, &self.place);
            transfer::read_file(source, &self.shared.staging, selection, &self.spec.shape, &self.spec.dtype, memory)
        })
    }

    fn resize(&self, _shape: &[u64]) -> Result<()> {
        self.with("resize", |_| {
            self.shared.check_writable("resize")?;
            Err(Error::unsupported("resize", "arrays in .npy files have a fixed shape").hint("use posix, hdf5 or zarr"))
        })
    }

    fn close(&self) -> Result<()> {
        if let Some(file) = self.file.write().unwrap_or_else(PoisonError::into_inner).take() {
            self.shared.released(&file);
        }
        Ok(())
    }
}

impl Drop for NpyArray {
    fn drop(&mut self) {
        // It never fails.
        let _ = self.close();
    }
}
