//! LZF, as h5py writes it: a control byte below 32 starts literals, any other a match.

use crate::codec_contexts::CodecContexts;
use crate::errors::corrupt;
use crate::lz_matcher::{self, Sink};
use crate::scratch::Scratch;
use hyperslab_core::Result;

const NAME: &str = "lzf";
const MOST_LITERALS: usize = 32;
const FARTHEST: usize = 1 << 13;
/// Maximum match length: 2 implied, up to 7 in the control byte, up to 255 in the byte after it.
const LONGEST: usize = 2 + 7 + 255;

/// Upper bound of the encoded size of `plain` bytes.
pub(crate) fn limit(plain: usize) -> usize {
    plain.saturating_add(plain / MOST_LITERALS).saturating_add(64)
}

/// Encodes `plain`.
pub(crate) fn encode(plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> usize {
    let mut writer = Writer { out: out.room(limit(plain.len())), end: 0 };
    // Cannot fail: the buffer has room for the worst case, all literals.
    lz_matcher::find(plain, &mut contexts.places, FARTHEST, 0, &mut writer);
    writer.end
}

struct Writer<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }
}

impl Sink for Writer<'_> {
    fn literals(&mut self, bytes: &[u8]) -> bool {
        for run in bytes.chunks(MOST_LITERALS) {
            self.put(&[run.len() as u8 - 1]);
            self.put(run);
        }
        true
    }

    fn reference(&mut self, distance: usize, mut len: usize) -> bool {
        let back = distance - 1;
        while len > 0 {
            // The rest must be long enough for a match of its own: 3 bytes at least.
            let now = if len <= LONGEST { len } else { LONGEST.min(len - 3) };
            let (high, low) = ((back >> 8) as u8, back as u8);
            match now - 2 {
                short @ 0..7 => self.put(&[(short as u8) << 5 | high, low]),
                long => self.put(&[7 << 5 | high, (long - 7) as u8, low]),
            }
            len -= now;
        }
        true
    }
}

/// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
pub(crate) fn decode(stored: &[u8], plain: &mut [u8]) -> Result<Option<usize>> {
    let cut = || corrupt(NAME, "the last part is cut off");
    let (mut rest, mut end) = (stored, 0);
    while let Some((&control, behind)) = rest.split_first() {
        let control = control as usize;
        if control < MOST_LITERALS {
            let (run, behind) = behind.split_at_checked(control + 1).ok_or_else(cut)?;
            let Some(to) = plain.get_mut(end..end + run.len()) else { return Ok(None) };
            to.copy_from_slice(run);
            (rest, end) = (behind, end + run.len());
            continue;
        }
        let (more, behind) = match control >> 5 {
            7 => behind.split_first().map(|(more, behind)| (*more as usize, behind)).ok_or_else(cut)?,
            _ => (0, behind),
        };
        let (&low, behind) = behind.split_first().ok_or_else(cut)?;
        let (distance, len) = ((control & 31) << 8 | low as usize, (control >> 5) + more + 2);
        if distance + 1 > end {
            return Err(corrupt(NAME, "a reference points before the beginning"));
        }
        if lz_matcher::copy_back(plain, end, distance + 1, len).is_none() {
            return Ok(None);
        }
        (rest, end) = (behind, end + len);
    }
    Ok(Some(end))
}
