//! Snappy streams of C-Blosc: the decoded size, then literals and matches, told apart by the two lowest bits of a tag byte.

use crate::lz_matcher::{self, Room, Sink, Table};

/// Largest distance and length of a 3-byte match.
const FARTHEST: usize = 65535;
const LONGEST: usize = 64;

/// Compresses `plain` into the front of `out`. Returns `None` if it does not fit.
pub(super) fn encode(plain: &[u8], out: &mut [u8], places: &mut Table) -> Option<usize> {
    let mut writer = Writer(Room::new(out));
    let mut size = plain.len();
    while size >= 0x80 {
        writer.0.put(&[size as u8 | 0x80]).then_some(())?;
        size >>= 7;
    }
    writer.0.put(&[size as u8]).then_some(())?;
    lz_matcher::find(plain, places, FARTHEST, 0, &mut writer).then_some(writer.0.filled())
}

struct Writer<'a>(Room<'a>);

impl Sink for Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) -> bool {
        bytes.chunks(1 << 16).all(|run| {
            let last = run.len() - 1;
            let tag = match last {
                0..60 => self.0.put(&[(last as u8) << 2]),
                60..256 => self.0.put(&[60 << 2, last as u8]),
                _ => self.0.put(&[61 << 2, last as u8, (last >> 8) as u8]),
            };
            tag && self.0.put(run)
        })
    }

    fn reference(&mut self, distance: usize, mut len: usize) -> bool {
        while len > 0 {
            let now = len.min(LONGEST);
            if !self.0.put(&[((now - 1) as u8) << 2 | 2, distance as u8, (distance >> 8) as u8]) {
                return false;
            }
            len -= now;
        }
        true
    }
}

/// Decompresses a stream, which must fill `plain` exactly.
pub(super) fn decode(stream: &[u8], plain: &mut [u8]) -> Option<()> {
    let (mut rest, mut size) = (stream, 0u64);
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        size |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    if size != plain.len() as u64 {
        return None;
    }
    let mut end = 0usize;
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        let upper = usize::from(tag >> 2);
        let (distance, len) = match tag & 3 {
            0 => {
                let len = if upper < 60 { upper } else { little_endian(&mut rest, upper - 59)? } + 1;
                let (run, behind) = rest.split_at_checked(len)?;
                plain.get_mut(end..end.checked_add(len)?)?.copy_from_slice(run);
                (rest, end) = (behind, end + len);
                continue;
            }
            1 => (usize::from(tag >> 5) << 8 | little_endian(&mut rest, 1)?, (upper & 7) + 4),
            2 => (little_endian(&mut rest, 2)?, upper + 1),
            _ => (little_endian(&mut rest, 4)?, upper + 1),
        };
        lz_matcher::copy_back(plain, end, distance, len)?;
        end += len;
    }
    (end == plain.len()).then_some(())
}

/// Reads a little-endian number of `width` bytes from `rest`.
fn little_endian(rest: &mut &[u8], width: usize) -> Option<usize> {
    let (bytes, behind) = rest.split_at_checked(width)?;
    *rest = behind;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
