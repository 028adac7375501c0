//! Communicators: a single rank ([`Solo`]), threads of this process ([`Threads`]), or processes of an MPI job (`Mpi`, feature
//! `mpi`).
//!
//! Collective calls do not deadlock when a rank fails: if a rank returns an error, panics, aborts or leaves, the others get an
//! error of kind [`Peer`](hyperslab_core::ErrorKind::Peer) from the collective call they are in and from every later one. In an
//! MPI job the whole job is aborted instead, with the message of the rank that failed: MPI offers no other way.

mod contribution;
mod failure_domain;
#[cfg(feature = "mpi")]
mod mpi;
mod rendezvous;
mod solo;
mod threads;

#[cfg(feature = "mpi")]
pub use mpi::{Mpi, MpiJob};
pub use solo::Solo;
pub use threads::Threads;
