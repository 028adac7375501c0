//! HDF5 chunk filters: encoding and decoding, compatible with the filters of other programs.
//!
//! A [`Pipeline`] is built once per array from the [`FilterSpec`]s in its file, and then encodes and decodes chunks on any number
//! of threads, each with its own [`Workspace`]. No I/O, no threads, no libhdf5.

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
