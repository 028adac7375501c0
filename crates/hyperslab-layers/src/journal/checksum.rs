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
