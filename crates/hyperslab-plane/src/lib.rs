//! The HDF5 data plane: elements between memory and a file whose layout is known.
//!
//! A [`Plane`] moves the elements of one array by positioned I/O and codes its chunks on several threads. The library
//! that owns the file's metadata stays in charge of it: the plane asks it where chunks lie and hands it new ones, through
//! the trait [`Control`], from the calling thread only. What the plane does not cover it refuses ([`Refusal`]), and the
//! library does it, inside [`Plane::aside`]. It knows nothing of who that library is, nor of formats and connectors.
//!
//! Memory: decoded chunks up to [`Limits::cache`] (changed ones wait there until they are stored), one chunk decoded and
//! two coded for every thread of a call, and 32 bytes for every chunk of an array (of arrays with more than a million
//! chunks only for those that exist).

mod cache;
mod claims;
mod coded;
mod contiguous;
mod control;
mod convert;
mod copies;
mod explain;
mod file;
mod grouping;
mod guard;
mod index;
mod memory;
mod plain;
mod plain_chunks;
mod plane;
mod refusal;
mod workers;

pub use control::{Control, Place};
pub use convert::Conversion;
pub use copies::Copies;
pub use explain::Explanation;
pub use guard::WriteGuard;
pub use hyperslab_filters::FilterSpec;
pub use plane::{CACHE_BYTES, Facts, Layout, Limits, Plane, Touched};
pub use refusal::Refusal;
pub use workers::begin_anew_after_fork;
