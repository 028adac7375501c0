//! Layers: formats that wrap a format. Each is one folder and one line in the registry, and never chooses what it wraps.

mod async_io;
mod background;
mod order_rules;
mod registry;
mod slow;
mod trace;
mod twophase;

pub use order_rules::check_order;
pub use registry::{LayerEntry, layers, wrap};
pub use trace::{TraceParts, trace_parts};
