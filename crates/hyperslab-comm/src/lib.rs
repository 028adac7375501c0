//! Ranks: one alone ([`Solo`]), threads of this process ([`Threads`]), or processes of an MPI job (`Mpi`, feature `mpi`).
//!
//! A rank that fails, panics, aborts or leaves never keeps the others waiting: they return an error of kind
//! [`Peer`](hyperslab_core::ErrorKind::Peer) from the collective call they are in, and from every later one. In an MPI job
//! the whole job ends instead, with the message of the rank that failed: MPI knows no other way.

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
