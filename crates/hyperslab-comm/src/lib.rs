//! Ranks: one alone ([`Solo`]), or threads of this process ([`Threads`]).
//!
//! A rank that fails, panics, aborts or leaves never keeps the others waiting: they return an error of kind
//! [`Peer`](hyperslab_core::ErrorKind::Peer) from the collective call they are in, and from every later one.

mod family;
mod offer;
mod solo;
mod threads;
mod world;

pub use solo::Solo;
pub use threads::Threads;
