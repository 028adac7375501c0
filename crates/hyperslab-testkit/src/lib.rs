//! How formats and layers are tested: an oracle in plain memory, a conformance suite chosen by declared capabilities,
//! and random operation sequences compared with the oracle. A dev-dependency only.

pub mod catalogue;
pub mod conformance;
pub mod model;
pub mod under_mpi;
pub mod watchdog;

mod memory;
mod other_process;
mod ranks;
mod sample;
mod subject;
mod twin;

pub use memory::Memory;
pub use other_process::{AsProcesses, OtherProcess};
pub use ranks::{Processes, Ranks};
pub use sample::element;
pub use subject::{Overrides, Pair, Subject};
pub use twin::{Twin, buffer};
