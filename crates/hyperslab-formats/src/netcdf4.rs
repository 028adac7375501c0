//! NetCDF-4 files: the conventions of netcdf-c over the format [`hdf5`](crate::hdf5), without netcdf-c.
//!
//! A container is an HDF5 file whose dimensions are HDF5 dimension scales; `docs/netcdf.md` tells what is written. Elements go
//! the way that they go in `hdf5`, with all of its options. Dimensions and their links to arrays are kept in memory and written when the
//! container is flushed or closed: by the first rank where ranks are threads, by every rank where they are processes. Every rank
//! keeps the same list of dimensions, because definitions are collective.

mod array;
mod attributes;
mod characters;
mod container;
mod definitions;
mod names;
mod publish;
mod survey;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod types;

use crate::file_map::FileMap;
use crate::hdf5::{Hdf5, dimension_scales};
use crate::netcdf4_entry::ENTRY;
use crate::netcdf4_entry::options::{Options, rules};
use container::Netcdf4Container;
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, StackElement};
use std::path::Path;
use std::sync::Arc;

/// The name in stack strings and errors.
const NAME: &str = ENTRY.name;

pub(crate) fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    let hdf5 = Hdf5::for_netcdf(element, rules(element)?)?;
    Ok(Arc::new(Netcdf4 { hdf5, options }))
}

/// The format of NetCDF-4 files.
#[derive(Debug, Clone)]
pub struct Netcdf4 {
    hdf5: Hdf5,
    options: Options,
}

/// Whether an HDF5 file says that NetCDF wrote it, or has dimensions as such files have them.
pub(crate) fn is_netcdf(path: &Path) -> Result<bool> {
    dimension_scales::look_at(path, |file| Ok(file.object("")?.has(names::PROPERTIES)? || file.any_scale()?))
}

/// Bytes that the elements of each array take in the file.
pub(crate) fn stored_sizes(path: &Path) -> Result<Vec<(String, u64)>> {
    let sizes = dimension_scales::look_at(path, |file| file.stored_sizes())?;
    Ok(sizes.into_iter().map(|(dataset, bytes)| (names::of_dataset(&dataset), bytes)).collect())
}

/// Where bytes lie in the file.
pub(crate) fn file_map(path: &Path) -> Result<FileMap> {
    let mut map = crate::hdf5::file_map(path)?;
    map.arrays.iter_mut().for_each(|array| array.name = names::of_dataset(&array.name));
    Ok(map)
}

/// What was made in which order. Objects of the conventions are among them.
pub(crate) fn creation_order(path: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let order = crate::hdf5::creation_order(path)?;
    Ok(order.into_iter().map(|(object, attributes)| (names::of_dataset(&object), attributes)).collect())
}

impl Format for Netcdf4 {
    hyperslab_core::forward!(self, self.hdf5, [exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        let mut caps = self.hdf5.caps();
        caps.data.dimension_names = true;
        caps.data.groups = !self.options.classic;
        caps
    }

    fn extension(&self) -> &'static str {
        "nc"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let file = self.hdf5.open_container(path, how, comm)?;
        Ok(Arc::new(Netcdf4Container::new(file, how, self.options, comm.clone())?))
    }
}
