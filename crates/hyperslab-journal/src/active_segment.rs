//! The active segment: the one that appends go to.

use super::direct_io::BLOCK;
use super::journal::Limits;
use super::segment::Segment;
use super::storage::LogFile;
use super::sync_mode::SyncMode;
use hyperslab_core::Datatype;
use std::collections::HashMap;
use std::sync::Arc;

/// Zeros by which the metadata log is extended: writing to cached pages costs half as much as allocating new ones.
pub(super) const AHEAD: usize = 128 << 10;
/// Bytes reserved at a time: allocating for each write costs a third of the write.
const RESERVE: u64 = 8 << 20;
const RESERVE_META: u64 = 1 << 20;

/// The active segment: the one that appends go to.
#[derive(Debug)]
pub(super) struct ActiveSegment {
    pub segment: Arc<Segment>,
    pub meta_end: u64,
    /// Length of the file, including trailing zeros.
    pub meta_len: u64,
    pub data_end: u64,
    /// Arrays that have a record in this segment, with their numbers.
    pub arrays: HashMap<String, (Datatype, u32)>,
    pub next_array: u32,
    pub room: SegmentSpace,
    /// Part of `room` that is counted as used by the journal.
    counted: u64,
}

impl ActiveSegment {
    /// A new segment with a header of `head` bytes, which are counted already.
    pub fn new(segment: Arc<Segment>, head: u64) -> Self {
        let room = SegmentSpace { meta: head, data: 0, refused: false };
        let (arrays, next_array, data_end) = Default::default();
        Self { segment, meta_end: head, meta_len: head, data_end, arrays, next_array, room, counted: head }
    }

    /// Growth of the reserved space since the last call.
    pub fn grown(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        self.counted.saturating_sub(before)
    }

    /// Part of `data` bytes for the data log that falls into space already counted.
    pub fn counted_of(&self, data: u64) -> u64 {
        self.room.data.saturating_sub(self.data_end).min(data)
    }

    /// Shrinkage of the reserved space since the last call.
    pub fn shrunk(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.room.total());
        before.saturating_sub(self.counted)
    }
}

/// Storage allocated to the files of a segment, including preallocation.
#[derive(Debug)]
pub(super) struct SegmentSpace {
    pub meta: u64,
    pub data: u64,
    /// Preallocation is unsupported or failed.
    refused: bool,
}

impl SegmentSpace {
    fn total(&self) -> u64 {
        self.meta + self.data
    }

    /// Ensures space for records up to `end`; preallocates more if the limits allow.
    pub fn for_meta(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        // Batches are written in large pieces, and a sync without unused preallocation has less metadata to write.
        let step = if limits.sync.covers_power() { None } else { limits.reserve() };
        let wanted = step.map(|step| end.next_multiple_of(step.min(RESERVE_META)));
        self.refused = grow(file, &mut self.meta, end, wanted, limits.bytes.saturating_sub(used), self.refused);
    }

    /// Ensures space for data up to `end`; preallocates more if the limits allow.
    pub fn for_data(&mut self, file: &dyn LogFile, end: u64, limits: &Limits, used: u64) {
        let wanted = limits.reserve().map(|step| match limits.reserves_all() {
            true => end.max(limits.segment),
            false => end.next_multiple_of(step),
        });
        self.refused = grow(file, &mut self.data, end, wanted, limits.bytes.saturating_sub(used), self.refused);
    }
}

/// Reserves a range; returns `true` if preallocation should not be tried again.
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
    /// Bytes that a payload occupies in the data log: whole blocks with direct I/O.
    pub(super) fn data_len(&self, len: u64) -> u64 {
        if self.direct { len.saturating_add(BLOCK - 1) / BLOCK * BLOCK } else { len }
    }

    /// Zeros by which the metadata log is extended; none if segments are small or records are batched.
    pub(super) fn ahead(&self) -> u64 {
        match self.sync.gathers() {
            true => 0,
            false => (self.segment / 16 / 4096 * 4096).min(AHEAD as u64),
        }
    }

    /// Preallocation step; none if segments are small, or if each write is synced: then each sync would also have to record
    /// which part of the preallocation is used.
    fn reserve(&self) -> Option<u64> {
        let step = (self.segment / 8).min(self.bytes / 64) / 4096 * 4096;
        (step >= RESERVE_META && self.sync != SyncMode::EveryWrite).then_some(step.min(RESERVE))
    }

    /// Whether the whole data log of a segment is preallocated, at its creation or before: see
    /// [`preallocate`](super::preallocate).
    fn reserves_all(&self) -> bool {
        matches!(self.sync, SyncMode::Every(_)) && self.reserve().is_some()
    }

    /// Bytes to preallocate for the next data log; `None` if the journal is nearly full.
    pub(super) fn room_ahead(&self, used: u64) -> Option<u64> {
        let room = self.segment;
        (self.reserves_all() && !self.direct && used.saturating_add(room.saturating_mul(2)) <= self.bytes)
            .then_some(room)
    }

    /// Whether a full segment keeps its unused preallocation, since freeing it would wait for a running sync.
    pub(super) fn keeps(&self, room: u64) -> bool {
        self.reserves_all() && room <= self.segment / 8
    }
}
