//! The worlds of one run, which fail together.

use crate::rendezvous::Rendezvous;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Why a world can go on no longer.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The rank that gave up.
    pub rank: usize,
    /// What it said.
    pub reason: Arc<str>,
}

/// The world of a run and those split from it. A failure reaches all of them.
#[derive(Debug, Default)]
pub(crate) struct FailureDomain {
    members: Mutex<DomainState>,
    /// Whether `DomainState::dropped` holds anything, so that most meetings need not lock the family.
    any_detached: AtomicBool,
}

#[derive(Debug, Default)]
struct DomainState {
    members: Vec<Weak<Rendezvous>>,
    failure: Option<Failure>,
    /// Ranks that let go of a world, and the world.
    detached: Vec<(usize, Weak<Rendezvous>)>,
}

impl FailureDomain {
    fn lock(&self) -> MutexGuard<'_, DomainState> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a world. Returns the failure that it is born with, if the family has failed already.
    pub fn register(&self, rendezvous: &Arc<Rendezvous>) -> Option<Failure> {
        let mut members = self.lock();
        members.members.retain(|weak| weak.strong_count() > 0);
        members.members.push(Arc::downgrade(rendezvous));
        members.failure.clone()
    }

    /// Fails every world, present and later. The first failure is kept. No lock of a world may be held.
    pub fn fail(&self, failure: Failure) {
        let (failure, members) = {
            let mut members = self.lock();
            (members.failure.get_or_insert(failure).clone(), members.members.clone())
        };
        for rendezvous in members.iter().filter_map(Weak::upgrade) {
            rendezvous.fail(&failure);
        }
    }

    /// Notes that `rank` let go of `rendezvous`. Those who wait there are not told before it is known whether the rank goes
    /// on (see [`FailureDomain::confirm_alive`]), leaves or fails, since that is what they should hear.
    pub fn detach(&self, rank: usize, rendezvous: &Arc<Rendezvous>) {
        let mut members = self.lock();
        members.detached.push((rank, Arc::downgrade(rendezvous)));
        self.any_detached.store(true, Ordering::Release);
    }

    /// Tells those who wait for `rank` in worlds it let go of that it will not come. No lock of a world may be held.
    pub fn confirm_alive(&self, rank: usize) {
        if !self.any_detached.load(Ordering::Acquire) {
            return;
        }
        let mine: Vec<_> = {
            let mut members = self.lock();
            let mine = members.detached.extract_if(.., |(who, _)| *who == rank).collect();
            self.any_detached.store(!members.detached.is_empty(), Ordering::Release);
            mine
        };
        for rendezvous in mine.iter().filter_map(|(_, rendezvous)| rendezvous.upgrade()) {
            rendezvous.leave(rank);
        }
    }

    /// Says in every world that `rank` will come no more. No lock of a world may be held.
    pub fn leave(&self, rank: usize) {
        let members = self.lock().members.clone();
        for rendezvous in members.iter().filter_map(Weak::upgrade) {
            rendezvous.leave(rank);
        }
    }
}
