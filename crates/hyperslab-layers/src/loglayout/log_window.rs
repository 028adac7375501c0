//! Reading elements from a log, with adjacent requests coalesced.

use super::entry::Piece;
use hyperslab_core::{Array, MemoryViewMut, Result, Selection, TransferMode};

/// Maximum bytes of one read, unless all of them are requested.
const LARGEST: u64 = 4 << 20;
/// Maximum gap that is read along.
const GAP: u64 = 16 << 10;
/// Maximum number of pending requests.
const MOST: usize = 64 << 10;

/// Pending requests for elements of one record, in increasing order.
pub(super) struct Window<'a> {
    log: &'a dyn Array,
    /// Offset of the record.
    base: u64,
    /// Length of an element in the record, and in memory.
    stride: u64,
    size: u64,
    /// First element in the record, first in memory, number.
    wanted: Vec<(u64, u64, u64)>,
    buffer: Vec<u8>,
}

/// Copies elements of the record to the given element index in memory.
type Put<'a> = dyn Fn(&[u8], u64, &mut [u8]) + 'a;

impl<'a> Window<'a> {
    pub fn new(log: &'a dyn Array, base: u64, stride: u64, size: u64) -> Self {
        Self { log, base, stride, size, wanted: Vec::new(), buffer: Vec::new() }
    }

    /// Adds a request; first reads the pending ones if it is too far from them.
    pub fn want(&mut self, from: u64, to: u64, count: u64, into: &mut [u8], put: &Put<'_>) -> Result<()> {
        if let (Some(first), Some(last)) = (self.wanted.first(), self.wanted.last()) {
            let gap = (from - (last.0 + last.2)) * self.stride;
            let all = (from + count - first.0) * self.stride;
            if gap > GAP || all > LARGEST || self.wanted.len() >= MOST {
                self.finish(into, put)?;
            }
        }
        self.wanted.push((from, to, count));
        Ok(())
    }

    /// Reads the pending requests.
    pub fn finish(&mut self, into: &mut [u8], put: &Put<'_>) -> Result<()> {
        let (Some(&(begin, to, count)), Some(&(last, _, after))) = (self.wanted.first(), self.wanted.last()) else {
            return Ok(());
        };
        let len = (last + after - begin) * self.stride;
        let place = Selection::dense(&[self.base + begin * self.stride], &[len])?;
        if self.wanted.len() == 1 && self.stride == self.size {
            let to = (to * self.size) as usize;
            let target = &mut into[to..to + (count * self.size) as usize];
            self.log.read(&place, MemoryViewMut::packed(target), TransferMode::Independent)?;
        } else {
            self.buffer.resize(len as usize, 0);
            self.log.read(&place, MemoryViewMut::packed(&mut self.buffer), TransferMode::Independent)?;
            for &(from, to, count) in &self.wanted {
                let [at, len] = [from - begin, count].map(|n| (n * self.stride) as usize);
                put(&self.buffer[at..at + len], to, into);
            }
        }
        self.wanted.clear();
        Ok(())
    }
}

/// Copies partial elements, stored as `pieces` in `stride` bytes, to the elements from index `to` on.
pub(super) fn copy_pieces(bytes: &[u8], pieces: &[Piece], stride: u64, size: u64, to: u64, into: &mut [u8]) {
    let to = (to * size) as usize;
    if pieces.is_empty() {
        into[to..to + bytes.len()].copy_from_slice(bytes);
        return;
    }
    let elements = into[to..].chunks_exact_mut(size as usize);
    for (short, element) in bytes.chunks_exact(stride as usize).zip(elements) {
        let mut at = 0;
        for piece in pieces {
            let (offset, len) = (piece.offset as usize, piece.len as usize);
            element[offset..offset + len].copy_from_slice(&short[at..at + len]);
            at += len;
        }
    }
}
