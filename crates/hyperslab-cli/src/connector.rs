//! The HDF5 connector seen from outside: where its plugin is, how a program is started under it, and what it did there.
//! docs/connector.md is the user's side of it.

mod advice;
mod child;
mod environment;
mod launch;
mod modes;
mod plugin;
mod statistics;
mod summary;
mod unwritten;

pub use child::Ended;
pub use environment::{Environment, STATS};
pub use launch::{Launched, launch, launch_alone, launch_command, say};
pub use modes::Modes;
pub use plugin::find as find_plugin;
pub use statistics::{Sink, Statistics};
pub use summary::{nothing_seen, summary};
pub use unwritten::exit_code;
