//! The rendezvous of in-process ranks: a reusable barrier through which every collective call exchanges its data.

use crate::contribution::{Contribution, Operation, Outcome, combine};
use crate::failure_domain::{Failure, FailureDomain};
use hyperslab_core::{Error, ErrorKind, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The synchronisation point of one communicator. Each collective call is one round.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    pub size: usize,
    pub domain: Arc<FailureDomain>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A round completes when the last rank arrives; `generation` counts completed rounds.
///
/// The outcome of a round is kept until every rank has taken its part of it. The next round cannot overwrite it: it completes
/// only when all ranks have arrived, and a rank arrives only after it has taken its part of the round before.
#[derive(Debug)]
struct State {
    generation: u64,
    arrived: usize,
    /// The operation of this round and the rank that arrived first.
    operation: Option<(Operation, usize)>,
    contributions: Vec<Contribution>,
    outcome: Outcome,
    taken: usize,
    failure: Option<Failure>,
    /// A rank that will not arrive any more.
    left: Option<usize>,
}

impl Rendezvous {
    /// A rendezvous of `size` ranks, registered with `domain`; already failed if the domain is.
    pub fn new(size: usize, domain: &Arc<FailureDomain>) -> Arc<Self> {
        let state = State {
            generation: 0,
            arrived: 0,
            operation: None,
            contributions: (0..size).map(|_| Contribution::Nothing).collect(),
            outcome: Outcome::Nothing,
            taken: 0,
            failure: None,
            left: None,
        };
        let rendezvous =
            Arc::new(Self { size, domain: domain.clone(), state: Mutex::new(state), changed: Condvar::new() });
        if let Some(failure) = domain.register(&rendezvous) {
            rendezvous.fail(&failure);
        }
        rendezvous
    }

    /// Ignores poisoning: no code panics under this lock, and failed ranks are recorded in `failure`.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails the current round and every later one.
    pub fn fail(&self, failure: &Failure) {
        self.lock().failure.get_or_insert_with(|| failure.clone());
        self.changed.notify_all();
    }

    /// Records that `rank` will not arrive any more: ranks that wait for it, now or later, get an error of kind `Peer`.
    pub fn leave(&self, rank: usize) {
        self.lock().left.get_or_insert(rank);
        self.changed.notify_all();
    }

    /// One collective call: adds `contribution`, blocks until all ranks have arrived, then runs `take` on the outcome.
    /// Returns an error instead of blocking for ever when a rank fails, leaves or calls another operation.
    pub fn exchange<T>(
        &self,
        rank: usize,
        operation: Operation,
        contribution: Contribution,
        take: impl FnOnce(&mut Outcome) -> T,
    ) -> Result<T> {
        self.domain.confirm_alive(rank);
        let mut state = self.lock();
        state.check(operation)?;
        let (first, first_rank) = *state.operation.get_or_insert((operation, rank));
        if first != operation {
            drop(state);
            return Err(self.mismatch(rank, operation, first, first_rank));
        }
        state.contributions[rank] = contribution;
        state.arrived += 1;
        if state.arrived == self.size {
            state.outcome = match operation {
                Operation::SplitByNode => Outcome::Rendezvous(Self::new(self.size, &self.domain)),
                _ => combine(operation, &mut state.contributions),
            };
            state.generation += 1;
            state.arrived = 0;
            state.taken = 0;
            state.operation = None;
            self.changed.notify_all();
        } else {
            let mine = state.generation;
            while state.generation == mine {
                state.check(operation)?;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let refused = match &state.outcome {
            Outcome::Refused(who, message) => Some((*who, message.clone())),
            _ => None,
        };
        let taken = take(&mut state.outcome);
        state.taken += 1;
        if state.taken == self.size {
            state.outcome = Outcome::Nothing;
        }
        drop(state);
        match refused {
            None => Ok(taken),
            Some((Some(other), message)) if other != rank => {
                Err(Error::new(ErrorKind::Peer, operation.words(), &*message).rank(other))
            }
            Some((_, message)) => Err(Error::invalid(operation.words(), &*message).rank(rank)),
        }
    }

    fn mismatch(&self, rank: usize, mine: Operation, first: Operation, first_rank: usize) -> Error {
        let message = format!(
            "the ranks call different collectives: rank {first_rank} is in {}, rank {rank} in {}",
            first.words(),
            mine.words()
        );
        self.domain.fail(Failure { rank, reason: message.as_str().into() });
        Error::invalid(mine.words(), message).rank(rank).hint("every rank must make the same calls in the same order")
    }
}

impl State {
    fn check(&self, operation: Operation) -> Result<()> {
        if let Some(Failure { rank, reason }) = &self.failure {
            return Err(Error::new(ErrorKind::Peer, operation.words(), &**reason).rank(*rank));
        }
        if let Some(rank) = self.left {
            let message = format!("rank {rank} has finished");
            return Err(Error::new(ErrorKind::Peer, operation.words(), message).rank(rank));
        }
        Ok(())
    }
}
