//! Registry of formats.

use hyperslab_core::{Error, Format, OptionSpec, Result, StackElement, suggest};
use std::sync::Arc;

/// Constructor of a format from its stack element.
pub type Build = fn(&StackElement) -> Result<Arc<dyn Format>>;

/// Registry entry of a format.
#[derive(Debug, Clone, Copy)]
pub struct FormatEntry {
    /// Name in stack strings.
    pub name: &'static str,
    /// One-line description for users.
    pub about: &'static str,
    /// Supported options.
    pub options: &'static [OptionSpec],
    /// Constructor; `None` if the format is not compiled in.
    pub build: Option<Build>,
}

#[cfg(feature = "hdf5")]
const HDF5: FormatEntry = crate::hdf5::ENTRY;
#[cfg(not(feature = "hdf5"))]
const HDF5: FormatEntry = FormatEntry { name: "hdf5", about: "HDF5 through libhdf5", options: &[], build: None };

#[cfg(feature = "hdf5")]
const NETCDF4: FormatEntry = crate::netcdf4::ENTRY;
#[cfg(not(feature = "hdf5"))]
const NETCDF4: FormatEntry = FormatEntry { name: "netcdf4", about: "NetCDF-4 files", options: &[], build: None };

#[cfg(feature = "zarr")]
const ZARR: FormatEntry = crate::zarr::ENTRY;
#[cfg(not(feature = "zarr"))]
const ZARR: FormatEntry = FormatEntry { name: "zarr", about: "Zarr version 2 and 3", options: &[], build: None };

#[cfg(feature = "mpi")]
const MPIIO: FormatEntry = crate::mpiio::ENTRY;
#[cfg(not(feature = "mpi"))]
const MPIIO: FormatEntry =
    FormatEntry { name: "mpiio", about: "the files of posix, through MPI-IO", options: &[], build: None };

const FORMATS: &[FormatEntry] =
    &[crate::posix::ENTRY, HDF5, ZARR, NETCDF4, crate::netcdf3::ENTRY, MPIIO, crate::null::ENTRY];

impl FormatEntry {
    /// How to build a program that includes it.
    pub fn how_to_build(&self) -> String {
        match self.name {
            "mpiio" => "build it with cargo xtask build --mpi".to_owned(),
            "hdf5" | "netcdf4" => "build with --features bundled-hdf5".to_owned(),
            name => format!("build with --features {name}"),
        }
    }
}

/// All formats of this version, compiled in or not.
pub fn formats() -> &'static [FormatEntry] {
    FORMATS
}

/// Builds the format that `element` names. Fails for unknown names and invalid options.
pub fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    let entry = FORMATS.iter().find(|entry| entry.name == element.name).ok_or_else(|| {
        Error::invalid("choose format", format!("there is no format {:?}", element.name))
            .hint(suggest::hint(&element.name, FORMATS.iter().map(|entry| entry.name)))
    })?;
    let build = entry.build.ok_or_else(|| {
        Error::unsupported("choose format", format!("{} is not compiled into this build", entry.name))
            .hint(entry.how_to_build())
    })?;
    element.check_options(entry.options)?;
    build(element)
}
