//! The rendezvous objects of one run, which fail together.

use crate::rendezvous::Rendezvous;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Why every collective call fails from now on.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The rank that failed first.
    pub rank: usize,
    /// Its error message.
    pub reason: Arc<str>,
}

/// The communicator of a run and all that were split from it. A failure on any of them fails collective calls on all.
///
/// Lock order: a rendezvous is never locked while its domain calls it, so none of these methods may be called under the lock
/// of a rendezvous.
#[derive(Debug, Default)]
pub(crate) struct FailureDomain {
    state: Mutex<DomainState>,
    /// Whether [`DomainState::detached`] is not empty, so that most collective calls need not lock the domain.
    any_detached: AtomicBool,
}

#[derive(Debug, Default)]
struct DomainState {
    members: Vec<Weak<Rendezvous>>,
    failure: Option<Failure>,
    /// Ranks that dropped their last handle of a communicator, with its rendezvous, until their fate is known.
    detached: Vec<(usize, Weak<Rendezvous>)>,
}

impl FailureDomain {
    fn lock(&self) -> MutexGuard<'_, DomainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a member. Returns the domain's failure if it has failed already; the new member then has to fail with it.
    pub fn register(&self, member: &Arc<Rendezvous>) -> Option<Failure> {
        let mut state = self.lock();
        state.members.retain(|weak| weak.strong_count() > 0);
        state.members.push(Arc::downgrade(member));
        state.failure.clone()
    }

    /// Fails every member, present and later. The first failure is kept.
    pub fn fail(&self, failure: Failure) {
        let (failure, members) = {
            let mut state = self.lock();
            (state.failure.get_or_insert(failure).clone(), state.members.clone())
        };
        for member in members.iter().filter_map(Weak::upgrade) {
            member.fail(&failure);
        }
    }

    /// Records that `rank` dropped its communicator. Ranks blocked on it there are not woken yet: the error they get depends
    /// on whether the rank goes on ([`Self::confirm_alive`]), returns ([`Self::leave`]) or fails ([`Self::fail`]).
    pub fn detach(&self, rank: usize, member: &Arc<Rendezvous>) {
        let mut state = self.lock();
        state.detached.push((rank, Arc::downgrade(member)));
        self.any_detached.store(true, Ordering::Release);
    }

    /// Called when `rank` makes another collective call: it has not failed, so ranks blocked on it in members that it
    /// detached from are woken with the error that it left.
    pub fn confirm_alive(&self, rank: usize) {
        if !self.any_detached.load(Ordering::Acquire) {
            return;
        }
        let mine: Vec<_> = {
            let mut state = self.lock();
            let mine = state.detached.extract_if(.., |(who, _)| *who == rank).collect();
            self.any_detached.store(!state.detached.is_empty(), Ordering::Release);
            mine
        };
        for member in mine.iter().filter_map(|(_, member)| member.upgrade()) {
            member.leave(rank);
        }
    }

    /// Removes `rank` from every member: collective calls that need it fail from now on.
    pub fn leave(&self, rank: usize) {
        let members = self.lock().members.clone();
        for member in members.iter().filter_map(Weak::upgrade) {
            member.leave(rank);
        }
    }
}
