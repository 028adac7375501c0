//! Encoding of block headers.

use super::super::file_names;

/// Length of a block including its header.
pub const BLOCK: u64 = 1 << 20;
pub const HEAD: usize = 256;
/// Payload length of a block.
pub const PAYLOAD: u64 = BLOCK - HEAD as u64;

const MAGIC: &[u8; 8] = b"HSLBNODE";
const VERSION: u32 = 1;
/// Offset of the name.
const NAME: usize = 32;

/// Encodes the header of block `index` of segment file `name`; `None` if the name is too long.
pub fn encode(name: &str, index: u64) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&u32::try_from(name.len()).ok()?.to_le_bytes());
    head[16..24].copy_from_slice(&index.to_le_bytes());
    head.get_mut(NAME..NAME + name.len())?.copy_from_slice(name.as_bytes());
    let crc = checksum(&head);
    head[24..28].copy_from_slice(&crc.to_le_bytes());
    Some(head)
}

/// Decodes a block header; `None` if it is invalid.
pub fn decode(head: &[u8; HEAD]) -> Option<(&str, u64)> {
    let number = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let index = u64::from_le_bytes(head[16..24].try_into().ok()?);
    let len = number(12)? as usize;
    let whole = &head[..8] == MAGIC && number(8)? == VERSION && number(24)? == checksum(head);
    let name = head.get(NAME..NAME.checked_add(len)?).filter(|_| whole)?;
    std::str::from_utf8(name).ok().filter(|name| file_names::is_segment(name)).map(|name| (name, index))
}

/// Checksum of the header except the checksum itself.
fn checksum(head: &[u8; HEAD]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..24]), &head[28..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn any_change_is_noticed() {
        let name = format!("hyperslab-{:032x}-7-{:032x}.00000003.data", 1, 2);
        let head = encode(&name, 5).unwrap();
        assert_eq!(decode(&head), Some((name.as_str(), 5)));
        for bit in 0..HEAD * 8 {
            let mut changed = head;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&changed), None, "bit {bit}");
        }
        assert_eq!(decode(&[0; HEAD]), None);
        assert_eq!(decode(&encode("../../etc/passwd", 0).unwrap()), None);
        assert!(encode(&"x".repeat(HEAD), 0).is_none());
    }
}
