//! Values shared by all ranks that are threads of this process.

use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(crate) type SharedValues = HashMap<u64, Weak<dyn Any + Send + Sync>>;

/// Values that the first rank has published and others have not yet taken.
static WAITING: Mutex<Option<SharedValues>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns on all ranks the value that the first rank makes. Ranks must be threads of one process. Collective.
pub(crate) fn share<T: Any + Send + Sync>(comm: &dyn Communicator, make: impl FnOnce() -> Arc<T>) -> Result<Arc<T>> {
    let first = comm.rank() == 0;
    let mine = first.then(make);
    let mut number = Vec::new();
    if let Some(thing) = &mine {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let thing: Arc<dyn Any + Send + Sync> = thing.clone();
        waiting().get_or_insert_default().insert(next, Arc::downgrade(&thing));
        number = next.to_le_bytes().to_vec();
    }
    let told = comm.broadcast(0, &mut number);
    let number = number.as_slice().try_into().map(u64::from_le_bytes);
    let found = match (mine, number) {
        (Some(thing), _) => Some(thing),
        (None, Ok(number)) => waiting().as_ref().and_then(|all| all.get(&number)?.upgrade()?.downcast().ok()),
        (None, Err(_)) => None,
    };
    // The first rank keeps the value until all ranks have it.
    let met = told.and_then(|()| comm.barrier());
    if let (true, Ok(number), Some(all)) = (first, number, waiting().as_mut()) {
        all.remove(&number);
    }
    met?;
    found.ok_or_else(|| Error::new(ErrorKind::Io, "share", "the ranks are not threads of one process"))
}

/// Lock of the published values.
pub(crate) type SharedValuesGuard = MutexGuard<'static, Option<SharedValues>>;

/// Blocks sharing until the result is dropped.
pub(crate) fn lock_shared_values() -> SharedValuesGuard {
    waiting()
}

fn waiting() -> MutexGuard<'static, Option<SharedValues>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_comm::Threads;

    #[test]
    fn ranks_get_the_same_thing_and_other_groups_another() {
        let shared = |_| Threads::run(3, |comm| share(&*comm, || Arc::new(comm.rank()))).unwrap();
        let groups = [0, 1].map(shared);
        for things in &groups {
            assert!(things.iter().all(|thing| Arc::ptr_eq(thing, &things[0])));
        }
        assert!(!Arc::ptr_eq(&groups[0][0], &groups[1][0]));
    }
}
