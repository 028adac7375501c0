//! Selections, runs, chunks and copies against sets of coordinates.

#![allow(clippy::unwrap_used, missing_docs)]

mod chunks;
mod copies;
mod json;
mod oracle;
mod runs;
mod selections;
