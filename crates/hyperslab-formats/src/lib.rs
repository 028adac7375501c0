//! Storage formats. Each is one module, one cargo feature if it needs a library, and one entry in the registry, which says all
//! that others need to know of it: CONTRIBUTING.md tells how to add one.

#[path = "hdf5/entry.rs"]
mod hdf5_entry;
#[path = "netcdf4/entry.rs"]
mod netcdf4_entry;
mod python_words;
mod registry;
mod versions;
#[path = "zarr/entry.rs"]
mod zarr_entry;

pub mod file_map;
#[cfg(feature = "hdf5")]
pub mod hdf5;
#[cfg(feature = "mpi")]
pub mod mpiio;
pub mod netcdf3;
#[cfg(feature = "hdf5")]
pub mod netcdf4;
pub mod netcdf_fill;
pub mod npy;
pub mod null;
pub mod posix;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use registry::{
    Advice, Beginning, Build, CreationOrder, FormatEntry, FormatOption, ProgramWords, Surroundings, build, format,
    formats,
};
pub use versions::library_versions;
