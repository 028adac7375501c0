//! The blocks that are in memory, those being read, and what may become one.

use super::array_state::{ArrayState, ArrayStates};
use super::block::{Block, Budget, Charge};
use super::eviction::EvictionQueue;
use super::geometry::Geometry;
use crate::array_key::ArrayKey;
use hyperslab_core::{ArraySpec, Result, Selection};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How many blocks that were not kept are remembered by name, at least and at most.
const LEAST_NAMES: u64 = 8;
const MOST_NAMES: u64 = 1 << 20;

/// The share of memory that is not for blocks, as a divisor.
const BESIDE: u64 = 8;

/// A block of an array: the geometry and the block's number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    pub geometry: u64,
    pub block: u64,
}

/// How a missing block that is asked for is treated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    /// So much of it is wanted that it is kept if there is room.
    pub worth: bool,
    /// The block is kept at the cost of others, if it was asked for before.
    pub may_evict: bool,
    /// What it counts for.
    pub charge: u64,
}

/// The cache of one container.
#[derive(Debug)]
pub(super) struct BlockCache {
    /// For blocks.
    budget: Arc<Budget>,
    /// For buffers and plans of reads under way.
    beside: Arc<Budget>,
    state: RwLock<State>,
    tickets: AtomicU64,
    names: ArrayStates,
    /// Ranks that have not closed the container.
    users: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    blocks: EvictionQueue<BlockKey, Arc<Block>>,
    /// Blocks under way, and whose ticket it is. What makes such a block stale takes it out, and the ticket is void.
    under_way: HashMap<BlockKey, u64>,
}

impl BlockCache {
    /// A cache of `memory` bytes for each of so many ranks.
    pub fn new(memory: u64, users: u64) -> Arc<Self> {
        let memory = memory.saturating_mul(users);
        let beside = memory / BESIDE;
        Arc::new(Self {
            budget: Budget::new(memory - beside),
            beside: Budget::new(beside),
            state: RwLock::default(),
            tickets: AtomicU64::new(0),
            names: ArrayStates::default(),
            users: AtomicU64::new(users),
        })
    }

    /// A rank closes the container; with the last one all is dropped.
    pub fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.clear();
        }
    }

    /// The bytes of blocks.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The bytes beside blocks, for the time of a read.
    pub fn beside(&self) -> &Arc<Budget> {
        &self.beside
    }

    /// What is known of an array. `make` tells how it is cut into blocks, given a new number.
    pub fn named(
        &self,
        known: &ArrayKey,
        spec: &ArraySpec,
        make: impl FnOnce(u64) -> Result<Option<Geometry>>,
    ) -> Result<Arc<ArrayState>> {
        self.names.get(known, spec, || make(self.number()))
    }

    /// A number that was not used before.
    pub fn number(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// A block that is in memory.
    pub fn block(&self, key: BlockKey) -> Option<Arc<Block>> {
        self.look().blocks.used(&key).cloned()
    }

    pub fn contains(&self, key: BlockKey) -> bool {
        self.look().blocks.contains(&key)
    }

    /// Whether all blocks around the selection are there.
    pub fn contains_all(&self, geometry: &Geometry, selection: &Selection) -> bool {
        let state = self.look();
        let there =
            |block: &[u64]| state.blocks.contains(&BlockKey { geometry: geometry.id, block: geometry.number(block) });
        selection.slabs().iter().all(|slab| geometry.range(slab).is_some_and(|range| range.all(there)))
    }

    /// A missing block is asked for. Returns the right to bring it, or `None` if it is not to be kept; that is remembered.
    pub fn ask(self: &Arc<Self>, key: BlockKey, asked: Admission) -> Option<LoadTicket> {
        let mut state = self.change();
        if state.under_way.contains_key(&key) || state.blocks.contains(&key) {
            return None;
        }
        let before = state.blocks.is_remembered(&key);
        let mut charge = if before || asked.worth { self.budget.take(asked.charge) } else { None };
        if charge.is_none() && before && asked.may_evict {
            charge = self.evict(&mut state, asked.charge);
        }
        let Some(charge) = charge else {
            if asked.may_evict {
                // As many names as there may be blocks.
                let most = (self.budget.limit / asked.charge.max(1)).clamp(LEAST_NAMES, MOST_NAMES);
                state.blocks.remember(key, most as usize);
            }
            return None;
        };
        let number = self.number();
        state.under_way.insert(key, number);
        Some(LoadTicket { store: self.clone(), key, number, charge: Some(charge) })
    }

    /// Whether [`BlockCache::ask`] would give a ticket; for hints, since it may change at once.
    pub fn would_admit(&self, key: BlockKey, asked: Admission) -> bool {
        let state = self.look();
        let before = state.blocks.is_remembered(&key);
        before && asked.may_evict || (before || asked.worth) && self.budget.has_room(asked.charge)
    }

    /// Room at the cost of blocks that nobody copies from.
    fn evict(&self, state: &mut State, bytes: u64) -> Option<Charge> {
        loop {
            let block = state.blocks.evict(|block| Arc::strong_count(block) == 1)?;
            drop(block);
            if let Some(charge) = self.budget.take(bytes) {
                return Some(charge);
            }
        }
    }

    /// Drops the blocks that elements of a selection are in, and lets no block under way become one. Blocks between those
    /// of a selection with gaps may be dropped too.
    pub fn forget(&self, geometry: &Geometry, selection: &Selection) {
        if self.is_empty() {
            return;
        }
        let mut state = self.change();
        for slab in selection.slabs() {
            let Some(range) = geometry.range(slab) else { continue };
            if range.len() <= (state.blocks.len() + state.under_way.len()) as u64 {
                range.for_each(|block| {
                    state.remove(&BlockKey { geometry: geometry.id, block: geometry.number(block) });
                });
            } else {
                let inside = |key: &BlockKey| {
                    let place = geometry.grid.coordinates(key.block);
                    key.geometry == geometry.id && place.is_ok_and(|block| range.contains(&block))
                };
                state.remove_where(inside);
            }
        }
    }

    /// Drops all blocks of an array likewise.
    pub fn forget_array(&self, geometry: &Geometry) {
        if !self.is_empty() {
            self.change().remove_where(|key| key.geometry == geometry.id);
        }
    }

    /// Drops everything likewise.
    pub fn clear(&self) {
        if !self.is_empty() {
            let mut state = self.change();
            state.blocks.clear();
            state.under_way.clear();
        }
    }

    fn is_empty(&self) -> bool {
        let state = self.look();
        state.blocks.len() == 0 && state.under_way.is_empty()
    }

    fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, key: &BlockKey) {
        self.blocks.remove(key);
        self.under_way.remove(key);
    }

    fn remove_where(&mut self, stale: impl Fn(&BlockKey) -> bool) {
        self.blocks.remove_where(&stale);
        self.under_way.retain(|key, _| !stale(key));
    }
}

