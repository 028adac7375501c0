//! What a rank asks for in one round of a read, and what it does with the answers.

use super::domains::Lane;
use super::message::Places;
use super::order::Order;
use super::packed::Incoming;
use super::rounds::{Walks, Windows};
use hyperslab_core::{ChunkSubset, Result, Row};
use std::ops::Range;

/// Asks for a rank's bytes and puts them into its memory.
pub(super) struct Receiving<'a> {
    pub order: &'a Order,
    pub lanes: &'a [Lane],
    pub incoming: Incoming<'a>,
    /// A chunk.
    pub scratch: Vec<u8>,
}

impl Receiving<'_> {
    /// The lists of places of one round, by number of the aggregator.
    pub fn requests(&self, walks: &mut Walks<'_>, windows: &Windows, aggregators: usize) -> Result<Vec<Places>> {
        let mut requests: Vec<Places> = std::iter::repeat_with(Places::default).take(aggregators).collect();
        for (number, (lane, window)) in self.lanes.iter().zip(windows).enumerate() {
            let Some(Range { end, .. }) = window else { continue };
            match walks {
                Walks::Rows(walks) => {
                    let walk = &mut walks[number];
                    while let Some(at) = walk.peek().filter(|at| at < end) {
                        let (aggregator, unit_end) = lane.aggregator(at);
                        while let Some(row) = walk.next_before(unit_end.min(*end)) {
                            requests[aggregator].push(row);
                        }
                    }
                }
                Walks::Chunks(walks) => {
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

    /// Takes the answers, by number of the aggregator, to what was asked on the same way. Rows of lane `own` are there
    /// already. Returns whether the answers were complete; an aggregator that failed answers nothing.
    pub fn take(
        &mut self,
        walks: &mut Walks<'_>,
        windows: &Windows,
        own: Option<usize>,
        answers: &mut [&[u8]],
    ) -> Result<bool> {
        let lanes = self.lanes;
        for (number, (lane, window)) in lanes.iter().zip(windows).enumerate() {
            let Some(Range { end, .. }) = window else { continue };
            match walks {
                Walks::Rows(_) if own == Some(number) => {}
                Walks::Rows(walks) => {
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
                Walks::Chunks(walks) => {
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
        let Order { element, frame_bytes, .. } = *self.order;
        // Chunks do not come in the order of the selection, so its bytes are never streamed.
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

/// The next bytes of an answer, if there are as many.
fn take_front<'a>(answer: &mut &'a [u8], bytes: u64) -> Option<&'a [u8]> {
    let (front, rest) = answer.split_at_checked(bytes as usize)?;
    *answer = rest;
    Some(front)
}
