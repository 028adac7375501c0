//! Headers byte by byte, and files.

mod files;
mod headers;
mod random;
