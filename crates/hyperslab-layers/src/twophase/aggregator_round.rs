//! One round of an aggregator: accessing all ranks' pieces of its window by few requests to the format below.

use super::coverage::coverage;
use super::domains::Lane;
use super::message::{Checked, corrupt};
use super::selection_builder::{parts, write_parts};
use super::storage_order::StorageOrder;
use hyperslab_core::{Array, MemoryViewMut, PageBuffer, Result, Run, TransferMode};
use std::ops::Range;

/// Maximum gap that is read along instead of making another request.
const GAP: u64 = 16 << 10;

/// A window of an aggregator.
pub(super) struct AggregatorRound<'a> {
    pub order: &'a StorageOrder,
    pub lane: &'a Lane,
    pub range: &'a Range<u64>,
    /// Index of the aggregator.
    pub aggregator: usize,
}

impl AggregatorRound<'_> {
    /// Refuses offsets outside this aggregator's part of the window.
    fn check<'a>(&self, list: &'a [u8]) -> Result<Checked<'a>> {
        Checked::new(list, self.range, |run| {
            let (aggregator, end) = self.lane.aggregator(run.offset);
            aggregator == self.aggregator && run.end() <= end
        })
    }

    /// Offset of a byte in the window's buffer, before the first requested byte is moved to the begin.
    fn place(&self, offset: u64) -> usize {
        self.lane.in_buffer(self.range, offset) as usize
    }

    /// Offset and length of the hull of all lists in the buffer.
    fn hull(&self, lists: &[Checked<'_>]) -> (usize, usize) {
        let hulls = || lists.iter().filter_map(|list| list.hull);
        let low = hulls().map(|(first, _)| self.place(first)).min().unwrap_or(0);
        let high = hulls().map(|(_, end)| self.place(end - 1) + 1).max().unwrap_or(0);
        (low, high - low)
    }

    /// Writes what the ranks sent, each data and offsets; where they overlap, the higher rank wins.
    pub fn write(&self, sent: &[(&[u8], &[u8])], buffer: &mut PageBuffer, array: &dyn Array) -> Result<()> {
        let lists = sent.iter().map(|(_, list)| self.check(list)).collect::<Result<Vec<_>>>()?;
        let (low, len) = self.hull(&lists);
        buffer.set_len(len)?; // stale bytes are never used
        for (list, (bytes, _)) in lists.iter().zip(sent) {
            if list.bytes != bytes.len() as u64 {
                return Err(corrupt());
            }
            let mut rest = *bytes;
            for run in list.runs() {
                let (at, len) = (self.place(run.offset) - low, run.len as usize);
                let (piece, more) = rest.split_at(len);
                buffer[at..at + len].copy_from_slice(piece);
                rest = more;
            }
        }
        // Holes are skipped, not written.
        let mut packed = 0;
        let close_up = |run: &Run| {
            let (from, len) = (self.place(run.offset) - low, run.len as usize);
            if from != packed {
                buffer.copy_within(from..from + len, packed);
            }
            packed += len;
        };
        let parts = parts(self.order, coverage(&lists, 0).inspect(close_up))?;
        write_parts(array, &parts, &buffer[..packed])
    }

    /// Reads what the ranks request, each a list of offsets, into the buffer.
    pub fn read<'a>(&self, asked: &[&'a [u8]], buffer: &mut PageBuffer, array: &dyn Array) -> Result<Answers<'a>> {
        let lists = asked.iter().map(|list| self.check(list)).collect::<Result<Vec<_>>>()?;
        let (low, len) = self.hull(&lists);
        buffer.set_len(len)?; // stale bytes are never used
        // No gap is bridged between an aggregator's units, which belong to others, or in chunks, whose rows may have
        // padding between them.
        let bridge = if self.lane.count == 1 && self.order.chunks.is_none() { GAP } else { 0 };
        let parts = parts(self.order, coverage(&lists, bridge))?;
        // Reads to the end of the buffer, from where every run moves forward to its offset.
        let mut from = len - parts.iter().map(|part| part.bytes).sum::<usize>();
        let mut rest = &mut buffer[from..len];
        for part in &parts {
            let (bytes, more) = rest.split_at_mut(part.bytes);
            array.read(&part.selection, MemoryViewMut::packed(bytes), TransferMode::Independent)?;
            rest = more;
        }
        if from > 0 {
            for run in coverage(&lists, bridge) {
                let (to, len) = (self.place(run.offset) - low, run.len as usize);
                buffer.copy_within(from..from + len, to);
                from += len;
            }
        }
        Ok(Answers { lists, low })
    }

    /// Calls `each` with the pieces that a rank requested, in order.
    pub fn pieces<'b>(&self, answers: &Answers<'_>, rank: usize, buffer: &'b [u8], mut each: impl FnMut(&'b [u8])) {
        for run in answers.lists[rank].runs() {
            let at = self.place(run.offset) - answers.low;
            each(&buffer[at..at + run.len as usize]);
        }
    }

    /// Appends the pieces that a rank requested to its reply.
    pub fn reply(&self, answers: &Answers<'_>, rank: usize, buffer: &[u8], reply: &mut Vec<u8>) {
        // Reserves space for the next list of offsets, which is usually short.
        let bytes = answers.lists[rank].bytes as usize;
        reply.reserve(if bytes > 0 { bytes + 256 } else { 0 });
        self.pieces(answers, rank, buffer, |piece| reply.extend_from_slice(piece));
    }
}

/// The requests of a window that was read, and their position in the buffer.
pub(super) struct Answers<'a> {
    lists: Vec<Checked<'a>>,
    low: usize,
}
