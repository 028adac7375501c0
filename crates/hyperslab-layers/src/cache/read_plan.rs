//! Read plans: the source of each part of a read, and the requests to the format below.

use super::block::Block;
use super::block_cache::{Admission, BlockCache, BlockKey, LoadTicket};
use super::boxes::IndexBox;
use super::geometry::Geometry;
use hyperslab_core::{ChunkSubset, Result, Selection};
use std::sync::Arc;

/// The source of a part of a selection. Payloads are `None` in plans for hints.
#[derive(Debug)]
pub(super) enum BlockSource {
    /// A cached block.
    Kept(Option<Arc<Block>>),
    /// A block to be read whole, although it may be requested partly.
    Whole(Option<(LoadTicket, Block)>),
    /// A fully requested block, to be cached after the read.
    Covered(Option<LoadTicket>),
    /// Read as requested and not cached.
    Straight,
}

/// The plan of a read, by block.
#[derive(Debug)]
pub(super) struct ReadPlan {
    pub parts: Vec<(ChunkSubset, BlockSource)>,
    /// Number of elements from cached blocks.
    pub kept: u64,
    /// Number of elements read as requested.
    pub straight: u64,
    /// Whether missing blocks may evict others.
    may_evict: bool,
}

/// The purpose of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read now: counts uses and takes tickets.
    Read,
    /// To forward a hint: changes nothing.
    Hint,
}

/// A request to the format below.
#[derive(Debug)]
pub(super) enum Step {
    /// A box of requested elements.
    Straight(IndexBox),
    /// Whole blocks that form a box, by the indices of their parts.
    Whole(IndexBox, Vec<usize>),
}

impl ReadPlan {
    /// Plans a read; the selection must lie inside the array.
    pub fn new(store: &Arc<BlockCache>, geometry: &Geometry, selection: &Selection, purpose: Purpose) -> Result<Self> {
        let mut plan = Self { parts: Vec::new(), kept: 0, straight: 0, may_evict: false };
        let mut missing = 0u64;
        for part in selection.split_by_chunk(&geometry.grid)? {
            let part = part?;
            let block = match purpose {
                Purpose::Read => store.block(key(geometry, &part)).map(|block| BlockSource::Kept(Some(block))),
                Purpose::Hint => store.contains(key(geometry, &part)).then_some(BlockSource::Kept(None)),
            };
            match block {
                Some(_) => plan.kept += part.within.len(),
                None => missing += 1,
            }
            plan.parts.push((part, block.unwrap_or(BlockSource::Straight)));
        }
        if missing == 0 {
            return Ok(plan);
        }
        // A read that would replace most of the cache evicts nothing.
        plan.may_evict = missing.saturating_mul(geometry.charge) <= store.budget().limit / 2;
        for (part, way) in &mut plan.parts {
            if matches!(way, BlockSource::Straight) {
                *way = decide(store, geometry, part, purpose, plan.may_evict);
            }
        }
        plan.join_whole(geometry);
        let straight =
            plan.parts.iter().filter(|(_, way)| matches!(way, BlockSource::Straight | BlockSource::Covered(_)));
        plan.straight = straight.map(|(part, _)| part.within.len()).sum();
        Ok(plan)
    }

    /// Whether no block is used or cached; then records the rejected requests.
    pub fn is_all_straight(&self, store: &Arc<BlockCache>, geometry: &Geometry) -> bool {
        let straight = self.parts.iter().all(|(_, way)| matches!(way, BlockSource::Straight));
        if straight {
            for (part, _) in &self.parts {
                decide(store, geometry, part, Purpose::Read, self.may_evict);
            }
        }
        straight
    }

    /// If some blocks are read whole, fully requested ones are too, by one request.
    fn join_whole(&mut self, geometry: &Geometry) {
        if self.parts.iter().any(|(_, way)| matches!(way, BlockSource::Whole(_))) {
            for (_, way) in &mut self.parts {
                *way = match std::mem::replace(way, BlockSource::Straight) {
                    BlockSource::Covered(ticket) => whole(geometry, ticket),
                    other => other,
                };
            }
        }
    }

    /// The requests to the format below, adjacent ones merged: boxes of `whole`, the requested selection, and whole blocks
    /// of at most `limit` bytes together, or a single one.
    pub fn steps(&self, geometry: &Geometry, whole: &IndexBox, limit: u64) -> Result<Vec<Step>> {
        let most = (limit / geometry.block_bytes.max(1)).max(1) as usize;
        let mut steps: Vec<Step> = Vec::new();
        for (number, (part, way)) in self.parts.iter().enumerate() {
            if matches!(way, BlockSource::Kept(_)) {
                continue;
            }
            let block =
                IndexBox { start: geometry.grid.origin(&part.chunk)?, count: geometry.grid.extent(&part.chunk)? };
            let next = match way {
                BlockSource::Whole(_) => Step::Whole(block, vec![number]),
                _ => Step::Straight(block.common(whole)),
            };
            if let Some(next) = joined(steps.last_mut(), next, most) {
                steps.push(next);
            }
        }
        Ok(steps)
    }
}

/// Merges `next` into the last request, if both form one of at most `most` blocks; otherwise returns it.
fn joined(last: Option<&mut Step>, next: Step, most: usize) -> Option<Step> {
    match (last, &next) {
        (Some(Step::Whole(piece, numbers)), Step::Whole(block, more)) if numbers.len() < most => {
            let Some(both) = piece.joined(block) else { return Some(next) };
            *piece = both;
            numbers.extend(more);
            None
        }
        (Some(Step::Straight(piece)), Step::Straight(asked)) => {
            let Some(both) = piece.joined(asked) else { return Some(next) };
            *piece = both;
            None
        }
        _ => Some(next),
    }
}

fn key(geometry: &Geometry, part: &ChunkSubset) -> BlockKey {
    BlockKey { geometry: geometry.id, block: geometry.number(&part.chunk) }
}

/// The source of a part whose block is missing.
fn decide(
    store: &Arc<BlockCache>,
    geometry: &Geometry,
    part: &ChunkSubset,
    purpose: Purpose,
    may_evict: bool,
) -> BlockSource {
    let worth = part.covers_chunk || geometry.is_worth_whole(part.within.len());
    let asked = Admission { worth, may_evict, charge: geometry.charge };
    let key = key(geometry, part);
    match purpose {
        Purpose::Read => match (store.ask(key, asked), part.covers_chunk) {
            (None, _) => BlockSource::Straight,
            (ticket, true) => BlockSource::Covered(ticket),
            (ticket, false) => whole(geometry, ticket),
        },
        Purpose::Hint => match (store.would_admit(key, asked), part.covers_chunk) {
            (false, _) => BlockSource::Straight,
            (true, true) => BlockSource::Covered(None),
            (true, false) => BlockSource::Whole(None),
        },
    }
}

/// A block to be read whole, if there is memory for it; without a ticket for hints.
fn whole(geometry: &Geometry, ticket: Option<LoadTicket>) -> BlockSource {
    let Some(mut ticket) = ticket else { return BlockSource::Whole(None) };
    match ticket.memory(geometry.block_bytes) {
        Some(block) => BlockSource::Whole(Some((ticket, block))),
        None => BlockSource::Straight,
    }
}
