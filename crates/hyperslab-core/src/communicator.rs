//! What ranks say to each other. Implemented by `hyperslab-comm`; shaped so that MPI can fulfil it.

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
/// collective: each rank calls the same methods in the same order, and returns an error of kind `Peer` when another rank has given up.
pub trait Communicator: Send + Sync + Debug {
    /// This rank, from 0.
    fn rank(&self) -> usize;
    /// How many ranks there are.
    fn size(&self) -> usize;
    /// Whether all ranks are threads of this process.
    fn one_process(&self) -> bool;
    /// The group as MPI knows it, for libraries that use MPI themselves: the number that Fortran programs use, which
    /// every MPI library can turn into its own handle. `None` for ranks that are no MPI processes.
    fn mpi_handle(&self) -> Option<i32> {
        None
    }
    /// Returns when every rank has called it.
    fn barrier(&self) -> Result<()>;
    /// Replaces `data` on every rank by the root's.
    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()>;
    /// Everyone's bytes, by rank.
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// `parts[r]` goes to rank r; `received` becomes what came from each rank. Memory of both is used again: afterwards
    /// the contents of `parts` mean nothing.
    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()>;
    /// Combines unsigned integers element by element; every rank gets the result. Sums wrap.
    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()>;
    /// Combines floats element by element; every rank gets the same result.
    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()>;
    /// The same ranks as a group of their own, whose collective calls never mix with those of this one.
    fn duplicate(&self) -> Result<Arc<dyn Communicator>>;
    /// Whether several threads of this rank may make calls of different groups at the same time. Not collective.
    fn many_threads(&self) -> bool {
        true
    }
    /// The ranks that share this rank's memory, as a group of their own, in rank order.
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>>;
    /// Gives up: every present and later collective call of the other ranks fails with kind `Peer` and this reason.
    fn abort(&self, reason: &Error);
}

/// Makes success collective: returns the value where every rank succeeded, an error everywhere otherwise.
/// The failing ranks return their own error, the others one of kind `Peer` that quotes the first failure.
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
        // Its own error says more.
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
