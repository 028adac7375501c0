//! Encoding of Blosc chunks.

use super::compressor::Compressor;
use super::prefilter::{self, Prefilter};
use super::{Blosc, Generation};
use crate::codec_contexts::CodecContexts;
use crate::scratch::Scratch;

const KIB: usize = 1 << 10;
/// Chunk versions written.
const FIRST: u8 = 2;
const SECOND: u8 = 5;
/// Largest element size, in bytes, for which blocks are split into streams.
const MOST_SPLITS: usize = 16;
/// Chunks smaller than this are stored uncompressed.
const SMALLEST: usize = 128;
const LARGEST_ELEMENT: usize = 255;

/// Header size.
pub(super) fn header_size(generation: Generation) -> usize {
    match generation {
        Generation::First => 16,
        Generation::Second => 32,
    }
}

/// Upper bound of the encoded size of `plain` bytes.
pub(super) fn room(plain: usize) -> usize {
    plain + header_size(Generation::Second)
}

/// Encodes `plain` as a chunk at the front of `out`, which has at least [`room`] bytes. Returns its size, or `None` if it is too
/// large for the format. Incompressible chunks are stored uncompressed.
pub(super) fn chunk(blosc: &Blosc, plain: &[u8], out: &mut [u8], contexts: &mut CodecContexts) -> Option<usize> {
    i32::try_from(room(plain.len())).ok()?;
    let element = if blosc.element > LARGEST_ELEMENT { 1 } else { blosc.element };
    let block = block_size(blosc, element, plain.len());
    let header = header_size(blosc.generation);
    let split = splits(blosc, element, block);
    let mut end = None;
    if blosc.level > 0 && plain.len() >= SMALLEST {
        let mut sorted = std::mem::take(&mut contexts.block);
        let mut between = std::mem::take(&mut contexts.between);
        let mut writer = Writer { blosc, element, split, contexts, out: &mut out[..header + plain.len()], end: header };
        end = writer.blocks(plain, block, &mut sorted, &mut between);
        (contexts.block, contexts.between) = (sorted, between);
    }
    let end = end.filter(|end| *end < header + plain.len());
    if end.is_none() {
        out[header..header + plain.len()].copy_from_slice(plain);
    }
    let size = end.unwrap_or(header + plain.len());
    let copied = if end.is_none() { 2 } else { 0 };
    let unsplit = if split { 0 } else { 0x10 };
    let prefilter = match (blosc.generation, blosc.prefilter) {
        (Generation::Second, _) => 5, // marks an extended header
        (_, Prefilter::Shuffle) => 1,
        (_, Prefilter::Bitshuffle) => 4,
        _ => 0,
    };
    let version = if blosc.generation == Generation::First { FIRST } else { SECOND };
    out[..4].copy_from_slice(&[
        version,
        1,
        prefilter | copied | unsplit | blosc.compressor.streams_number() << 5,
        element as u8,
    ]);
    for (place, number) in [(4, plain.len()), (8, block), (12, size)] {
        out[place..place + 4].copy_from_slice(&(number as i32).to_le_bytes());
    }
    if blosc.generation == Generation::Second {
        out[16..32].fill(0);
        out[21] = blosc.prefilter.number();
        out[22] = blosc.compressor.number();
    }
    Some(size)
}

struct Writer<'a> {
    blosc: &'a Blosc,
    element: usize,
    split: bool,
    contexts: &'a mut CodecContexts,
    out: &'a mut [u8],
    end: usize,
}

impl Writer<'_> {
    /// Encodes all blocks after the table of their start offsets. Returns their end, or `None` if there is too little room.
    fn blocks(&mut self, plain: &[u8], block: usize, sorted: &mut Scratch, between: &mut Scratch) -> Option<usize> {
        let mut start = self.end;
        self.end += 4 * plain.len().div_ceil(block);
        let mut reference = None;
        for part in plain.chunks(block) {
            let begin = (self.end as i32).to_le_bytes();
            self.out.get_mut(start..start + 4)?.copy_from_slice(&begin);
            start += 4;
            let (sorted, between) = (sorted.room(part.len()), between.room(part.len()));
            let ready = match self.blosc.prefilter {
                Prefilter::Shuffle if self.element > 1 => {
                    prefilter::shuffle(self.element, part, sorted);
                    sorted
                }
                Prefilter::Bitshuffle => {
                    prefilter::bit_shuffle(self.blosc.generation, self.element, part, sorted, between);
                    sorted
                }
                Prefilter::Delta => {
                    prefilter::delta_encode(self.element, part, reference, sorted);
                    sorted
                }
                _ => part,
            };
            reference = reference.or(Some(part));
            let stream = if self.split && part.len() == block { part.len() / self.element } else { part.len() };
            for stream in ready.chunks(stream) {
                self.stream(stream)?;
            }
        }
        Some(self.end)
    }

    fn stream(&mut self, plain: &[u8]) -> Option<()> {
        let room = self.out.get_mut(self.end + 4..)?;
        let most = room.len().min(plain.len() - 1);
        let size = match self.blosc.compressor.encode(self.blosc.level, plain, &mut room[..most], self.contexts) {
            Some(size) => size,
            None => {
                room.get_mut(..plain.len())?.copy_from_slice(plain);
                plain.len()
            }
        };
        self.out[self.end..self.end + 4].copy_from_slice(&(size as i32).to_le_bytes());
        self.end += 4 + size;
        Some(())
    }
}

/// Whether each block is split into one stream per byte of its elements. Decided as the C libraries do, since C-Blosc2 decodes
/// C-Blosc chunks by the same rule.
fn splits(blosc: &Blosc, element: usize, block: usize) -> bool {
    let fits = |smallest: usize| element <= MOST_SPLITS && block / element >= smallest && block.is_multiple_of(element);
    match (blosc.generation, blosc.compressor) {
        (Generation::First, compressor) => compressor != Compressor::Zstandard && fits(128),
        (Generation::Second, Compressor::BloscLz | Compressor::Lz4) => {
            blosc.prefilter == Prefilter::Shuffle && fits(32)
        }
        (Generation::Second, Compressor::Zstandard) => {
            blosc.prefilter == Prefilter::Shuffle && blosc.level <= 5 && fits(32)
        }
        _ => false,
    }
}

/// Block size in bytes, close to that of the C libraries: larger for higher levels and slower compressors.
fn block_size(blosc: &Blosc, element: usize, plain: usize) -> usize {
    if plain < element {
        return 1;
    }
    let mut block = plain;
    if blosc.block > 0 {
        block = blosc.block.max(SMALLEST);
    } else {
        if plain >= 32 * KIB {
            let thorough = blosc.compressor.is_thorough();
            block = if thorough { 64 * KIB } else { 32 * KIB };
            block = match blosc.level {
                0 => block / 4,
                1 => block / 2,
                2 => block,
                3 => block * 2,
                4 | 5 => block * 4,
                9 if thorough => block * 16,
                _ => block * 8,
            };
        }
        if blosc.level > 0 && splits(blosc, element, block / element * element) {
            block = match blosc.generation {
                Generation::First => (block.min(256 * KIB) * element).clamp(64 * KIB, 1024 * KIB),
                Generation::Second => {
                    let stream = match blosc.level {
                        0..=3 => 32 * KIB,
                        4..=6 => 64 * KIB,
                        7 => 128 * KIB,
                        8 => 256 * KIB,
                        _ => 512 * KIB,
                    };
                    (stream * element).clamp(32 * KIB, 4096 * KIB)
                }
            };
        }
    }
    block = block.min(plain);
    if block > element { block / element * element } else { block }
}
