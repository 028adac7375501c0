//! Constructors of the errors of this crate.

use crate::codec::Codec;
use hyperslab_core::{Error, ErrorKind};

/// The filter `who` found a stored chunk corrupt.
pub(crate) fn corrupt(who: &'static str, what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "decode chunk", what)
        .backend(who)
        .hint("the file is damaged, or its filters are not those it states; h5dump may tell")
}

/// The filter `who` is supported, but not with these parameters or this content.
pub(crate) fn unsupported(who: &'static str, what: impl Into<String>) -> Error {
    Error::unsupported("set up filters", what).backend(who)
}

/// A mandatory filter cannot represent `len` bytes.
pub(crate) fn inexpressible(codec: &Codec, len: usize) -> Error {
    let what = format!("{len} bytes are too many for the format, or no whole number of elements");
    Error::invalid("encode chunk", what).backend(codec.name()).hint("declare the filter optional, or leave it out")
}

/// The library of the filter `who` failed on valid input.
pub(crate) fn failed(who: &'static str, what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Io, "encode chunk", what).backend(who)
}
