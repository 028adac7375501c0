//! A rank's requests in one round of a read, and its handling of the replies.

use super::domains::Lane;
use super::message::OffsetList;
use super::packed::Incoming;
use super::rounds::{Cursors, RoundRanges};
use super::storage_order::StorageOrder;
use hyperslab_core::{ChunkSubset, Result, Row};
use std::ops::Range;

/// Requests a rank's bytes and stores them in its memory.
pub(super) struct Receiving<'a> {
    pub order: &'a StorageOrder,
    pub lanes: &'a [Lane],
    pub incoming: Incoming<'a>,
    /// Length of a chunk.
    pub scratch: Vec<u8>,
}

impl Receiving<'_> {
    /// The requests of one round, by aggregator.
    pub fn requests(
        &self,
        walks: &mut Cursors<'_>,
        windows: &RoundRanges,
        aggregators: usize,
    ) -> Result<Vec<OffsetList>> {
        let mut requests: Vec<OffsetList> = std::iter::repeat_with(OffsetList::default).take(aggregators).collect();
        for (number, (lane, window)) in self.lanes.iter().zip(windows).enumerate() {
            let Some(Range { end, .. }) = window else { continue };
            match walks {
                Cursors::Rows(walks) => {
                    let walk = &mut walks[number];
                    while let Some(at) = walk.peek().filter(|at| at < end) {
                        let (aggregator, unit_end) = lane.aggregator(at);
                        while let Some(row) = walk.next_before(unit_end.min(*end)) {
                            requests[aggregator].push(row);
                        }
                    }
                }
                Cursors::Chunks(walks) => {
                    while let Some((begin, part)) = walks[number].next_before(*end)? {
                        let places = &mut requests[lane.aggregator(begin).0];
                        for run in part.within.runs(self.order.frame_shape(), self.order.element)? {
                            places.push(Row { offset: begin + run.offset, len: run.len, count: 1, stride: run.len });
                        }
                    }
                }
            }
        }
        Ok(requests)
    }

    /// Stores the replies, by aggregator, to the requests made from the same cursors. Rows of lane `own` are stored
    /// already. Returns whether the replies were complete; an aggregator that failed sends none.
    pub fn take(
        &mut self,
        walks: &mut Cursors<'_>,
        windows: &RoundRanges,
        own: Option<usize>,
        answers: &mut [&[u8]],
    ) -> Result<bool> {
        let lanes = self.lanes;
        for (number, (lane, window)) in lanes.iter().zip(windows).enumerate() {
            let Some(Range { end, .. }) = window else { continue };
            match walks {
                Cursors::Rows(_) if own == Some(number) => {}
                Cursors::Rows(walks) => {
                    let walk = &mut walks[number];
                    while let Some(at) = walk.peek().filter(|at| at < end) {
                        let (aggregator, unit_end) = lane.aggregator(at);
                        let from = walk.packed();
                        while walk.next_before(unit_end.min(*end)).is_some() {}
                        let Some(bytes) = take_front(&mut answers[aggregator], walk.packed() - from) else {
                            return Ok(false);
                        };
                        self.incoming.put(from, bytes);
                    }
                }
                Cursors::Chunks(walks) => {
                    while let Some((begin, part)) = walks[number].next_before(*end)? {
                        let answer = &mut answers[lane.aggregator(begin).0];
                        let Some(bytes) = take_front(answer, part.within.len() * self.order.element) else {
                            return Ok(false);
                        };
                        self.put_chunk(&part, bytes)?;
                    }
                }
            }
        }
        Ok(true)
    }

    fn put_chunk(&mut self, part: &ChunkSubset, mut bytes: &[u8]) -> Result<()> {
        let StorageOrder { element, frame_bytes, .. } = *self.order;
        // Chunks are not in the order of the selection, so that bytes are never scattered incrementally.
        let packed = self.incoming.all().unwrap_or_default();
        if bytes.len() as u64 == frame_bytes {
            return part.copy_from_chunk(bytes, packed, element);
        }
        self.scratch.resize(frame_bytes as usize, 0);
        for run in part.within.runs(self.order.frame_shape(), element)? {
            let (piece, more) = bytes.split_at(run.len as usize);
            self.scratch[run.offset as usize..run.end() as usize].copy_from_slice(piece);
            bytes = more;
        }
        part.copy_from_chunk(&self.scratch, packed, element)
    }
}

/// Takes the next bytes of a reply, if there are enough.
fn take_front<'a>(answer: &mut &'a [u8], bytes: u64) -> Option<&'a [u8]> {
    let (front, rest) = answer.split_at_checked(bytes as usize)?;
    *answer = rest;
    Some(front)
}
