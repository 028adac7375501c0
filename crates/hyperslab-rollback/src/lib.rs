//! Rollback journals: a file that is written in place goes back to the state of its last commit after a kill.
//!
//! [`Rollback`] stands before the writes of one open file. Before bytes below the committed end of file are first
//! overwritten it saves them into a journal beside the file; [`Rollback::commit`] empties the journal. After a kill
//! [`roll_back`] puts the saved bytes back and the file has the length and content of its last commit.
//! docs/rollback-format.md describes the journal byte by byte.
//!
//! **Invariant:** nothing here knows libhdf5; of HDF5 files only the superblock is read (`superblock`).

pub mod identity;
mod io;
pub mod journal;
mod recovery;
mod rollback;
mod saved;
mod sighting;
pub mod superblock;

pub use identity::FileIdentity;
pub use recovery::{Pending, Refusal, RollbackOutcome, find_in, mend_end, pending, roll_back};
pub use rollback::{HeldJournals, Rollback, hold_journals};
