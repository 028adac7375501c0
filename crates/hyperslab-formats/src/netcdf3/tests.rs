//! Headers byte by byte.

mod headers;
mod random;
