//! Two fixed-size slots after a version 2 head: the container's state as last seen, and the live segments.
//!
//! A slot has 64 bytes at a multiple of 64, so that one write replaces it atomically. A slot with a wrong checksum is
//! ignored.

use super::wire::{Decoder, Encoder};
use std::time::{SystemTime, UNIX_EPOCH};

/// How durable the slot is: as 1, and so is each write before it is acknowledged.
const EACH_WRITE: u32 = 2;
/// Length of a slot.
pub(super) const SLOT: usize = 64;

/// The container as last seen by the writer of a journal, or by a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sighting {
    /// Modification time of the container, 0 if unknown. All times are in nanoseconds since 1970.
    pub modified: u64,
    /// Size of the container.
    pub len: u64,
    /// Creation time of the container, 0 if unknown.
    pub born: u64,
    /// Time of the observation.
    pub seen: u64,
    /// Device and inode of the head file, which a copy does not share; zeros if unknown.
    pub head: (u64, u64),
}

/// The range of live segments, inclusive; empty if `first > last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSegments {
    /// Earlier segments are completed, even if their files exist.
    pub first: u64,
    /// Later segments have no acknowledged record.
    pub last: u64,
    /// The metadata log of `last` has at least so many bytes; 0 if unknown.
    pub least: u64,
    /// Whether it is made durable before files are removed, and so is valid after power loss.
    pub durable: bool,
    /// Whether each write is durable before it is acknowledged, and the first of a segment before `last` names the segment.
    pub each_write: bool,
}

/// Offset of the slots after a head of `head` bytes.
pub(super) fn begin(head: usize) -> u64 {
    head.next_multiple_of(SLOT) as u64
}

/// Nanoseconds since 1970.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn seal(mut out: Encoder) -> Vec<u8> {
    out.0.resize(SLOT - 4, 0);
    let crc = crc32c::crc32c(&out.0);
    out.u32(crc);
    out.0
}

fn open(bytes: &[u8]) -> Option<Decoder<'_>> {
    let (content, crc) = bytes.get(..SLOT)?.split_at(SLOT - 4);
    (crc32c::crc32c(content).to_le_bytes() == crc).then_some(Decoder(content))
}

impl Sighting {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(b"SEEN");
        [self.modified, self.len, self.born, self.seen, self.head.0, self.head.1].iter().for_each(|n| out.u64(*n));
        seal(out)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = open(bytes)?;
        if from.raw(4).ok()? != b"SEEN" {
            return None;
        }
        let mut next = || from.u64().ok();
        let (modified, len, born, seen) = (next()?, next()?, next()?, next()?);
        Some(Self { modified, len, born, seen, head: (next()?, next()?) })
    }
}

impl LiveSegments {
    /// Segment `number`, the last one or one behind it, has at least `len` bytes of metadata log.
    pub(super) fn reach(&mut self, number: u64, len: u64) {
        self.least = if number > self.last { len } else { self.least.max(len) };
        self.last = self.last.max(number);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(b"LIVE");
        out.u32(if self.each_write { EACH_WRITE } else { u32::from(self.durable) });
        out.u64(self.first);
        out.u64(self.last);
        out.u64(self.least);
        seal(out)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = open(bytes)?;
        if from.raw(4).ok()? != b"LIVE" {
            return None;
        }
        let how = from.u32().ok()?;
        let (durable, each_write) = (matches!(how, 1 | EACH_WRITE), how == EACH_WRITE);
        let mut next = || from.u64().ok();
        Some(Self { durable, each_write, first: next()?, last: next()?, least: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_and_damaged_ones_say_nothing() {
        let sighting = Sighting { modified: 1, len: 2, born: 3, seen: 4, head: (5, 6) };
        let live = LiveSegments { first: 7, last: 9, least: 60, durable: true, each_write: true };
        let (one, other) = (sighting.encode(), live.encode());
        assert_eq!((one.len(), other.len()), (SLOT, SLOT));
        assert_eq!((Sighting::decode(&one), LiveSegments::decode(&other)), (Some(sighting), Some(live)));
        assert_eq!((Sighting::decode(&other), LiveSegments::decode(&one)), (None, None));
        for at in 0..SLOT {
            let (mut one, mut other) = (one.clone(), other.clone());
            one[at] ^= 1;
            other[at] ^= 1;
            assert_eq!((Sighting::decode(&one), LiveSegments::decode(&other)), (None, None), "{at}");
        }
        assert_eq!(Sighting::decode(&[]), None);
    }
}
