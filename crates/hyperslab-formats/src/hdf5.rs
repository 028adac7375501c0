//! HDF5 through libhdf5, nothing in between: what a benchmark of libhdf5 must measure.
//!
//! libhdf5 is not entered by two threads at once: every call runs under one lock of the process, so thread ranks take
//! turns ([`Caps::serialises_ranks`](hyperslab_core::Caps)). The ranks of one process share the open file inside
//! libhdf5: rank 0 creates files, groups, arrays and attributes, the others open them afterwards.
//!
//! `Visible` is H5Fflush: other programs that open the file then see the data, ranks of this process always do.
//! `Durable` adds fsync of the file and, if it was created here, of its directory.
//!
//! An array without a fill value reads as zeros where nothing was written, with one exception that is libhdf5's own:
//! under `fill_time=ifset` contiguous space that was freed earlier in the same session is reused without being cleared.
//! `fill_time=alloc` clears it.

mod array;
mod attribute;
mod container;
mod cut;
mod dataspace;
mod datatype;
mod errors;
mod format;
mod guarded;
mod library;
mod objects;
mod options;
mod properties;
mod storage;
mod transfer;
mod unions;

#[cfg(test)]
mod tests;

use crate::FormatEntry;

pub use format::Hdf5;
pub use library::library_version;

/// Registry line.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "hdf5",
    about: "HDF5 files through libhdf5, as any program would write them",
    options: options::TABLE,
    build: Some(Hdf5::build),
};

/// The name in stack strings and errors.
const NAME: &str = "hdf5";
