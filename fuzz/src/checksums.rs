//! Lengths and checksums, put right: otherwise a fuzzer would see little but wrong checksums.

use hyperslab_journal::Id;

/// Bytes of a segment's head, of a record before its body, and of a checksum.
pub const SEGMENT: usize = 60;
const FIXED: usize = 16;
const CHECKSUM: usize = 4;

/// The checksum with which those of a segment's records begin.
pub fn seed(journal: &Id, segment: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&journal.0), &segment.to_le_bytes())
}

/// Ends bytes with the checksum of those before.
pub fn end(bytes: &mut [u8], seed: u32) {
    if let Some(at) = bytes.len().checked_sub(CHECKSUM) {
        let crc = crc32c::crc32c_append(seed, &bytes[..at]).to_le_bytes();
        bytes[at..].copy_from_slice(&crc);
    }
}

/// The head of a journal: its length and its checksum.
pub fn header(bytes: &mut [u8]) {
    if bytes.len() >= 20 {
        let len = (bytes.len() as u32).to_le_bytes();
        bytes[12..16].copy_from_slice(&len);
        end(bytes, 0);
    }
}

/// One record: its length, its check and its checksum.
pub fn record(bytes: &mut [u8], seed: u32) {
    if bytes.len() >= FIXED + CHECKSUM {
        let len = (bytes.len() as u32).to_le_bytes();
        bytes[..4].copy_from_slice(&len);
        let check = crc32c::crc32c_append(crc32c::crc32c_append(seed, &bytes[..6]), &bytes[8..FIXED]) as u16;
        bytes[6..8].copy_from_slice(&check.to_le_bytes());
        end(bytes, seed);
    }
}

/// A segment of records: its head and all of its records, as far as their lengths lead.
pub fn segment(bytes: &mut [u8], seed: u32) {
    let Some(head) = bytes.get_mut(..SEGMENT) else { return };
    end(head, 0);
    let mut at = SEGMENT;
    while let Some(len) = bytes.get(at..at + 4) {
        let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
        if len < FIXED + CHECKSUM {
            break;
        }
        let Some(found) = at.checked_add(len).and_then(|to| bytes.get_mut(at..to)) else { break };
        record(found, seed);
        at += len;
        // The data of a write may follow it, and four bytes more.
        let payload = match bytes.get(at - len..at) {
            Some(write) if write[4] == 2 && len >= 48 && write[20] == 0 => {
                write[32..40].iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte))
            }
            _ => continue,
        };
        let Some(next) = usize::try_from(payload).ok().and_then(|len| at.checked_add(len)?.checked_add(4)) else {
            break;
        };
        if let Some(data) = bytes.get(at..next - 4) {
            let crc = crc32c::crc32c(data).to_le_bytes();
            bytes[at - len + 40..at - len + 44].copy_from_slice(&crc);
            record(&mut bytes[at - len..at], seed);
        }
        at = next;
    }
}
