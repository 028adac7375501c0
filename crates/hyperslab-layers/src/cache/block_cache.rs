//! The block cache: cached blocks, blocks being loaded, and admission.

use super::array_state::{ArrayState, ArrayStates};
use super::block::{Block, Budget, Charge};
use super::eviction::EvictionQueue;
use super::geometry::Geometry;
use crate::array_key::ArrayKey;
use hyperslab_core::{ArraySpec, Result, Selection};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Minimum and maximum number of rejected blocks that are remembered by key.
const LEAST_NAMES: u64 = 8;
const MOST_NAMES: u64 = 1 << 20;

/// Divisor of the memory that is not for blocks.
const BESIDE: u64 = 8;

/// Key of a block: geometry number and block number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    pub geometry: u64,
    pub block: u64,
}

/// Admission parameters of a missing block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    /// Enough of it is requested to cache it if there is free memory.
    pub worth: bool,
    /// It may evict other blocks, if it was requested before.
    pub may_evict: bool,
    /// Bytes counted for it.
    pub charge: u64,
}

/// The cache of one container.
#[derive(Debug)]
pub(super) struct BlockCache {
    /// Budget of blocks.
    budget: Arc<Budget>,
    /// Budget of buffers and plans of running reads.
    beside: Arc<Budget>,
    state: RwLock<State>,
    tickets: AtomicU64,
    names: ArrayStates,
    /// Number of ranks that have not closed the container.
    users: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    blocks: EvictionQueue<BlockKey, Arc<Block>>,
    /// Blocks being loaded, by ticket. Invalidation removes the block, which voids the ticket.
    under_way: HashMap<BlockKey, u64>,
}

impl BlockCache {
    /// A cache of `memory` bytes for each of `users` ranks.
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

    /// Notes that a rank closed the container; drops everything with the last.
    pub fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.clear();
        }
    }

    /// The budget of blocks.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The budget of buffers and plans.
    pub fn beside(&self) -> &Arc<Budget> {
        &self.beside
    }

    /// The state of an array. `make` creates its geometry with a new number.
    pub fn named(
        &self,
        known: &ArrayKey,
        spec: &ArraySpec,
        make: impl FnOnce(u64) -> Result<Option<Geometry>>,
    ) -> Result<Arc<ArrayState>> {
        self.names.get(known, spec, || make(self.number()))
    }

    /// A fresh geometry number.
    pub fn number(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// Looks up a cached block.
    pub fn block(&self, key: BlockKey) -> Option<Arc<Block>> {
        self.look().blocks.used(&key).cloned()
    }

    pub fn contains(&self, key: BlockKey) -> bool {
        self.look().blocks.contains(&key)
    }

    /// Whether all blocks of the selection's bounding box are cached.
    pub fn contains_all(&self, geometry: &Geometry, selection: &Selection) -> bool {
        let state = self.look();
        let there =
            |block: &[u64]| state.blocks.contains(&BlockKey { geometry: geometry.id, block: geometry.number(block) });
        selection.slabs().iter().all(|slab| geometry.range(slab).is_some_and(|range| range.all(there)))
    }

    /// Requests admission of a missing block. Returns a ticket to load it, or `None` if rejected, which is remembered.
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
                // As many keys as there may be blocks.
                let most = (self.budget.limit / asked.charge.max(1)).clamp(LEAST_NAMES, MOST_NAMES);
                state.blocks.remember(key, most as usize);
            }
            return None;
        };
        let number = self.number();
        state.under_way.insert(key, number);
        Some(LoadTicket { store: self.clone(), key, number, charge: Some(charge) })
    }

    /// Whether [`BlockCache::ask`] would return a ticket; a snapshot, for hints.
    pub fn would_admit(&self, key: BlockKey, asked: Admission) -> bool {
        let state = self.look();
        let before = state.blocks.is_remembered(&key);
        before && asked.may_evict || (before || asked.worth) && self.budget.has_room(asked.charge)
    }

    /// Frees memory by evicting blocks that are not in use.
    fn evict(&self, state: &mut State, bytes: u64) -> Option<Charge> {
        loop {
            let block = state.blocks.evict(|block| Arc::strong_count(block) == 1)?;
            drop(block);
            if let Some(charge) = self.budget.take(bytes) {
                return Some(charge);
            }
        }
    }

    /// Invalidates the blocks of a selection, including those being loaded. May also invalidate blocks in its gaps.
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

    /// Invalidates all blocks of an array.
    pub fn forget_array(&self, geometry: &Geometry) {
        if !self.is_empty() {
            self.change().remove_where(|key| key.geometry == geometry.id);
        }
    }

    /// Invalidates everything.
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

/// The right to load a block, with reserved memory. Taken before the block is read, so that concurrent changes of the block
/// void it.
#[derive(Debug)]
pub(super) struct LoadTicket {
    store: Arc<BlockCache>,
    key: BlockKey,
    number: u64,
    charge: Option<Charge>,
}

impl LoadTicket {
    /// Allocates memory for the block; once.
    pub fn memory(&mut self, bytes: u64) -> Option<Block> {
        Block::new(bytes, self.charge.take()?).ok()
    }

    /// Caches the block, unless the ticket is void. Returns it in any case: it is as valid as any read of that time.
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
