//! Eviction: the CLOCK algorithm with use counts, and a history of rejected keys (ghost entries).
//!
//! * Blocks are in a queue, new ones at its end. When memory is needed, the front block is evicted if it was not used since the
//!   last visit; otherwise its use count (at most [`MOST_USES`]) is decremented and it moves to the end. Using a block moves
//!   nothing, so that threads can do so concurrently.
//! * Keys of rejected blocks are remembered, as many as memory would hold blocks. A full cache admits only such blocks: what is
//!   requested once, as in a scan, evicts nothing.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU8, Ordering};

/// Maximum use count.
const MOST_USES: u8 = 3;
/// Number of stale queue entries that are tolerated.
const UNTIDY: usize = 64;

/// Blocks `V` by key `K`.
#[derive(Debug)]
pub(super) struct EvictionQueue<K, V> {
    blocks: HashMap<K, Entry<V>>,
    /// The queue, with the stamp of each block; an entry whose stamp is not its block's is stale.
    queue: VecDeque<(K, u64)>,
    remembered: HashMap<K, u64>,
    /// Rejected keys, oldest first, with stamps.
    order: VecDeque<(K, u64)>,
    stamp: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    uses: AtomicU8,
    stamp: u64,
}

impl<K, V> Default for EvictionQueue<K, V> {
    fn default() -> Self {
        let (queue, order) = (VecDeque::new(), VecDeque::new());
        Self { blocks: HashMap::new(), queue, remembered: HashMap::new(), order, stamp: 0 }
    }
}

impl<K: Hash + Eq + Copy, V> EvictionQueue<K, V> {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn contains(&self, key: &K) -> bool {
        self.blocks.contains_key(key)
    }

    /// Looks up a block and counts the use.
    pub fn used(&self, key: &K) -> Option<&V> {
        let entry = self.blocks.get(key)?;
        let uses = entry.uses.load(Ordering::Relaxed);
        if uses < MOST_USES {
            // Races may lose a count, which is harmless.
            entry.uses.store(uses + 1, Ordering::Relaxed);
        }
        Some(&entry.value)
    }

    /// Inserts a block at the end of the queue, replacing one with the same key.
    pub fn insert(&mut self, key: K, value: V) {
        self.stamp += 1;
        self.remembered.remove(&key);
        self.blocks.insert(key, Entry { value, uses: AtomicU8::new(0), stamp: self.stamp });
        if self.queue.len() > 2 * self.blocks.len() + UNTIDY {
            let blocks = &self.blocks;
            self.queue.retain(|(key, stamp)| blocks.get(key).is_some_and(|entry| entry.stamp == *stamp));
        }
        self.queue.push_back((key, self.stamp));
    }