/// The right to bring a block, and room for it. It must be there before the block is read: then whoever changes the block
/// meanwhile finds it and makes it void.
#[derive(Debug)]
pub(super) struct LoadTicket {
    store: Arc<BlockCache>,
    key: BlockKey,
    number: u64,
    charge: Option<Charge>,
}

impl LoadTicket {
    /// Memory for the block; once.
    pub fn memory(&mut self, bytes: u64) -> Option<Block> {
        Block::new(bytes, self.charge.take()?).ok()
    }

    /// Keeps the block for all, unless it became stale meanwhile. Returns it in any case: it is as good as any read that
    /// was made at that time.
    pub fn keep(self, block: Block) -> Arc<Block> {
        let block = Arc::new(block);
        let mut state = self.store.change();
        if state.under_way.get(&self.key) == Some(&self.number) {
            state.under_way.remove(&self.key);
            state.blocks.insert(self.key, block.clone());
        }
        drop(state);
        block
    }
}

impl Drop for LoadTicket {
    fn drop(&mut self) {
        let mut state = self.store.change();
        if state.under_way.get(&self.key) == Some(&self.number) {
            state.under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::options::BlockSize;
    use super::*;
    use hyperslab_core::Datatype;

    const ASKED: Admission = Admission { worth: true, may_evict: true, charge: 400 };

    fn key(block: u64) -> BlockKey {
        BlockKey { geometry: 7, block }
    }

    fn geometry() -> Geometry {
        let spec = ArraySpec { chunk: Some([10][..].into()), ..ArraySpec::new(Datatype::U8, &[1000]) };
        Geometry::new(7, spec, &BlockSize::Usual, 4096).unwrap().unwrap()
    }

    fn bring(store: &Arc<BlockCache>, block: u64) -> bool {
        let Some(mut ticket) = store.ask(key(block), ASKED) else { return false };
        let memory = ticket.memory(10).unwrap();
        ticket.keep(memory);
        store.contains(key(block))
    }

    #[test]
    fn a_full_cache_takes_what_is_asked_for_twice() {
        let store = BlockCache::new(1000, 1);
        assert!(bring(&store, 1) && bring(&store, 2), "there is room");
        assert!(!bring(&store, 3) && !bring(&store, 4), "there is none");
        assert!(bring(&store, 3), "asked for before");
        assert!(!store.contains(key(1)) && store.contains(key(2)));
        assert!(store.ask(key(9), Admission { worth: false, ..ASKED }).is_none());
        let held = [store.block(key(2)).unwrap(), store.block(key(3)).unwrap()];
        assert!(store.ask(key(9), ASKED).is_none(), "every block is being copied from");
        drop(held);
        assert!(store.ask(key(9), Admission { may_evict: false, ..ASKED }).is_none());
        assert!(bring(&store, 9));
        assert_eq!(store.budget().peak(), 800);
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_kept() {
        let store = BlockCache::new(4096, 1);
        let geometry = geometry();
        let all = Selection::all(&[1000]).unwrap();
        let some = Selection::dense(&[35], &[1]).unwrap();
        let changes: [(&str, &dyn Fn()); 4] = [
            ("part", &|| store.forget(&geometry, &some)),
            ("all of it", &|| store.forget(&geometry, &all)),
            ("the shape", &|| store.forget_array(&geometry)),
            ("anything", &|| store.clear()),
        ];
        for (what, change) in changes {
            let mut ticket = store.ask(key(3), ASKED).unwrap();
            let memory = ticket.memory(10).unwrap();
            assert!(store.ask(key(3), ASKED).is_none(), "one brings it");
            change();
            let mut second = store.ask(key(3), ASKED).unwrap();
            ticket.keep(memory);
            assert!(!store.contains(key(3)), "{what}");
            let memory = second.memory(10).unwrap();
            second.keep(memory);
            assert!(store.contains(key(3)), "the second was read after the change");
            change();
            assert!(!store.contains(key(3)), "{what}");
        }
        assert!(bring(&store, 3) && bring(&store, 4));
        store.forget(&geometry, &some);
        assert!(!store.contains(key(3)) && store.contains(key(4)));
        drop(store.ask(key(3), ASKED));
        assert!(bring(&store, 3), "a ticket that is given back leaves nothing");
        store.clear();
        assert_eq!(store.budget().used(), 0);
    }
}
