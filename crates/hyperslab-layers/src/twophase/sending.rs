//! What a rank sends in one round of a write.

use super::domains::Lane;
use super::message::{Places, join};
use super::order::Order;
use super::packed::Outgoing;
use super::rounds::{Walks, Windows};
use super::walk::{ChunkWalk, RowWalk};
use hyperslab_core::{ChunkSubset, Result, Row};

/// A message to one aggregator, being put together.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    bytes: Vec<u8>,
    places: Places,
    /// For the rank itself: bytes of the caller that need not be copied.
    own: Option<&'a [u8]>,
}

/// What a rank that is an aggregator sends to itself: bytes of the caller and their places.
pub(super) type Own<'a> = (&'a [u8], Vec<u8>);

impl<'a> Draft<'a> {
    /// The message, or what stays here.
    pub fn finish(self) -> (Vec<u8>, Option<Own<'a>>) {
        match self.own {
            Some(bytes) => (Vec::new(), Some((bytes, self.places.finish()))),
            None => (join(self.bytes, self.places), None),
        }
    }
}

/// Puts together what a rank sends.
pub(super) struct Sending<'a> {
    pub order: &'a Order,
    pub lanes: &'a [Lane],
    /// This rank as an aggregator, by number.
    pub me: Option<usize>,
    pub outgoing: Outgoing<'a>,
    /// A chunk.
    pub scratch: Vec<u8>,
}

impl<'a> Sending<'a> {
    /// The messages of one round, by number of the aggregator, in the memory of `empty` ones.
    pub fn drafts(&mut self, walks: &mut Walks<'_>, windows: &Windows, empty: Vec<Vec<u8>>) -> Result<Vec<Draft<'a>>> {
        let mut drafts: Vec<Draft<'a>> = empty.into_iter().map(|bytes| Draft { bytes, ..Draft::default() }).collect();
        let lanes = self.lanes;
        for (number, (lane, window)) in lanes.iter().zip(windows).enumerate() {
            let Some(window) = window else { continue };
            match walks {
                Walks::Rows(walks) if lane.count == 1 => {
                    self.add_contiguous(&mut walks[number], lane, window.end, &mut drafts[lane.first]);
                }
                Walks::Rows(walks) => self.deal_out(&mut walks[number], lane, window.end, &mut drafts),
                Walks::Chunks(walks) => self.add_chunks(&mut walks[number], lane, window.end, &mut drafts)?,
            }
        }
        Ok(drafts)
    }

    /// Everything before `end` for the lane's one aggregator: a single piece of packed memory.
    fn add_contiguous(&mut self, walk: &mut RowWalk<'_>, lane: &Lane, end: u64, draft: &mut Draft<'a>) {
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

    /// Everything before `end`, unit by unit to the lane's aggregators.
    fn deal_out(&mut self, walk: &mut RowWalk<'_>, lane: &Lane, end: u64, drafts: &mut [Draft<'_>]) {
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

    fn add_chunks(&mut self, walk: &mut ChunkWalk<'_>, lane: &Lane, end: u64, drafts: &mut [Draft<'_>]) -> Result<()> {
        while let Some((begin, part)) = walk.next_before(end)? {
            let (aggregator, _) = lane.aggregator(begin);
            self.add_chunk(begin, &part, &mut drafts[aggregator])?;
        }
        Ok(())
    }

    fn add_chunk(&mut self, begin: u64, part: &ChunkSubset, draft: &mut Draft<'_>) -> Result<()> {
        let Order { element, frame_bytes, .. } = *self.order;
        // Chunks are not sent in the order of the selection, so its bytes are never streamed.
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
