//! The segment that grows.

use super::direct::BLOCK;
use super::files::LogFile;
use super::segment::Segment;
use super::sync_mode::SyncMode;
use super::writer::Limits;
use hyperslab_core::Datatype;
use std::collections::HashMap;
use std::sync::Arc;

/// The metadata log grows by so many zeros at a time: writing to pages that the kernel has costs half of making new ones.
pub(super) const AHEAD: usize = 128 << 10;
/// Room is reserved for so many bytes at a time: finding it for each write costs a third of the write.
const RESERVE: u64 = 8 << 20;
const RESERVE_META: u64 = 1 << 20;

/// The segment that grows.
#[derive(Debug)]
pub(super) struct Current {
    pub segment: Arc<Segment>,
    pub meta_end: u64,
    /// Length of the file, which may end in zeros.
    pub meta_len: u64,
    pub data_end: u64,
    /// Numbers of the arrays that it knows.
    pub arrays: HashMap<String, (Datatype, u32)>,
    pub next_array: u32,
    pub room: Room,
    /// Bytes of the room that are counted already.
    counted: u64,
}

impl Current {
    /// A new segment, whose head has so many bytes, which are counted.
    pub fn new(segment: Arc<Segment>, head: u64) -> Self {
        let room = Room { meta: head, data: 0, refused: false };
        let (arrays, next_array, data_end) = Default::default();
        Self { segment, meta_end: head, meta_len: head, data_end, arrays, next_array, room, counted: head }
    }

    /// Bytes that are to be counted in addition.
    pub fn grown(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        self.counted.saturating_sub(before)
    }

    /// Bytes that are to be counted no longer.
    pub fn shrunk(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        before.saturating_sub(self.counted)
    }
}

/// What the files of a segment take on the storage, reserved room included.
#[derive(Debug)]
pub(super) struct Room {
    pub meta: u64,
    pub data: u64,
    /// The storage cannot reserve, or has too little.
    refused: bool,
}

impl Room {
    fn total(&self) -> u64 {
        self.meta + self.data
    }

    /// Has room for records up to `end`, and some more if the limits allow.
    pub fn for_meta(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        // What is gathered reaches the kernel in large pieces, and a sync that finds all room in use has less to note.
        let step = if limits.sync.covers_power() { 0 } else { limits.reserve().min(RESERVE_META) };
        let refused = grow(file, &mut self.meta, end, step, limits.bytes.saturating_sub(used), self.refused);
        self.refused = refused;
    }

    /// Has room for gathered data up to `end`, and some more if the limits allow.
    pub fn for_gathered(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        match limits.sync.covers_power() {
            true => self.data = self.data.max(end),
            false => self.for_data(file, end, limits, used),
        }
    }

    /// Has room for data up to `end`, and some more if the limits allow.
    pub fn for_data(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        let refused =
            grow(file, &mut self.data, end, limits.reserve(), limits.bytes.saturating_sub(used), self.refused);
        self.refused = refused;
    }
}

/// Returns whether to stop asking.
fn grow(file: &dyn LogFile, room: &mut u64, end: u64, step: u64, most: u64, refused: bool) -> bool {
    if end <= *room {
        return refused;
    }
    let wanted = if step > 0 { end.next_multiple_of(step) } else { end };
    let reserves = step > 0 && !refused && wanted - *room <= most;
    let reserved = reserves && file.reserve(*room, wanted - *room).is_ok();
    *room = if reserved { wanted } else { end };
    refused || (reserves && !reserved)
}

impl Limits {
    /// Bytes of the data log that a payload takes. Where it is written directly, each begins with a block.
    pub(super) fn data_len(&self, len: u64) -> u64 {
        if self.direct { len.saturating_add(BLOCK - 1) / BLOCK * BLOCK } else { len }
    }

    /// Bytes of zeros by which the metadata log grows; none where segments are small, or where records are gathered.
    pub(super) fn ahead(&self) -> u64 {
        match self.sync.gathers() {
            true => 0,
            false => (self.segment / 16 / 4096 * 4096).min(AHEAD as u64),
        }
    }

    /// Bytes for which room is reserved at a time; none where segments are small, or where each write is synced: the file
    /// system would have each sync note which part of the room is in use.
    fn reserve(&self) -> u64 {
        match (self.segment / 8).min(self.bytes / 64) / 4096 * 4096 {
            small if small < RESERVE_META || self.sync == SyncMode::EveryWrite => 0,
            step => step.min(RESERVE),
        }
    }
}
