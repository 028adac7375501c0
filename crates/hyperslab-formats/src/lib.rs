//! Storage formats. Each is one module, one cargo feature if it needs a library, and one entry in the registry.

mod registry;
mod versions;

#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "mpi")]
pub mod mpiio;
pub mod netcdf3;
#[cfg(feature = "hdf5")]
pub mod netcdf4;
pub mod null;
pub mod posix;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use registry::{Build, FormatEntry, build, formats};
pub use versions::library_versions;
