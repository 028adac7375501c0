//! The ranks that share an open file, and which of them make the calls that change it.

use hyperslab_core::{Communicator, Result, agree};
use std::sync::Arc;

/// Which ranks make the libhdf5 calls that change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    /// Ranks are threads that share the file inside libhdf5: the first one calls.
    FirstRank,
    /// Ranks are processes, each with its own libhdf5: all make the same collective call.
    EveryRank,
}

/// The ranks of one file.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    comm: Arc<dyn Communicator>,
    changes: Changes,
}

impl Ranks {
    pub(super) fn new(comm: Arc<dyn Communicator>, changes: Changes) -> Self {
        Self { comm, changes }
    }

    /// Whether the ranks are processes that call libhdf5 collectively.
    pub(super) fn are_processes(&self) -> bool {
        self.changes == Changes::EveryRank
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.comm.size()
    }

    /// Whether this is the first rank.
    pub(super) fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Waits for the others.
    pub(super) fn barrier(&self) -> Result<()> {
        if self.comm.size() > 1 { self.comm.barrier() } else { Ok(()) }
    }

    /// Replaces `data` on every rank by the first rank's.
    pub(super) fn broadcast(&self, data: &mut Vec<u8>) -> Result<()> {
        self.comm.broadcast(0, data)
    }

    /// Everyone's bytes, by rank.
    pub(super) fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.comm.all_gather(mine)
    }

    /// Success if every rank has it.
    pub(super) fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        agree(&*self.comm, mine)
    }

    /// A change of the file. `checked` is what this rank found out before: nobody calls `body`, which may wait for
    /// the same call of the others, unless all ranks may. `None` where another rank made the change.
    pub(super) fn change<T>(&self, checked: Result<()>, body: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let mine = match self.changes {
            Changes::FirstRank if !self.is_first() => checked.map(|()| None),
            Changes::FirstRank => checked.and_then(|()| body().map(Some)),
            Changes::EveryRank => {
                self.agree(checked)?;
                body().map(Some)
            }
        };
        self.agree(mine)
    }

    /// Runs `body` on every rank, collectively if ranks are processes, such as to open the file.
    pub(super) fn everyone<T>(&self, checked: Result<()>, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let mine = match self.changes {
            Changes::FirstRank => checked.and_then(|()| body()),
            Changes::EveryRank => {
                self.agree(checked)?;
                body()
            }
        };
        self.agree(mine)
    }
}
