//! HDF5 filters: chunks to their stored form and back, in the formats that other programs read.
//!
//! A [`Pipeline`] is made once for an array from the filters that its file states, and then codes chunks on any number
//! of threads, each with its own [`Workspace`]. No I/O, no threads, and nothing of libhdf5 here.

mod bit_transpose;
mod bitshuffle;
mod blosc;
mod codec;
mod codec_contexts;
mod deflate;
mod errors;
mod filter;
mod filter_spec;
mod fletcher32;
mod lz4;
mod lz_matcher;
mod lzf;
mod pipeline;
mod scratch;
mod shuffle;
mod zstandard;

pub use filter::Filter;
pub use filter_spec::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec};
pub use pipeline::{Encoded, Pipeline, Workspace};
