//! How formats and layers are tested: an oracle in plain memory, a conformance suite chosen by declared capabilities,
//! random operation sequences compared with the oracle, a format whose n-th call fails, and one whose arrays belong to a
//! thread. A dev-dependency only.

pub mod cases;
pub mod conformance;
pub mod model;
pub mod under_mpi;
pub mod watchdog;

mod fake_processes;
mod faulty;
mod in_memory;
mod memory;
mod oracle_pair;
mod ranks;
mod subject;
mod test_data;
mod thread_bound;

pub use fake_processes::{AsProcesses, OtherProcess};
pub use faulty::{Fault, Faulty};
pub use in_memory::temporary_files_in_memory;
pub use memory::Memory;
pub use oracle_pair::{OraclePair, buffer};
pub use ranks::{Processes, Ranks};
pub use subject::{Overrides, Pair, Subject};
pub use test_data::element;
pub use thread_bound::Pinned;
