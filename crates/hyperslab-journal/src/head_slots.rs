//! Two fixed slots behind a head of version 2: what its writer last saw of the container, and which segments are live.
//!
//! A slot has 64 bytes at a multiple of 64, so one write replaces it as a whole. A slot whose checksum is wrong says nothing.

use super::wire::{Decoder, Encoder};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a slot.
pub(super) const SLOT: usize = 64;

/// What the writer of a journal, or a recovery, saw of the container when it looked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sighting {
    /// When the container's bytes had been changed last; 0 for unknown. Nanoseconds since 1970, as all times here.
    pub modified: u64,
    /// Its bytes.
    pub len: u64,
    /// When it was made; 0 for unknown.
    pub born: u64,
    /// When the writer looked.
    pub seen: u64,
    /// Device and inode of the head file itself: a copy has others. Zeros for unknown.
    pub head: (u64, u64),
}

/// The segments whose records may count: from the first to the last. Where the first is behind the last, there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSegments {
    /// Segments before it are done, though their files may still be there.
    pub first: u64,
    /// A segment behind it has no acknowledged record.
    pub last: u64,
    /// Whether it is made durable before files are removed, so that it holds after a loss of power too.
    pub durable: bool,
}

/// Where the slots begin, behind a head of so many bytes.
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
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(b"LIVE");
        out.u32(u32::from(self.durable));
        out.u64(self.first);
        out.u64(self.last);
        seal(out)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = open(bytes)?;
        if from.raw(4).ok()? != b"LIVE" {
            return None;
        }
        let durable = from.u32().ok()? == 1;
        Some(Self { durable, first: from.u64().ok()?, last: from.u64().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_and_damaged_ones_say_nothing() {
        let sighting = Sighting { modified: 1, len: 2, born: 3, seen: 4, head: (5, 6) };
        let live = LiveSegments { first: 7, last: 9, durable: true };
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
