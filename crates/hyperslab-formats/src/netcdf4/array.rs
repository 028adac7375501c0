//! An open variable.

use super::container::Shared;
use super::types::{self, Storing};
use super::{characters, container};
use hyperslab_core::{
    Array, ArraySpec, MAX_RANK, MemoryLayout, MemoryView, MemoryViewMut, Reduce, Result, Selection, Telemetry,
    TransferMode,
};
use std::sync::Arc;

/// One rank's handle of a variable.
#[derive(Debug)]
pub(super) struct Netcdf4Array {
    pub(super) name: String,
    pub(super) dataset: Arc<dyn Array>,
    pub(super) storing: Storing,
    pub(super) shared: Arc<Shared>,
}

impl Netcdf4Array {
    /// The largest extents that any rank asks for. Collective.
    fn agreed(&self, shape: &[u64]) -> Result<Vec<u64>> {
        let comm = &*self.shared.comm;
        if comm.size() == 1 || shape.len() > MAX_RANK {
            return Ok(shape.to_vec());
        }
        let mut extents = [0; MAX_RANK];
        extents[..shape.len()].copy_from_slice(shape);
        comm.all_reduce(&mut extents, Reduce::Max)?;
        Ok(extents[..shape.len()].to_vec())
    }
}

impl Array for Netcdf4Array {
    hyperslab_core::forward!(self, self.dataset, [allows_background_io, object, write_back, close]);

    fn spec(&self) -> Result<ArraySpec> {
        let mut spec = types::restored(self.dataset.spec()?, self.storing);
        let mut names = container::dimension_names(&self.shared, &self.name)?;
        names.iter_mut().for_each(|names| names.truncate(spec.shape.len()));
        spec.dims = names.filter(|names| names.len() == spec.shape.len());
        Ok(spec)
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.storing {
            Storing::Characters(length) => characters::write(&*self.dataset, length, selection, memory, transfer),
            _ => self.dataset.write(selection, memory, transfer),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        match self.storing {
            Storing::Characters(length) => characters::read(&*self.dataset, length, selection, memory, transfer),
            _ => self.dataset.read(selection, memory, transfer),
        }
    }

    hyperslab_core::forward!(self, self.dataset, [write_strings, read_strings]);

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    /// The ranks together: an extent becomes the largest that any of them asks for.
    fn resize(&self, shape: &[u64]) -> Result<()> {
        let mut shape = self.agreed(shape)?;
        if let Storing::Characters(length) = self.storing {
            shape.push(u64::from(length));
        }
        self.dataset.resize(&shape)
    }
}

impl Telemetry for Netcdf4Array {
    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        match self.storing {
            Storing::Characters(_) => Ok(None),
            _ => self.dataset.explain(selection, layout, writes),
        }
    }
}
