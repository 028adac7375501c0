//! One thing for all ranks that are threads of this process.

use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(crate) type SharedValues = HashMap<u64, Weak<dyn Any + Send + Sync>>;

/// On their way from the first rank to the others.
static WAITING: Mutex<Option<SharedValues>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What the first rank made, on all ranks, which must be threads of this process. Collective.
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
    // The first rank keeps it until everyone has it.
    let met = told.and_then(|()| comm.barrier());
    if let (true, Ok(number), Some(all)) = (first, number, waiting().as_mut()) {
        all.remove(&number);
    }
    met?;
    found.ok_or_else(|| Error::new(ErrorKind::Io, "share", "the ranks are not threads of one process"))
}

/// The lock of what is on its way.
pub(crate) type SharedValuesGuard = MutexGuard<'static, Option<SharedValues>>;

/// Has nothing shared until the result is dropped.
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
