//! The data of a test: made before a write, expected after a read.

use crate::settings::Packets;
use hyperslab_core::{DataRules, Datatype, Fill, Result, Selection};
use hyperslab_kernels::ior::Writers;

/// Bytes of a word.
const WORD: u64 = 8;
/// Words from one that holds the offset to the next.
const PAGE: u64 = 512;
/// The multiplier of IOR's random words.
const MULTIPLIER: u64 = 0x9e37_ffff_fffc_0001;

/// The data of one container.
#[derive(Debug)]
pub enum Data {
    /// Every element from its place, with this seed.
    ByPlace(u64),
    /// IOR's words.
    Words(Words),
}

/// IOR's words: what a rank writes in one transfer.
#[derive(Debug)]
pub struct Words {
    /// Which of them.
    pub packets: Packets,
    /// The signature.
    pub signature: u32,
    /// Who writes what.
    pub writers: Writers,
    /// Bytes of a transfer; words count from its beginning.
    pub transfer: u64,
}

/// The data of one array of the container.
#[derive(Debug)]
pub enum ArrayData<'a> {
    /// Every element from its place.
    ByPlace(DataRules),
    /// IOR's words, from this byte of the container on.
    Words(&'a Words, u64),
}

impl Data {
    /// Those of the array `name`, which begins at byte `base` of the container.
    pub fn of_array(&self, dtype: &Datatype, name: &str, base: u64) -> Result<ArrayData<'_>> {
        Ok(match self {
            Self::ByPlace(seed) => ArrayData::ByPlace(DataRules::new(dtype, &Fill::Random, name, *seed)?),
            Self::Words(words) => ArrayData::Words(words, base),
        })
    }
}

impl ArrayData<'_> {
    /// Fills `bytes` with the elements of `selection`, in an array of `shape` whose elements have `element` bytes.
    pub fn fill(&self, shape: &[u64], selection: &Selection, element: u64, bytes: &mut [u8]) -> Result<()> {
        match self {
            Self::ByPlace(rules) => {
                rules.stream(shape, selection)?.next_into(bytes);
            }
            Self::Words(words, base) => {
                let mut done = 0;
                for run in selection.runs(shape, element)? {
                    let length = run.len as usize;
                    words.fill(base + run.offset, &mut bytes[done..done + length]);
                    done += length;
                }
            }
        }
        Ok(())
    }
}

impl Words {
    /// Fills `bytes` with those of the container from `offset` on. Both are multiples of a word.
    pub fn fill(&self, offset: u64, bytes: &mut [u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let inside = at % self.transfer;
            let length = (self.transfer - inside).min(rest.len() as u64);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(length as usize);
            self.fill_transfer(at - inside, inside / WORD, part);
            (at, rest) = (at + length, after);
        }
    }

    /// Fills `part` with the words of the transfer at `item`, from word `first` on.
    fn fill_transfer(&self, item: u64, first: u64, part: &mut [u8]) {
        let rank = self.writers.rank_at(item) as u64;
        // A signature is a signed number that sums extend.
        let signature = i64::from(self.signature as i32) as u64;
        let counted = |index: u64| (rank << 32) | signature.wrapping_add(index);
        let paged = |index: u64, word: u64| {
            let page = (index / PAGE + 1) as u32;
            if index.is_multiple_of(PAGE) { (rank << 32) | u64::from((item as u32).wrapping_mul(page)) } else { word }
        };
        let words = part.chunks_exact_mut(WORD as usize).zip(first..);
        match self.packets {
            Packets::ByPlace | Packets::Timestamp => {
                words.for_each(|(to, index)| to.copy_from_slice(&counted(index).to_le_bytes()));
            }
            Packets::Offset => {
                words.for_each(|(to, index)| to.copy_from_slice(&paged(index, counted(index)).to_le_bytes()));
            }
            Packets::Incompressible => {
                let mut state = self.signature.wrapping_add(rank as u32);
                let high = u64::from(c_rand_r(&mut state));
                let word = (high << 32) | u64::from(c_rand_r(&mut state));
                words.for_each(|(to, index)| to.copy_from_slice(&paged(index, word).to_le_bytes()));
            }
            Packets::Random => {
                let mut seed = self.signature.wrapping_add(rank as u32).wrapping_add(item as u32);
                let mut state = u64::from(c_rand_r(&mut seed));
                let mut next = || {
                    state = state.wrapping_mul(MULTIPLIER) >> 3;
                    state
                };
                (0..first).for_each(|_| {
                    next();
                });
                words.for_each(|(to, _)| to.copy_from_slice(&next().to_le_bytes()));
            }
        }
    }
}

