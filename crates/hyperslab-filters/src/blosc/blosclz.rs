//! BloscLZ, Blosc's own compressor: like LZF, with longer and farther matches.

use crate::lz_matcher::{self, Room, Sink, Table};

const MOST_LITERALS: usize = 32;
/// Largest distance, less one, of a 2-byte match; this value marks a match with two more distance bytes.
const NEAR: usize = 8191;
const FARTHEST: usize = NEAR + 65535;
/// Decoders require literals at the end.
const TAIL: usize = 8;

/// Compresses `plain` into the front of `out`. Returns `None` if it does not fit.
pub(super) fn encode(plain: &[u8], out: &mut [u8], places: &mut Table) -> Option<usize> {
    let mut writer = Writer(Room::new(out));
    lz_matcher::find(plain, places, FARTHEST, TAIL, &mut writer).then_some(writer.0.filled())
}

struct Writer<'a>(Room<'a>);

impl Sink for Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) -> bool {
        bytes.chunks(MOST_LITERALS).all(|run| self.0.put(&[run.len() as u8 - 1]) && self.0.put(run))
    }

    fn reference(&mut self, distance: usize, len: usize) -> bool {
        let back = distance - 1;
        let near = back.min(NEAR);
        let (high, low) = ((near >> 8) as u8, near as u8);
        let put = match len - 2 {
            short @ 0..7 => self.0.put(&[(short as u8) << 5 | high]),
            long => {
                let mut more = long - 7;
                let mut put = self.0.put(&[7 << 5 | high]);
                while put && more >= 255 {
                    put = self.0.put(&[255]);
                    more -= 255;
                }
                put && self.0.put(&[more as u8])
            }
        };
        put && self.0.put(&[low]) && (near < NEAR || self.0.put(&((back - NEAR) as u16).to_be_bytes()))
    }
}

/// Decompresses a stream, which must fill `plain` exactly.
pub(super) fn decode(stream: &[u8], plain: &mut [u8]) -> Option<()> {
    let (mut rest, mut end) = (stream, 0);
    let mut first = true;
    while let Some((&control, behind)) = rest.split_first() {
        // The first token cannot be a match; its upper bits once held a version.
        let control = if first { control & 31 } else { control } as usize;
        first = false;
        if control < MOST_LITERALS {
            let (run, behind) = behind.split_at_checked(control + 1)?;
            plain.get_mut(end..end + run.len())?.copy_from_slice(run);
            (rest, end) = (behind, end + run.len());
            continue;
        }
        let (mut len, mut behind) = ((control >> 5) + 2, behind);
        if control >> 5 == 7 {
            loop {
                let (&more, after) = behind.split_first()?;
                (len, behind) = (len + more as usize, after);
                if more < 255 {
                    break;
                }
            }
        }
        let (&low, mut behind) = behind.split_first()?;
        let mut back = (control & 31) << 8 | low as usize;
        if back == NEAR {
            let (far, after) = behind.split_first_chunk()?;
            back = NEAR + u16::from_be_bytes(*far) as usize;
            behind = after;
        }
        lz_matcher::copy_back(plain, end, back + 1, len)?;
        (rest, end) = (behind, end + len);
    }
    (end == plain.len()).then_some(())
}