    /// Removes a block.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.blocks.remove(key).map(|entry| entry.value)
    }

    /// Evicts the next block for which `may_leave` holds.
    pub fn evict(&mut self, may_leave: impl Fn(&V) -> bool) -> Option<V> {
        // After so many steps every block was visited with a use count of 0.
        let steps = self.queue.len() * (usize::from(MOST_USES) + 1);
        for _ in 0..steps {
            let (key, stamp) = self.queue.pop_front()?;
            let Some(entry) = self.blocks.get_mut(&key).filter(|entry| entry.stamp == stamp) else { continue };
            let uses = entry.uses.get_mut();
            if *uses == 0 && may_leave(&entry.value) {
                return self.remove(&key);
            }
            *uses = uses.saturating_sub(1);
            self.queue.push_back((key, stamp));
        }
        None
    }

    /// Whether the block was recently rejected.
    pub fn is_remembered(&self, key: &K) -> bool {
        self.remembered.contains_key(key)
    }

    /// Remembers a rejected block; keeps the latest `most`.
    pub fn remember(&mut self, key: K, most: usize) {
        self.stamp += 1;
        self.remembered.insert(key, self.stamp);
        self.order.push_back((key, self.stamp));
        while self.remembered.len() > most || self.order.len() > 2 * most + UNTIDY {
            let Some((oldest, stamp)) = self.order.pop_front() else { break };
            if self.remembered.get(&oldest) == Some(&stamp) {
                self.remembered.remove(&oldest);
            }
        }
    }

    /// Removes all blocks for which `stale` holds.
    pub fn remove_where(&mut self, stale: impl Fn(&K) -> bool) {
        self.blocks.retain(|key, _| !stale(key));
    }

    /// Removes everything, including rejected keys.
    pub fn clear(&mut self) {
        *self = Self { stamp: self.stamp, ..Self::default() };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule with lists and nothing else.
    #[derive(Default)]
    struct Naive {
        queue: Vec<(u8, u32, u8)>,
        remembered: Vec<u8>,
    }

    impl Naive {
        fn used(&mut self, key: u8) -> Option<u32> {
            let block = self.queue.iter_mut().find(|block| block.0 == key)?;
            block.2 = (block.2 + 1).min(MOST_USES);
            Some(block.1)
        }

        fn insert(&mut self, key: u8, value: u32) {
            self.remove(key);
            self.remembered.retain(|name| *name != key);
            self.queue.push((key, value, 0));
        }

        fn remove(&mut self, key: u8) -> Option<u32> {
            let at = self.queue.iter().position(|block| block.0 == key)?;
            Some(self.queue.remove(at).1)
        }

        fn remember(&mut self, key: u8, most: usize) {
            self.remembered.retain(|name| *name != key);
            self.remembered.push(key);
            self.remembered.drain(..self.remembered.len().saturating_sub(most));
        }

        fn evict(&mut self, pinned: u32) -> Option<u32> {
            for _ in 0..=usize::from(MOST_USES) {
                for _ in 0..self.queue.len() {
                    let (key, value, uses) = self.queue.remove(0);
                    if uses == 0 && value != pinned {
                        return Some(value);
                    }
                    self.queue.push((key, value, uses.saturating_sub(1)));
                }
            }
            None
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Action {
        Use(u8),
        Insert(u8),
        Remove(u8),
        Evict(u32),
        Remember(u8),
        Clear,
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let key = || 0..24u8;
        let action = prop_oneof![
            8 => key().prop_map(Action::Use),
            4 => key().prop_map(Action::Insert),
            1 => key().prop_map(Action::Remove),
            3 => (0..40u32).prop_map(Action::Evict),
            2 => key().prop_map(Action::Remember),
            1 => Just(Action::Clear),
        ];
        prop::collection::vec(action, 1..400)
    }

    proptest! {
        #[test]
        fn blocks_leave_as_the_rule_says(actions in actions()) {
            let (mut ours, mut naive) = (EvictionQueue::default(), Naive::default());
            for (number, action) in actions.into_iter().enumerate() {
                match action {
                    Action::Use(key) => prop_assert_eq!(ours.used(&key).copied(), naive.used(key)),
                    Action::Insert(key) => {
                        ours.insert(key, number as u32);
                        naive.insert(key, number as u32);
                    }
                    Action::Remove(key) => prop_assert_eq!(ours.remove(&key), naive.remove(key)),
                    Action::Evict(pinned) => {
                        prop_assert_eq!(ours.evict(|value| *value != pinned), naive.evict(pinned));
                    }
                    Action::Remember(key) => {
                        ours.remember(key, 6);
                        naive.remember(key, 6);
                    }
                    Action::Clear => {
                        ours.clear();
                        naive = Naive::default();
                    }
                }
                prop_assert_eq!(ours.len(), naive.queue.len());
                for key in 0..24 {
                    prop_assert_eq!(ours.is_remembered(&key), naive.remembered.contains(&key));
                    prop_assert_eq!(ours.contains(&key), naive.queue.iter().any(|block| block.0 == key));
                }
            }
        }
    }

    #[test]
    fn bookkeeping_is_bounded() {
        let mut blocks = EvictionQueue::default();
        for number in 0..10_000u64 {
            blocks.insert(number % 10, ());
            blocks.remember(number + 100, 20);
            blocks.remember(number % 3 + 50_000, 20);
        }
        assert!(blocks.queue.len() <= 2 * 10 + UNTIDY + 1, "{}", blocks.queue.len());
        assert!(blocks.order.len() <= 2 * 20 + UNTIDY && blocks.remembered.len() <= 20);
        assert!(blocks.is_remembered(&(9_999 + 100)) && !blocks.is_remembered(&100));
    }

    #[test]
    fn what_is_used_outlives_what_is_not() {
        let mut blocks = EvictionQueue::default();
        (0..8u64).for_each(|key| blocks.insert(key, key));
        for round in 8..1000 {
            assert!(blocks.used(&3).is_some(), "round {round}");
            assert_ne!(blocks.evict(|_| true), Some(3));
            blocks.insert(round, round);
        }
        assert_eq!(blocks.evict(|_| false), None, "all are in use");
    }
}
