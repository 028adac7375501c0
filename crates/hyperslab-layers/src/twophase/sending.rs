//! A rank's messages in one round of a write.

use super::domains::Lane;
use super::message::{OffsetList, join};
use super::packed::Outgoing;
use super::rounds::{Cursors, RoundRanges};
use super::storage_cursor::{ChunkCursor, RowCursor};
use super::storage_order::StorageOrder;
use hyperslab_core::{ChunkSubset, Result, Row};

/// A message to one aggregator under construction.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    bytes: Vec<u8>,
    places: OffsetList,
    /// For the rank itself: the caller's bytes, not copied.
    own: Option<&'a [u8]>,
}

/// The data of an aggregator for itself: the caller's bytes and their offsets.
pub(super) type Own<'a> = (&'a [u8], Vec<u8>);

impl<'a> Draft<'a> {
    /// The message, or the local data.
    pub fn finish(self) -> (Vec<u8>, Option<Own<'a>>) {
        match self.own {
            Some(bytes) => (Vec::new(), Some((bytes, self.places.finish()))),
            None => (join(self.bytes, self.places), None),
        }
    }
}

/// Builds the messages of a rank.
pub(super) struct Sending<'a> {
    pub order: &'a StorageOrder,
    pub lanes: &'a [Lane],
    /// This rank as an aggregator, by number.
    pub me: Option<usize>,
    pub outgoing: Outgoing<'a>,
    /// Length of a chunk.
    pub scratch: Vec<u8>,
}

impl<'a> Sending<'a> {
    /// The messages of one round, by aggregator, in the buffers of `empty`.
    pub fn drafts(
        &mut self,
        walks: &mut Cursors<'_>,
        windows: &RoundRanges,
        empty: Vec<Vec<u8>>,
    ) -> Result<Vec<Draft<'a>>> {
        let mut drafts: Vec<Draft<'a>> = empty.into_iter().map(|bytes| Draft { bytes, ..Draft::default() }).collect();
        let lanes = self.lanes;
        for (number, (lane, window)) in lanes.iter().zip(windows).enumerate() {
            let Some(window) = window else { continue };
            match walks {
                Cursors::Rows(walks) if lane.count == 1 => {
                    self.add_contiguous(&mut walks[number], lane, window.end, &mut drafts[lane.first]);
                }
                Cursors::Rows(walks) => self.deal_out(&mut walks[number], lane, window.end, &mut drafts),
                Cursors::Chunks(walks) => self.add_chunks(&mut walks[number], lane, window.end, &mut drafts)?,
            }
        }
        Ok(drafts)
    }

    /// Adds everything before `end` for the only aggregator of the lane: one contiguous piece of packed memory.
    fn add_contiguous(&mut self, walk: &mut RowCursor<'_>, lane: &Lane, end: u64, draft: &mut Draft<'a>) {
        let from = walk.packed();
        while let Some(row) = walk.next_before(end) {
            draft.places.push(row);
        }
        let range = from..walk.packed();
        if range.is_empty() {
            return;
        }
        if self.me == Some(lane.first)
            && let Some(all) = self.outgoing.lent()
        {
            draft.own = Some(&all[range.start as usize..range.end as usize]);
        } else {
            draft.bytes.reserve_exact((range.end - range.start) as usize + draft.places.most_bytes());
            self.outgoing.append(range, &mut draft.bytes);
        }
    }

    /// Adds everything before `end`, units in turn for the lane's aggregators.
    fn deal_out(&mut self, walk: &mut RowCursor<'_>, lane: &Lane, end: u64, drafts: &mut [Draft<'_>]) {
        while let Some(at) = walk.peek().filter(|at| *at < end) {
            let (aggregator, unit_end) = lane.aggregator(at);
            let draft = &mut drafts[aggregator];
            let from = walk.packed();
            while let Some(row) = walk.next_before(unit_end.min(end)) {
                draft.places.push(row);
            }
            self.outgoing.append(from..walk.packed(), &mut draft.bytes);
        }
    }

    fn add_chunks(
        &mut self,
        walk: &mut ChunkCursor<'_>,
        lane: &Lane,
        end: u64,
        drafts: &mut [Draft<'_>],
    ) -> Result<()> {
        while let Some((begin, part)) = walk.next_before(end)? {
            let (aggregator, _) = lane.aggregator(begin);
            self.add_chunk(begin, &part, &mut drafts[aggregator])?;
        }
        Ok(())
    }

    fn add_chunk(&mut self, begin: u64, part: &ChunkSubset, draft: &mut Draft<'_>) -> Result<()> {
        let StorageOrder { element, frame_bytes, .. } = *self.order;
        // Chunks are not in the order of the selection, so that bytes are never gathered incrementally.
        let packed = self.outgoing.all().unwrap_or_default();
        if part.within.len() * element == frame_bytes {
            let from = draft.bytes.len();
            draft.bytes.resize(from + frame_bytes as usize, 0);
            draft.places.push(Row { offset: begin, len: frame_bytes, count: 1, stride: frame_bytes });
            return part.copy_to_chunk(packed, &mut draft.bytes[from..], element);
        }
        self.scratch.resize(frame_bytes as usize, 0);
        part.copy_to_chunk(packed, &mut self.scratch, element)?;
        for run in part.within.runs(self.order.frame_shape(), element)? {
            draft.places.push(Row { offset: begin + run.offset, len: run.len, count: 1, stride: run.len });
            draft.bytes.extend_from_slice(&self.scratch[run.offset as usize..run.end() as usize]);
        }
        Ok(())
    }
}
