//! Cache of decoded chunks, clean and dirty.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// LRU cache of decoded chunks. Clean chunks never exceed the limit; dirty ones may, until they are written back.
#[derive(Debug)]
pub(crate) struct Cache {
    limit: u64,
    held: u64,
    chunks: HashMap<u64, Entry>,
    /// Dirty chunks that are checked out for another change.
    checked_out: BTreeSet<u64>,
    /// Chunk by time of last use, for eviction.
    used: BTreeMap<u64, u64>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    data: Arc<Vec<u8>>,
    changed: bool,
    last_use: u64,
}

impl Cache {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, held: 0, chunks: HashMap::new(), checked_out: BTreeSet::new(), used: BTreeMap::new(), clock: 0 }
    }

    /// A cached chunk; marks it as recently used.
    pub(crate) fn get(&mut self, chunk: u64) -> Option<Arc<Vec<u8>>> {
        let entry = self.chunks.get_mut(&chunk)?;
        self.clock += 1;
        self.used.remove(&entry.last_use);
        self.used.insert(self.clock, chunk);
        entry.last_use = self.clock;
        Some(entry.data.clone())
    }

    /// Inserts a clean chunk, evicting older clean ones; does nothing if dirty chunks leave no room.
    pub(crate) fn insert_clean(&mut self, chunk: u64, data: Arc<Vec<u8>>) {
        if self.chunks.contains_key(&chunk) {
            return;
        }
        let bytes = data.len() as u64;
        while self.held + bytes > self.limit {
            let Some(&old) = self.used.values().find(|old| self.chunks.get(old).is_some_and(|e| !e.changed)) else {
                return;
            };
            self.take(old);
        }
        self.put(chunk, data, false);
    }

    /// Inserts a dirty chunk, whatever the limit.
    pub(crate) fn insert_dirty(&mut self, chunk: u64, data: Vec<u8>) {
        self.put(chunk, Arc::new(data), true);
    }

    fn put(&mut self, chunk: u64, data: Arc<Vec<u8>>, changed: bool) {
        let changed = self.take(chunk).is_some_and(|(_, changed)| changed) || changed;
        self.checked_out.remove(&chunk);
        self.clock += 1;
        self.held += data.len() as u64;
        self.used.insert(self.clock, chunk);
        self.chunks.insert(chunk, Entry { data, changed, last_use: self.clock });
    }

    /// Removes a chunk; with whether it is dirty.
    pub(crate) fn take(&mut self, chunk: u64) -> Option<(Arc<Vec<u8>>, bool)> {
        let entry = self.chunks.remove(&chunk)?;
        self.used.remove(&entry.last_use);
        self.held -= entry.data.len() as u64;
        Some((entry.data, entry.changed))
    }

    /// Removes a chunk to be changed: it must be inserted again as dirty, and stays listed as dirty if it was.
    pub(crate) fn check_out(&mut self, chunk: u64) -> Option<Arc<Vec<u8>>> {
        let (data, changed) = self.take(chunk)?;
        if changed {
            self.checked_out.insert(chunk);
        }
        Some(data)
    }

    /// Evicts clean chunks in LRU order until at most `limit` bytes are cached (capped by the cache's own limit). Stops
    /// at the first dirty chunk and returns it: it must be written back first.
    pub(crate) fn evict_to(&mut self, limit: u64) -> Option<u64> {
        let limit = limit.min(self.limit);
        while self.held > limit {
            let &oldest = self.used.values().next()?;
            if self.chunks.get(&oldest).is_some_and(|entry| entry.changed) {
                return Some(oldest);
            }
            self.take(oldest);
        }
        None
    }

    /// All dirty chunks, including those checked out: whoever locks one finds it in the cache again.
    pub(crate) fn dirty(&self) -> Vec<u64> {
        let here = self.used.values().copied().filter(|chunk| self.chunks.get(chunk).is_some_and(|e| e.changed));
        here.chain(self.checked_out.iter().copied()).collect()
    }

    /// Drops all clean chunks.
    pub(crate) fn drop_clean(&mut self) {
        let unchanged: Vec<u64> =
            self.chunks.iter().filter(|(_, entry)| !entry.changed).map(|(&chunk, _)| chunk).collect();
        unchanged.into_iter().for_each(|chunk| {
            self.take(chunk);
        });
    }

    /// The limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_ones_go_first_and_changed_ones_wait() {
        let mut cache = Cache::new(30);
        cache.insert_dirty(1, vec![1; 10]);
        cache.insert_clean(2, Arc::new(vec![2; 10]));
        cache.insert_clean(3, Arc::new(vec![3; 10]));
        assert!(cache.get(2).is_some());
        cache.insert_clean(4, Arc::new(vec![4; 10]));
        assert!(cache.get(3).is_none() && cache.get(2).is_some() && cache.get(1).is_some());
        assert_eq!((cache.evict_to(30), cache.evict_to(20)), (None, None)); // 4 and 2 were droppable
        cache.insert_dirty(5, vec![5; 30]);
        assert_eq!(cache.evict_to(30), Some(1));
        assert_eq!(cache.take(1).map(|(data, changed)| (data[0], changed)), Some((1, true)));
        assert_eq!((cache.evict_to(30), cache.dirty()), (None, vec![5]));
        cache.insert_clean(6, Arc::new(vec![6; 10]));
        assert!(cache.get(6).is_none());
        assert!(cache.check_out(5).is_some() && cache.get(5).is_none());
        assert_eq!(cache.dirty(), [5]);
        cache.insert_dirty(5, vec![7; 30]);
        assert_eq!((cache.dirty(), cache.held), (vec![5], 30));
    }
}
