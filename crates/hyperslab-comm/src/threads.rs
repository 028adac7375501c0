//! Ranks as threads of this process.

use crate::contribution::{Contribution, Operation, Outcome};
use crate::failure_domain::{Failure, FailureDomain};
use crate::rendezvous::Rendezvous;
use hyperslab_core::{Communicator, Error, ErrorKind, Reduce, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One of several ranks that are threads of this process. Made by [`Threads::run`].
///
/// Dropping a rank's last handle detaches it from this communicator: ranks blocked on it in a collective call get an error of
/// kind `Peer` as soon as it makes a collective call elsewhere or returns.
#[derive(Debug)]
pub struct Threads {
    rendezvous: Arc<Rendezvous>,
    rank: usize,
}

impl Threads {
    /// Runs `body` once per rank, each on a thread of its own named `rank N`, and returns the results by rank.
    ///
    /// If ranks fail, returns the root cause: the error of the lowest rank whose kind is not `Peer`. A panic becomes an error
    /// with the panic's message. A rank that fails, or returns while others block on it, fails their collective calls:
    /// no rank blocks for ever.
    pub fn run<T, F>(size: usize, body: F) -> Result<Vec<T>>
    where
        T: Send,
        F: Fn(Arc<dyn Communicator>) -> Result<T> + Sync,
    {
        if size == 0 {
            return Err(Error::invalid("run ranks", "there must be at least one rank"));
        }
        let mut values = Vec::with_capacity(size);
        let mut failure: Option<Error> = None;
        for result in Self::run_each(size, body) {
            match result {
                Ok(value) => values.push(value),
                Err(error) => match &failure {
                    Some(first) if first.kind() != ErrorKind::Peer || error.kind() == ErrorKind::Peer => {}
                    _ => failure = Some(error),
                },
            }
        }
        failure.map_or(Ok(values), Err)
    }

    /// Like [`Threads::run`], but returns what each rank itself returned. No ranks give no results.
    pub fn run_each<T, F>(size: usize, body: F) -> Vec<Result<T>>
    where
        T: Send,
        F: Fn(Arc<dyn Communicator>) -> Result<T> + Sync,
    {
        let domain = Arc::new(FailureDomain::default());
        let rendezvous = Rendezvous::new(size, &domain);
        let body = &body;
        std::thread::scope(|scope| {
            let start = |rank: usize| {
                let comm = Arc::new(Self { rendezvous: rendezvous.clone(), rank });
                let domain = domain.clone();
                let spawned = std::thread::Builder::new()
                    .name(format!("rank {rank}"))
                    .spawn_scoped(scope, move || run_rank(rank, comm, &domain, body));
                spawned.map_err(|cause| {
                    let error = Error::io("start rank", cause).rank(rank).hint("use fewer ranks");
                    rendezvous.domain.fail(Failure { rank, reason: error.to_string().into() });
                    error
                })
            };
            let threads: Vec<_> = (0..size).map(start).collect();
            let finish = |(rank, thread): (usize, Result<std::thread::ScopedJoinHandle<'_, Result<T>>>)| {
                thread?.join().unwrap_or_else(|panic| Err(panicked(rank, &*panic)))
            };
            threads.into_iter().enumerate().map(finish).collect()
        })
    }
}

fn run_rank<T>(
    rank: usize,
    comm: Arc<Threads>,
    domain: &FailureDomain,
    body: &(impl Fn(Arc<dyn Communicator>) -> Result<T> + Sync),
) -> Result<T> {
    let result = catch_unwind(AssertUnwindSafe(|| body(comm)))
        .unwrap_or_else(|panic| Err(panicked(rank, &*panic)))
        .map_err(|error| error.rank(rank));
    match &result {
        Ok(_) => domain.leave(rank),
        Err(error) => domain.fail(Failure { rank, reason: error.to_string().into() }),
    }
    result
}

fn panicked(rank: usize, panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::new(ErrorKind::Io, "run rank", format!("panicked: {text}")).rank(rank)
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.rendezvous.domain.detach(self.rank, &self.rendezvous);
    }
}

impl Threads {
    fn exchange<T>(
        &self,
        operation: Operation,
        contribution: Contribution,
        take: impl FnOnce(&mut Outcome) -> T,
    ) -> Result<T> {
        self.rendezvous.exchange(self.rank, operation, contribution, take)
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.rendezvous.size
    }

    fn one_process(&self) -> bool {
        true
    }

    fn barrier(&self) -> Result<()> {
        self.exchange(Operation::Barrier, Contribution::Nothing, |_| ())
    }

    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        let contribution = if root >= self.size() {
            Contribution::Refused(format!("the root is rank {root}, there are {} ranks", self.size()))
        } else {
            Contribution::Root(root, (root == self.rank).then(|| Arc::new(data.clone())))
        };
        let bytes = self.exchange(Operation::Broadcast, contribution, |outcome| match outcome {
            Outcome::Bytes(bytes) => bytes.clone(),
            _ => Arc::default(),
        })?;
        if root != self.rank {
            *data = Arc::unwrap_or_clone(bytes);
        }
        Ok(())
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let contribution = Contribution::Bytes(Arc::new(mine.to_vec()));
        let all = self.exchange(Operation::AllGather, contribution, |outcome| match outcome {
            Outcome::Everyones(all) => all.clone(),
            _ => Vec::new(),
        })?;
        // Copied outside the lock; the last rank to get here moves instead of copying.
        Ok(all.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        let contribution = if parts.len() == self.size() {
            Contribution::Parts(std::mem::take(parts))
        } else {
            Contribution::Refused(format!("{} parts for {} ranks", parts.len(), self.size()))
        };
        let came = self.exchange(Operation::AllToAll, contribution, |outcome| match outcome {
            Outcome::Parts(parts) => parts.iter_mut().map(|from| std::mem::take(&mut from[self.rank])).collect(),
            _ => Vec::new(),
        });
        // Messages are moved, not copied; the buffers received before are reused for the next ones.
        *parts = std::mem::take(received);
        parts.resize_with(self.size(), Vec::new);
        *received = came?;
        Ok(())
    }

    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()> {
        let contribution = Contribution::Integers(values.to_vec());
        let total = self.exchange(Operation::AllReduce(how), contribution, |outcome| match outcome {
            Outcome::Integers(total) => Some(total.clone()),
            _ => None,
        })?;
        if let Some(total) = total {
            values.copy_from_slice(&total);
        }
        Ok(())
    }

    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()> {
        let contribution = Contribution::Floats(values.to_vec());
        let total = self.exchange(Operation::AllReduceFloat(how), contribution, |outcome| match outcome {
            Outcome::Floats(total) => Some(total.clone()),
            _ => None,
        })?;
        if let Some(total) = total {
            values.copy_from_slice(&total);
        }
        Ok(())
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        self.split_by_node()
    }

    /// All thread ranks share a node: a group of the same ranks, with collective calls of its own.
    /// It fails together with this one.
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        let rendezvous = self.exchange(Operation::SplitByNode, Contribution::Nothing, |outcome| match outcome {
            Outcome::Rendezvous(rendezvous) => Some(rendezvous.clone()),
            _ => None,
        })?;
        // The outcome of a successful split always is a rendezvous.
        let rendezvous = rendezvous.ok_or_else(|| Error::new(ErrorKind::Peer, "split by node", "no group was made"))?;
        Ok(Arc::new(Self { rendezvous, rank: self.rank }))
    }

    fn abort(&self, reason: &Error) {
        self.rendezvous.domain.fail(Failure { rank: self.rank, reason: reason.to_string().into() });
    }
}
