//! The segment that grows.

use super::direct_io::BLOCK;
use super::journal::Limits;
use super::segment::Segment;
use super::storage::LogFile;
use super::sync_mode::SyncMode;
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
pub(super) struct ActiveSegment {
    pub segment: Arc<Segment>,
    pub meta_end: u64,
    /// Length of the file, which may end in zeros.
    pub meta_len: u64,
    pub data_end: u64,
    /// Numbers of the arrays that it knows.
    pub arrays: HashMap<String, (Datatype, u32)>,
    pub next_array: u32,
    pub room: SegmentSpace,
    /// Bytes of the room that are counted already.
    counted: u64,
}

impl ActiveSegment {
    /// A new segment, whose head has so many bytes, which are counted.
    pub fn new(segment: Arc<Segment>, head: u64) -> Self {
        let room = SegmentSpace { meta: head, data: 0, refused: false };
        let (arrays, next_array, data_end) = Default::default();
        Self { segment, meta_end: head, meta_len: head, data_end, arrays, next_array, room, counted: head }
    }

    /// Bytes that are to be counted in addition.
    pub fn grown(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        self.counted.saturating_sub(before)
    }

    /// Bytes of so many in the data log that are counted already, since there is room for them.
    pub fn counted_of(&self, data: u64) -> u64 {
        self.room.data.saturating_sub(self.data_end).min(data)
    }

    /// Bytes that are to be counted no longer.
    pub fn shrunk(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        before.saturating_sub(self.counted)
    }
}

/// What the files of a segment take on the storage, reserved room included.
#[derive(Debug)]
pub(super) struct SegmentSpace {
    pub meta: u64,
    pub data: u64,
    /// The storage cannot reserve, or has too little.
    refused: bool,
}

impl SegmentSpace {
    fn total(&self) -> u64 {
        self.meta + self.data
    }

    /// Has room for records up to `end`, and some more if the limits allow.
    pub fn for_meta(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        // What is gathered reaches the kernel in large pieces, and a sync that finds all room in use has less to note.
        let step = if limits.sync.covers_power() { None } else { limits.reserve() };
        let wanted = step.map(|step| end.next_multiple_of(step.min(RESERVE_META)));
        self.refused = grow(file, &mut self.meta, end, wanted, limits.bytes.saturating_sub(used), self.refused);
    }

    /// Has room for data up to `end`, and some more if the limits allow.
    pub fn for_data(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        let wanted = limits.reserve().map(|step| match limits.reserves_all() {
            true => end.max(limits.segment),
            false => end.next_multiple_of(step),
        });
        self.refused = grow(file, &mut self.data, end, wanted, limits.bytes.saturating_sub(used), self.refused);
    }
}

/// Returns whether to stop asking.
fn grow(file: &dyn LogFile, room: &mut u64, end: u64, wanted: Option<u64>, most: u64, refused: bool) -> bool {
    if end <= *room {
        return refused;
    }
    let Some(wanted) = wanted.filter(|wanted| !refused && wanted - *room <= most) else {
        *room = end;
        return refused;
    };
    let reserved = file.reserve(*room, wanted - *room).is_ok();
    *room = if reserved { wanted } else { end };
    !reserved
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
    fn reserve(&self) -> Option<u64> {
        let step = (self.segment / 8).min(self.bytes / 64) / 4096 * 4096;
        (step >= RESERVE_META && self.sync != SyncMode::EveryWrite).then_some(step.min(RESERVE))
    }

    /// Whether room for all data of a segment is reserved when it begins, or before: see [`preallocate`](super::preallocate).
    fn reserves_all(&self) -> bool {
        matches!(self.sync, SyncMode::Every(_)) && self.reserve().is_some()
    }

    /// Bytes of room for the data of the next segment, if they are to be reserved already: not where the journal is nearly full.
    pub(super) fn room_ahead(&self, used: u64) -> Option<u64> {
        let room = self.segment;
        (self.reserves_all() && !self.direct && used.saturating_add(room.saturating_mul(2)) <= self.bytes)
            .then_some(room)
    }

    /// Whether room that a full segment does not need stays with it: giving it back waits for a sync that runs, too.
    pub(super) fn keeps(&self, room: u64) -> bool {
        self.reserves_all() && room <= self.segment / 8
    }
}
