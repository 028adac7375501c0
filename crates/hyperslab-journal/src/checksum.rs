//! CRC-32C checksums, seeded by journal and segment, so that stale bytes of another journal never match.

use super::header::Id;

/// The seed of the record checksums of a segment.
pub(super) fn seed(journal: &Id, segment: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&journal.0), &segment.to_le_bytes())
}

/// The checksum of `bytes` after `before`.
pub(super) fn extend(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// Distance of the intermediate checksums of a payload, in bytes.
pub const CHECKSUM_STEP: u64 = 64 << 10;

/// Incremental checksum with intermediate values.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub crc: u32,
    /// Its value after each full [`CHECKSUM_STEP`] except the last, so that each step can be verified by itself.
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

/// The number of intermediate checksums of a payload.
pub(super) fn marks(len: u64) -> u64 {
    len.div_ceil(CHECKSUM_STEP).saturating_sub(1)
}
