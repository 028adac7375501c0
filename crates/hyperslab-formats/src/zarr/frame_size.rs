//! How much compressed data says it holds, read from its headers. Codecs allocate what these say, so a damaged or
//! hostile file is refused here first.

fn little(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let slice = bytes.get(at..at.checked_add(len)?)?;
    Some(slice.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// The size modulo 2^32 that the last member of a gzip file states.
pub fn gzip(stored: &[u8]) -> Option<u32> {
    (stored.len() >= 18).then(|| little(stored, stored.len() - 4, 4).map(|n| n as u32))?
}

/// The size that a blosc buffer states, if it also states its own length rightly.
pub fn blosc(stored: &[u8]) -> Option<u32> {
    let (holds, length) = (little(stored, 4, 4)?, little(stored, 12, 4)?);
    (length == stored.len() as u64).then_some(holds as u32)
}

/// The most that the frames of a zstd file can hold; `None` when they are malformed.
pub fn zstd(stored: &[u8]) -> Option<u64> {
    let mut at = 0;
    let mut total = 0u64;
    while at < stored.len() {
        let magic = little(stored, at, 4)?;
        if magic & 0xffff_fff0 == 0x184d_2a50 {
            at = at.checked_add(8)?.checked_add(usize::try_from(little(stored, at + 4, 4)?).ok()?)?;
            continue;
        }
        if magic != 0xfd2f_b528 {
            return None;
        }
        let (most, next) = zstd_frame(stored, at + 4)?;
        total = total.checked_add(most)?;
        at = next;
    }
    (at == stored.len() && at > 0).then_some(total)
}

/// One frame after its magic: (the most it can hold, where it ends).
fn zstd_frame(stored: &[u8], mut at: usize) -> Option<(u64, usize)> {
    const MAX_BLOCK: u64 = 128 << 10;
    let descriptor = little(stored, at, 1)?;
    let single_segment = descriptor >> 5 & 1 == 1;
    let has_checksum = descriptor >> 2 & 1 == 1;
    at += 1 + usize::from(!single_segment) + [0, 1, 2, 4][(descriptor & 3) as usize];
    let size_bytes = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let stated = if size_bytes == 0 { None } else { Some(little(stored, at, size_bytes)?) };
    let stated = if size_bytes == 2 { stated.map(|n| n + 256) } else { stated };
    at += size_bytes;
    let mut blocks = 0u64;
    loop {
        let header = little(stored, at, 3)?;
        let length = (header >> 3) as usize;
        blocks += 1;
        at = at.checked_add(3 + if header >> 1 & 3 == 1 { 1 } else { length })?;
        if header & 1 == 1 {
            break;
        }
    }
    at += if has_checksum { 4 } else { 0 };
    (at <= stored.len()).then_some((stated.unwrap_or(blocks * MAX_BLOCK), at))
}
