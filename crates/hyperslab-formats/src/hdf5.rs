//! HDF5 files by libhdf5, with nothing in between, as a benchmark of libhdf5 requires; with `plane=on` by the direct
//! path.
//!
//! All libhdf5 calls are serialised by one lock per process, so thread ranks take turns
//! ([`Caps::serialises_ranks`](hyperslab_core::Caps)). The ranks of one process share the open file inside
//! libhdf5: rank 0 creates files, groups, arrays and attributes, the others open them afterwards.
//!
//! With the feature `parallel-hdf5` the processes of an MPI job share a file by libhdf5's MPI-IO driver. Every process
//! then makes the calls that open, create, resize, flush and close, so one that drops a container without closing it
//! leaves the file open until the same processes open another, or MPI ends: closing would wait for the others. What is
//! allocated later in files of one process is allocated when an array is created. Arrays with filters are written by
//! collective transfers only, and compact arrays not at all, since every process would have to write the same.
//! Collective transfers that libhdf5 ran independently are reported by
//! [`Container::diagnostics`](hyperslab_core::Telemetry::diagnostics). What MPI-IO does not report nobody learns: ompio
//! of Open MPI 4.1 calls collective writes successful that a full disk cut short; its other implementation, ROMIO
//! (`mpirun --mca io romio321`), does not.
//!
//! `Visible` is H5Fflush: other programs that open the file then see the data, ranks of this process always do.
//! `Durable` adds fsync of the file (and its subfiles) and, if it was created here, of its directory.
//!
//! An array without a fill value reads as zeros where nothing was written, with one exception that is libhdf5's own:
//! under `fill_time=ifset` contiguous space that was freed earlier in the same session is reused without being cleared.
//! `fill_time=alloc` clears it.

mod alignment;
mod array;
mod attribute;
mod collective_stats;
mod collective_transfer;
mod container;
mod creation_order;
mod dataset_filters;
mod dataspace;
mod dataspace_cache;
mod datatype;
mod diagnostics;
pub(crate) mod dimension_scales;
mod direct_access;
mod driver;
mod errors;
mod features;
mod file_map;
mod filter_plugins;
mod format;
mod handle;
mod leaked_files;
mod library;
#[cfg_attr(not(feature = "parallel-hdf5"), path = "hdf5/mpio_stub.rs")]
mod mpio;
mod named_types;
mod objects;
mod options;
mod properties;
mod ranks;
mod rollback_driver;
mod strings;
mod subfiles;
mod transfer;

#[cfg(test)]
mod tests;

pub(crate) use container::Hdf5Container;
pub(crate) use creation_order::creation_order;
pub use features::features;
pub(crate) use file_map::file_map;
pub use format::Hdf5;
pub use library::library_version;
pub(crate) use subfiles::join as join_subfiles;

/// The name in stack strings and errors.
const NAME: &str = "hdf5";
