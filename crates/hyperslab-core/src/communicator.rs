//! Collective communication between ranks. Implemented by `hyperslab-comm`; every operation maps to MPI.

use crate::{Error, ErrorKind, Result};
use std::fmt::Debug;
use std::sync::Arc;

/// How [`Communicator::all_reduce`] combines values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Sum of all.
    Sum,
    /// Smallest.
    Min,
    /// Largest.
    Max,
}

/// A fixed group of ranks. Every method but `rank`, `size`, `one_process`, `mpi_handle`, `many_threads` and `abort` is
/// collective: all ranks call the same methods in the same order. If a rank aborts, the others get an error of kind `Peer`.
pub trait Communicator: Send + Sync + Debug {
    /// This rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// Whether all ranks are threads of this process.
    fn one_process(&self) -> bool;
    /// The MPI communicator as a Fortran handle (`MPI_Comm_c2f`), for libraries that call MPI themselves. `None` for ranks that
    /// are not MPI processes.
    fn mpi_handle(&self) -> Option<i32> {
        None
    }
    /// Blocks until every rank has called it.
    fn barrier(&self) -> Result<()>;
    /// Copies the root's `data` to every rank.
    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()>;
    /// The bytes of all ranks, in rank order.
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Sends `parts[r]` to rank r; `received[r]` becomes what rank r sent. Both buffers are reused: the contents of `parts` are
    /// unspecified afterwards.
    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()>;
    /// Reduces unsigned integers element by element; every rank gets the result. Sums wrap.
    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()>;
    /// Reduces floats element by element; every rank gets the identical result.
    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()>;
    /// A new communicator of the same ranks, whose collective calls never match those of this one.
    fn duplicate(&self) -> Result<Arc<dyn Communicator>>;
    /// Whether threads of this rank may call different communicators concurrently. Not collective.
    fn many_threads(&self) -> bool {
        true
    }
    /// A new communicator of the ranks on this rank's node, in rank order.
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>>;
    /// Aborts: every current and later collective call of the other ranks fails with kind `Peer` and this reason.
    fn abort(&self, reason: &Error);
}

/// Agrees on success: returns `Ok` on every rank if all ranks succeeded, an error on every rank otherwise.
/// Failed ranks return their own error, the others one of kind `Peer` that quotes the first failure.
pub fn agree<T>(comm: &dyn Communicator, result: Result<T>) -> Result<T> {
    if comm.size() == 1 {
        return result;
    }
    let mine = match &result {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().into_bytes(),
    };
    let all = match (comm.all_gather(&mine), &result) {
        (Ok(all), _) => all,
        (Err(gone), Ok(_)) => return Err(gone),
        // The rank's own error is more specific.
        (Err(_), Err(_)) => return result.map_err(|error| error.rank(comm.rank())),
    };
    let first = all.iter().position(|said| !said.is_empty());
    match (result, first) {
        (Err(error), _) => Err(error.rank(comm.rank())),
        (Ok(value), None) => Ok(value),
        (Ok(_), Some(rank)) => {
            Err(Error::new(ErrorKind::Peer, "agree", String::from_utf8_lossy(&all[rank])).rank(rank))
        }
    }
}
