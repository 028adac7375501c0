//! Layers: formats that wrap a format. Each is one folder and one line in the registry, and never chooses what it wraps.

mod async_io;
mod auto;
mod background;
mod blocks;
mod cache;
mod images;
#[doc(hidden)]
pub mod journal;
mod known;
#[doc(hidden)]
pub mod log;
mod loglayout;
mod order_rules;
mod pairing;
mod pieces;
pub mod recover;
mod registry;
mod share;
mod slow;
mod spans;
mod trace;
mod twophase;

pub use blocks::Blocks;
#[doc(hidden)]
pub use loglayout::fuzzing as loglayout_fuzzing;
pub use loglayout::is_log_layout;
pub use order_rules::check_order;
pub use registry::{LayerEntry, Wrap, build, layers};
pub use trace::{TraceParts, trace_parts};
