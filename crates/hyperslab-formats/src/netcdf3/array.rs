//! An open array.

use super::define::{check_records, define_records};
use super::fill::fill;
use super::state::{Open, Shared};
use crate::posix::transfer;
use hyperslab_core::{
    Array, ArraySpec, Datatype, Error, MemoryLayout, MemoryView, MemoryViewMut, Reduce, Result, Selection,
    TransferMode, agree, dims,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle of an array.
#[derive(Debug)]
pub(crate) struct CdfArray {
    pub shared: Arc<Shared>,
    /// Of its variable: variables are never taken away.
    pub number: usize,
    pub name: String,
    pub closed: AtomicBool,
}

impl CdfArray {
    fn locate(&self, error: Error) -> Error {
        error.backend("netcdf3").target(&self.name).rank(self.shared.comm.rank())
    }

    fn with<T>(&self, operation: &'static str, work: impl FnOnce(&Open) -> Result<T>) -> Result<T> {
        if self.closed.load(Ordering::Acquire) {
            return Err(self.locate(Error::invalid(operation, "the array is closed")));
        }
        self.shared.with(operation, work).map_err(|error| self.locate(error))
    }

    fn spec_of(&self, open: &Open) -> ArraySpec {
        open.arrays[self.number].spec(&open.header, &open.header.variables[self.number])
    }

    /// The shape to resize to as a number of records.
    fn check_resize(&self, shape: &[u64]) -> Result<u64> {
        self.shared.check_writable("resize")?;
        self.with("resize", |open| {
            let now = self.spec_of(open);
            let spec = ArraySpec { shape: shape.into(), ..now.clone() };
            spec.check()?;
            if now.max_shape.is_none() {
                return Err(Error::unsupported("resize", "the array has a fixed shape")
                    .hint("create it with an open maximum of the first dimension"));
            }
            if shape.len() != now.shape.len() || shape.iter().skip(1).ne(now.shape.iter().skip(1)) {
                let (now, then) = (dims::display(&now.shape), dims::display(shape));
                let message = format!("{now} cannot become {then}: only the first dimension can change");
                return Err(Error::unsupported("resize", message).hint("use a format with chunks"));
            }
            check_records(open, shape[0])?;
            Ok(shape[0])
        })
    }

    fn check(selection: &Selection, spec: &ArraySpec, layout: &MemoryLayout, bytes: usize) -> Result<bool> {
        selection.check_inside(&spec.shape)?;
        Ok(layout.is_packed() && bytes as u64 == selection.len() * spec.dtype.size())
    }
}

/// Whether memory holds whole elements.
fn is_whole(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || layout.plan(dtype)?.covers_element())
}

impl Array for CdfArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.with("describe", |open| Ok(self.spec_of(open)))
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, _transfer: TransferMode) -> Result<()> {
        self.with("write", |open| {
            if !self.shared.writable {
                return Err(Error::invalid("write", "the container is open for reading only"));
            }
            let spec = self.spec_of(open);
            if !Self::check(selection, &spec, memory.layout, memory.data.len())? {
                memory.check(&spec.dtype, selection.len())?;
            }
            if !is_whole(memory.layout, &spec.dtype)? {
                return Err(Error::unsupported("write", "elements of a classic NetCDF file have no fields"));
            }
            if selection.is_empty() {
                return Ok(());
            }
            // Before the first byte is there.
            self.shared.touched.store(true, Ordering::Release);
            let place = open.arrays[self.number].placement(&open.header, &open.header.variables[self.number]);
            let target = (&open.file, &place);
            transfer::write(target, &self.shared.staging, selection, &spec.shape, &spec.dtype, memory)
        })
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, _transfer: TransferMode) -> Result<()> {
        self.with("read", |open| {
            let spec = self.spec_of(open);
            if !Self::check(selection, &spec, memory.layout, memory.data.len())? {
                memory.check(&spec.dtype, selection.len())?;
            }
            if selection.is_empty() {
                return Ok(());
            }
            let place = open.arrays[self.number].placement(&open.header, &open.header.variables[self.number]);
            let source = (&open.file, &place);
            transfer::read_file(source, &self.shared.staging, selection, &spec.shape, &spec.dtype, memory)
        })
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let comm = &*self.shared.comm;
        let records = agree(comm, self.check_resize(shape))?;
        // The least of all is the greatest of the complements.
        let mut asked = [records, !records];
        comm.all_reduce(&mut asked, Reduce::Max)?;
        let now = self.with("resize", |open| Ok(open.header.records))?;
        let (records, least) = (asked[0], !asked[1]);
        // Ranks that grow the array each for its own part mean all of these parts.
        if records != least && least < now {
            let message = format!("ranks ask for different numbers of records, from {least} to {records}");
            return Err(self.locate(Error::invalid("resize", message)));
        }
        if records == now {
            return Ok(());
        }
        define_records(&self.shared, records).map_err(|error| self.locate(error))?;
        let filled = self.with("resize", |open| {
            let growing = open.header.variables.iter().enumerate().filter(|(_, one)| open.header.has_records(one));
            let mut growing = growing.filter(|_| records > now);
            growing.try_for_each(|(number, _)| fill(open, &self.shared.staging, comm, number, now))
        });
        agree(comm, filled)
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        Ok(())
    }
}
