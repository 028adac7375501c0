//! How formats and layers are tested: an oracle in plain memory, a conformance suite chosen by declared capabilities,
//! random operation sequences compared with the oracle, a format whose n-th call fails, and one whose arrays belong to a
//! thread. A dev-dependency only.

pub mod catalogue;
pub mod conformance;
pub mod model;
pub mod under_mpi;
pub mod watchdog;

mod faulty;
mod in_memory;
mod memory;
mod other_process;
mod pinned;
mod ranks;
mod sample;
mod subject;
mod twin;

pub use faulty::{Fault, Faulty};
pub use in_memory::temporary_files_in_memory;
pub use memory::Memory;
pub use other_process::{AsProcesses, OtherProcess};
pub use pinned::Pinned;
pub use ranks::{Processes, Ranks};
pub use sample::element;
pub use subject::{Overrides, Pair, Subject};
pub use twin::{Twin, buffer};
