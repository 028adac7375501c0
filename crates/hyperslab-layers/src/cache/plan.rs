//! Where the parts of a read come from, and what is asked of the format below.

use super::block::Block;
use super::geometry::Geometry;
use super::piece::Piece;
use super::store::{Asked, Key, Store, Ticket};
use hyperslab_core::{ChunkSubset, Result, Selection};
use std::sync::Arc;

/// Where a part of a selection comes from. What only a read needs is missing in a plan for a hint.
#[derive(Debug)]
pub(super) enum Way {
    /// From a block in memory.
    Kept(Option<Arc<Block>>),
    /// From a block that is read whole, though perhaps not all of it is asked for.
    Whole(Option<(Ticket, Block)>),
    /// All of a block is asked for, and is kept when it was read.
    Covered(Option<Ticket>),
    /// What is asked for is read, and not kept.
    Straight,
}

/// The parts of a selection, block by block.
#[derive(Debug)]
pub(super) struct Plan {
    pub parts: Vec<(ChunkSubset, Way)>,
    /// Elements that come from memory.
    pub kept: u64,
    /// Elements that are read as they are asked for.
    pub straight: u64,
    /// Whether blocks may leave for those that are missing.
    may_displace: bool,
}

/// How far a plan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read now: blocks are used, and tickets taken.
    Read,
    /// To see what a read would do.
    Hint,
}

/// Something to read from the format below.
#[derive(Debug)]
pub(super) enum Step {
    /// A box of what is asked for.
    Straight(Piece),
    /// Whole blocks that are a box together, by the numbers of their parts.
    Whole(Piece, Vec<usize>),
}

impl Plan {
    /// The selection must lie inside the array.
    pub fn new(store: &Arc<Store>, geometry: &Geometry, selection: &Selection, purpose: Purpose) -> Result<Self> {
        let mut plan = Self { parts: Vec::new(), kept: 0, straight: 0, may_displace: false };
        let mut missing = 0u64;
        for part in selection.split_by_chunk(&geometry.grid)? {
            let part = part?;
            let block = match purpose {
                Purpose::Read => store.block(key(geometry, &part)).map(|block| Way::Kept(Some(block))),
                Purpose::Hint => store.contains(key(geometry, &part)).then_some(Way::Kept(None)),
            };
            match block {
                Some(_) => plan.kept += part.within.len(),
                None => missing += 1,
            }
            plan.parts.push((part, block.unwrap_or(Way::Straight)));
        }
        if missing == 0 {
            return Ok(plan);
        }
        // What would replace most of the cache at once displaces nothing.
        plan.may_displace = missing.saturating_mul(geometry.charge) <= store.budget().limit / 2;
        for (part, way) in &mut plan.parts {
            if matches!(way, Way::Straight) {
                *way = decide(store, geometry, part, purpose, plan.may_displace);
            }
        }
        plan.join_whole(geometry);
        let straight = plan.parts.iter().filter(|(_, way)| matches!(way, Way::Straight | Way::Covered(_)));
        plan.straight = straight.map(|(part, _)| part.within.len()).sum();
        Ok(plan)
    }

    /// Whether no block is used or kept. Then it is remembered that they were asked for.
    pub fn is_all_straight(&self, store: &Arc<Store>, geometry: &Geometry) -> bool {
        let straight = self.parts.iter().all(|(_, way)| matches!(way, Way::Straight));
        if straight {
            for (part, _) in &self.parts {
                decide(store, geometry, part, Purpose::Read, self.may_displace);
            }
        }
        straight
    }

    /// Where some blocks are read whole, so are those that are asked for whole: one access for all.
    fn join_whole(&mut self, geometry: &Geometry) {
        if self.parts.iter().any(|(_, way)| matches!(way, Way::Whole(_))) {
            for (_, way) in &mut self.parts {
                *way = match std::mem::replace(way, Way::Straight) {
                    Way::Covered(ticket) => whole(geometry, ticket),
                    other => other,
                };
            }
        }
    }

    /// What is read from the format below, neighbours together: boxes of `whole`, which is what is asked for, and whole
    /// blocks of at most `limit` bytes at a time. One block may be larger.
    pub fn steps(&self, geometry: &Geometry, whole: &Piece, limit: u64) -> Result<Vec<Step>> {
        let most = (limit / geometry.block_bytes.max(1)).max(1) as usize;
        let mut steps: Vec<Step> = Vec::new();
        for (number, (part, way)) in self.parts.iter().enumerate() {
            if matches!(way, Way::Kept(_)) {
                continue;
            }
            let block = Piece { start: geometry.grid.origin(&part.chunk)?, count: geometry.grid.extent(&part.chunk)? };
            let next = match way {
                Way::Whole(_) => Step::Whole(block, vec![number]),
                _ => Step::Straight(block.common(whole)),
            };
            if let Some(next) = joined(steps.last_mut(), next, most) {
                steps.push(next);
            }
        }
        Ok(steps)
    }
}

/// Makes `next` part of the last step if both are one access, of no more than `most` blocks; else gives it back.
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

fn key(geometry: &Geometry, part: &ChunkSubset) -> Key {
    Key { geometry: geometry.id, block: geometry.number(&part.chunk) }
}

/// What becomes of a part whose block is missing.
fn decide(store: &Arc<Store>, geometry: &Geometry, part: &ChunkSubset, purpose: Purpose, may_displace: bool) -> Way {
    let worth = part.covers_chunk || geometry.is_worth_whole(part.within.len());
    let asked = Asked { worth, may_displace, charge: geometry.charge };
    let key = key(geometry, part);
    match purpose {
        Purpose::Read => match (store.ask(key, asked), part.covers_chunk) {
            (None, _) => Way::Straight,
            (ticket, true) => Way::Covered(ticket),
            (ticket, false) => whole(geometry, ticket),
        },
        Purpose::Hint => match (store.would_keep(key, asked), part.covers_chunk) {
            (false, _) => Way::Straight,
            (true, true) => Way::Covered(None),
            (true, false) => Way::Whole(None),
        },
    }
}

/// A block that is read whole, if there is memory for it. Without a ticket, for a hint.
fn whole(geometry: &Geometry, ticket: Option<Ticket>) -> Way {
    let Some(mut ticket) = ticket else { return Way::Whole(None) };
    match ticket.memory(geometry.block_bytes) {
        Some(block) => Way::Whole(Some((ticket, block))),
        None => Way::Straight,
    }
}
