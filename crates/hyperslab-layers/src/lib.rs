//! Layers: formats that wrap a format. Each is one folder and one line in the registry, and never chooses what it wraps.

mod async_io;
mod background;
mod registry;
mod twophase;

pub use registry::{LayerEntry, layers, wrap};
