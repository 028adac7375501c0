//! The header of a metadata log segment. Data log segments have none.

use super::header::Id;
use super::wire::{Decoder, Encoder};
use super::{VERSION, corrupt};
use hyperslab_core::Result;

const MAGIC: &[u8; 8] = b"HSLBSEGM";
/// Encoded length.
pub(super) const LEN: usize = 60;

/// Identifies a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub journal: Id,
    pub number: u64,
    /// Sequence number of the first record.
    pub first: u64,
    /// All earlier records were completed when the segment was created.
    pub done_before: u64,
}

impl SegmentHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(MAGIC);
        out.u32(VERSION);
        out.u32(0);
        out.raw(&self.journal.0);
        out.u64(self.number);
        out.u64(self.first);
        out.u64(self.done_before);
        let crc = crc32c::crc32c(&out.0);
        out.u32(crc);
        out.0
    }

    /// Decodes [`LEN`] untrusted bytes; refuses the header of another segment.
    pub fn decode(bytes: &[u8], journal: &Id, number: u64) -> Result<Self> {
        let mut from = Decoder(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(corrupt("a segment does not begin like one"));
        }
        let (version, nothing) = (from.u32()?, from.u32()?);
        if version != VERSION || nothing != 0 {
            return Err(corrupt(format!("a segment has format version {version}")));
        }
        let head =
            Self { journal: Id(from.bytes16()?), number: from.u64()?, first: from.u64()?, done_before: from.u64()? };
        if from.u32()? != crc32c::crc32c(&bytes[..LEN - 4]) {
            return Err(corrupt("the checksum of a segment's head is wrong"));
        }
        from.end()?;
        match head.journal == *journal && head.number == number && head.first > 0 && head.done_before <= head.first {
            true => Ok(head),
            false => Err(corrupt("a segment belongs elsewhere")),
        }
    }
}
