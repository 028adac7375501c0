//! Where arrays rest. Each format is one folder, one feature where it needs a library, and one line in the registry.

mod libraries;
mod registry;

#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "mpi")]
pub mod mpiio;
pub mod netcdf3;
pub mod null;
pub mod posix;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use libraries::library_versions;
pub use registry::{Build, FormatEntry, build, formats};
