//! Where arrays rest. Each format is one folder, one feature where it needs a library, and one line in the registry.

mod registry;

#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod null;
pub mod posix;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use registry::{Build, FormatEntry, build, formats};
