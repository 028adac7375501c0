//! HDF5 filters: chunks to their stored form and back, in the formats that other programs read.
//!
//! A [`Pipeline`] is made once for an array from the filters that its file states, and then codes chunks on any number
//! of threads, each with its own [`Workspace`]. No I/O, no threads, and nothing of libhdf5 here.

mod bits;
mod bitshuffle;
mod blosc;
mod coders;
mod deflate;
mod errors;
mod filter;
mod fletcher32;
mod lz4;
mod lzf;
mod matches;
mod pipeline;
mod scratch;
mod shuffle;
mod stage;
mod stated;
mod zstandard;

pub use filter::Filter;
pub use pipeline::{Encoded, Pipeline, Workspace};
pub use stated::{BitshuffleCodec, BloscCodec, BloscShuffle, Stated};
