//! Rollback journals: a file that is written in place goes back to the state of its last commit after a kill.

pub mod identity;

pub use identity::FileIdentity;
