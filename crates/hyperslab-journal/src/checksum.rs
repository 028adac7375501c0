//! Checksums: CRC-32C, begun with what the bytes belong to, so that bytes of another journal are not taken for ours.

use super::header::Id;

/// The checksum with which those of a segment's records begin.
pub(super) fn seed(journal: &Id, segment: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&journal.0), &segment.to_le_bytes())
}

/// The checksum of `bytes` after `before`.
pub(super) fn extend(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// Bytes of a write between two of its marks.
pub const CHECKSUM_STEP: u64 = 64 << 10;

/// The checksum of bytes that come in pieces.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub crc: u32,
    /// What it was after each [`CHECKSUM_STEP`] of bytes that others followed: with these, each step can be checked by itself.
    pub marks: Vec<u32>,
    len: u64,
}

impl Marked {
    pub fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let left = CHECKSUM_STEP - self.len % CHECKSUM_STEP;
            if left == CHECKSUM_STEP && self.len > 0 {
                self.marks.push(self.crc);
            }
            let (now, later) = bytes.split_at(bytes.len().min(left as usize));
            self.crc = extend(self.crc, now);
            self.len += now.len() as u64;
            bytes = later;
        }
    }
}

/// How many marks so many bytes have.
pub(super) fn marks(len: u64) -> u64 {
    len.div_ceil(CHECKSUM_STEP).saturating_sub(1)
}
