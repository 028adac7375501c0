//! The worlds of one run, which fail together.

use crate::world::World;
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
pub(crate) struct Family {
    members: Mutex<Members>,
    /// Whether `Members::dropped` holds anything, so that most meetings need not lock the family.
    some_dropped: AtomicBool,
}

#[derive(Debug, Default)]
struct Members {
    worlds: Vec<Weak<World>>,
    failure: Option<Failure>,
    /// Ranks that let go of a world, and the world.
    dropped: Vec<(usize, Weak<World>)>,
}

impl Family {
    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a world. Returns the failure that it is born with, if the family has failed already.
    pub fn adopt(&self, world: &Arc<World>) -> Option<Failure> {
        let mut members = self.lock();
        members.worlds.retain(|weak| weak.strong_count() > 0);
        members.worlds.push(Arc::downgrade(world));
        members.failure.clone()
    }

    /// Fails every world, present and later. The first failure is kept. No lock of a world may be held.
    pub fn fail(&self, failure: Failure) {
        let (failure, worlds) = {
            let mut members = self.lock();
            (members.failure.get_or_insert(failure).clone(), members.worlds.clone())
        };
        for world in worlds.iter().filter_map(Weak::upgrade) {
            world.fail(&failure);
        }
    }

    /// Notes that `rank` let go of `world`. Those who wait there are not told before it is known whether the rank goes
    /// on (see [`Family::goes_on`]), leaves or fails, since that is what they should hear.
    pub fn let_go(&self, rank: usize, world: &Arc<World>) {
        let mut members = self.lock();
        members.dropped.push((rank, Arc::downgrade(world)));
        self.some_dropped.store(true, Ordering::Release);
    }

    /// Tells those who wait for `rank` in worlds it let go of that it will not come. No lock of a world may be held.
    pub fn goes_on(&self, rank: usize) {
        if !self.some_dropped.load(Ordering::Acquire) {
            return;
        }
        let mine: Vec<_> = {
            let mut members = self.lock();
            let mine = members.dropped.extract_if(.., |(who, _)| *who == rank).collect();
            self.some_dropped.store(!members.dropped.is_empty(), Ordering::Release);
            mine
        };
        for world in mine.iter().filter_map(|(_, world)| world.upgrade()) {
            world.leave(rank);
        }
    }

    /// Says in every world that `rank` will come no more. No lock of a world may be held.
    pub fn leave(&self, rank: usize) {
        let worlds = self.lock().worlds.clone();
        for world in worlds.iter().filter_map(Weak::upgrade) {
            world.leave(rank);
        }
    }
}
