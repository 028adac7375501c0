//! One cache for the threads that open a container together for reading.

use super::store::Store;
use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Caches on their way from the first rank to the others.
static WAITING: Mutex<Option<HashMap<u64, Weak<Store>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The same cache on all ranks, which must be threads of this process. Collective.
pub(super) fn share(comm: &dyn Communicator, make: impl FnOnce() -> Arc<Store>) -> Result<Arc<Store>> {
    let first = comm.rank() == 0;
    let mine = first.then(make);
    let mut number = Vec::new();
    if let Some(store) = &mine {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        waiting().get_or_insert_default().insert(next, Arc::downgrade(store));
        number = next.to_le_bytes().to_vec();
    }
    let told = comm.broadcast(0, &mut number);
    let number = number.as_slice().try_into().map(u64::from_le_bytes);
    let found = match (mine, number) {
        (Some(store), _) => Some(store),
        (None, Ok(number)) => waiting().as_ref().and_then(|all| all.get(&number)?.upgrade()),
        (None, Err(_)) => None,
    };
    // The first rank keeps it until everyone has it.
    let met = told.and_then(|()| comm.barrier());
    if let (true, Ok(number), Some(all)) = (first, number, waiting().as_mut()) {
        all.remove(&number);
    }
    met?;
    found.ok_or_else(|| Error::new(ErrorKind::Io, "share cache", "the ranks are not threads of one process"))
}

fn waiting() -> MutexGuard<'static, Option<HashMap<u64, Weak<Store>>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_comm::Threads;

    #[test]
    fn ranks_get_the_same_cache_and_other_groups_another() {
        let shared = |_| Threads::run(3, |comm| share(&*comm, || Store::new(4096, 3))).unwrap();
        let groups = [0, 1].map(shared);
        for stores in &groups {
            assert!(stores.iter().all(|store| Arc::ptr_eq(store, &stores[0])));
        }
        assert!(!Arc::ptr_eq(&groups[0][0], &groups[1][0]));
    }
}