/// `rand_r` of the GNU C library.
fn c_rand_r(state: &mut u32) -> u32 {
    let mut draw = |modulus: u32| {
        *state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (*state >> 16) % modulus
    };
    let mut result = draw(2048);
    for _ in 0..2 {
        result = (result << 10) ^ draw(1024);
    }
    result
}

/// What a comparison found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Bytes that differ.
    pub bytes: u64,
    /// Transfers with such bytes.
    pub transfers: u64,
    /// Bytes compared.
    pub compared: u64,
    /// Where the first lies, and what is there.
    pub first: Option<String>,
}

impl Wrong {
    /// Compares one transfer that begins at byte `offset` of `array`.
    pub fn compare(&mut self, array: &str, offset: u64, expected: &[u8], found: &[u8]) {
        self.compared += expected.len() as u64;
        if expected == found {
            return;
        }
        let differing = expected.iter().zip(found).enumerate().filter(|(_, (expected, found))| expected != found);
        let mut places = differing.map(|(at, _)| at);
        let Some(first) = places.next() else { return };
        self.bytes += 1 + places.count() as u64;
        self.transfers += 1;
        if self.first.is_none() {
            let word = first / 8 * 8;
            let hex = |bytes: &[u8]| {
                bytes[word..(word + 8).min(bytes.len())].iter().map(|b| format!("{b:02x}")).collect::<String>()
            };
            self.first = Some(format!(
                "transfer at byte {offset} of {array}: byte {first} is the first that differs, {} instead of {}",
                hex(found),
                hex(expected)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(packets: Packets, signature: u32) -> Words {
        Words { packets, signature, writers: Writers::Blocks { block: 8192, ranks: 2 }, transfer: 8192 }
    }

    fn filled(words: &Words, offset: u64, length: usize) -> Vec<u64> {
        let mut bytes = vec![0; length];
        words.fill(offset, &mut bytes);
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    #[test]
    fn a_timestamp_is_rank_and_signature_plus_index() {
        let found = filled(&words(Packets::Timestamp, 27), 8192, 8192);
        assert_eq!((found[0], found[1], found[1023]), ((1 << 32) | 27, (1 << 32) | 28, (1 << 32) | (27 + 1023)));
        assert_eq!(filled(&words(Packets::Timestamp, 27), 2 * 8192 + 16, 8), [29]);
        // A signature with its highest bit set extends over the rank.
        assert_eq!(filled(&words(Packets::Timestamp, u32::MAX), 0, 16), [u64::MAX, 0]);
    }

    #[test]
    fn every_page_begins_with_the_offset() {
        let found = filled(&words(Packets::Offset, 27), 3 * 8192, 8192);
        assert_eq!((found[0], found[512]), ((1 << 32) | (3 * 8192), (1 << 32) | (2 * 3 * 8192)));
        assert_eq!(found[1], (1 << 32) | 28);
        let found = filled(&words(Packets::Incompressible, 27), 0, 8192);
        assert!(
            found[0] == 0 && found[512] == 0 && found[1] == found[2] && found[1] == (2_125_203_527 << 32 | 290_371_164)
        );
    }

    #[test]
    fn a_part_is_a_part_of_the_whole() {
        for packets in [Packets::Timestamp, Packets::Offset, Packets::Incompressible, Packets::Random] {
            let words = words(packets, 5);
            let whole = filled(&words, 0, 32768);
            assert_eq!(filled(&words, 4096 - 8, 16384), whole[511..511 + 2048], "{packets:?}");
        }
    }

    #[test]
    fn wrong_bytes_are_counted() {
        let mut wrong = Wrong::default();
        wrong.compare("data", 0, &[1, 2, 3], &[1, 2, 3]);
        assert_eq!((wrong.bytes, wrong.transfers, wrong.compared), (0, 0, 3));
        wrong.compare("data", 96, &[0; 16], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 7]);
        assert_eq!((wrong.bytes, wrong.transfers), (2, 1));
        let first = wrong.first.unwrap_or_default();
        assert!(
            first.contains("byte 96") && first.contains("byte 9 ") && first.contains("0007000000000007"),
            "{first}"
        );
    }
}
