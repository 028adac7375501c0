//! Decoding of Blosc chunks.

use super::compressor::StreamFormat;
use super::prefilter::{self, Prefilter};
use super::{Generation, number, size};
use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, unsupported};
use hyperslab_core::Result;

/// Header sizes: Blosc, and the extended header of Blosc2.
const SHORT: usize = 16;
const LONG: usize = 32;
/// Newest chunk version; Blosc2 uses 3 and above.
const NEWEST: u8 = 5;
/// Old Blosc chunks do not record whether blocks are split; these limits decide it.
const MOST_SPLITS: usize = 16;
const SMALLEST_SPLIT: usize = 128;

/// A chunk with a valid header.
pub(super) struct Chunk<'a> {
    who: &'static str,
    bytes: &'a [u8],
    content: Content<'a>,
    plain: usize,
    block: usize,
    element: usize,
}

/// Contents of a chunk.
enum Content<'a> {
    /// Uncompressed bytes.
    Copied(&'a [u8]),
    /// One repeated value.
    Repeated(Vec<u8>),
    /// Compressed blocks.
    Blocks(Blocks<'a>),
}

struct Blocks<'a> {
    generation: Generation,
    streams: StreamFormat,
    split: bool,
    /// Prefilters in the order of encoding, each with its element size.
    prefilter: Vec<(Prefilter, usize)>,
    /// Start offsets of blocks, four bytes each.
    starts: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Parses the header of the chunk at the front of `stored`.
    pub(super) fn parse(stored: &'a [u8], who: &'static str) -> Result<Self> {
        let wrong = |what: &str| corrupt(who, what);
        let &[version, _, flags, element, ..] = stored else { return Err(wrong("the header is cut off")) };
        let (plain, block, whole) = (size(stored, 4, who)?, size(stored, 8, who)?, size(stored, 12, who)?);
        if version > NEWEST || version == 0 {
            return Err(wrong("the version is unknown"));
        }
        let generation = if version > 2 { Generation::Second } else { Generation::First };
        let extended = generation == Generation::Second && flags & 5 == 5;
        let header = if extended { LONG } else { SHORT };
        let bytes = stored.get(..whole).filter(|bytes| bytes.len() >= header).ok_or_else(|| wrong("it is cut off"))?;
        let element = usize::from(element.max(1));
        if plain > 0 && (block == 0 || block > plain) {
            return Err(wrong("the size of blocks makes no sense"));
        }
        let special = if extended { bytes[31] >> 4 & 7 } else { 0 };
        let behind = &bytes[header..];
        let content = if plain == 0 {
            Content::Copied(&[])
        } else if special != 0 {
            Content::Repeated(repeated(special, element, behind).ok_or_else(|| wrong("the repeated value is unknown"))?)
        } else if flags & 2 != 0 {
            Content::Copied(behind.get(..plain).ok_or_else(|| wrong("it is cut off"))?)
        } else {
            if extended && bytes[31] & 0x89 != 0 {
                return Err(unsupported(who, "the chunk uses a dictionary, measures its codec, or lies elsewhere"));
            }
            let streams = StreamFormat::numbered(flags >> 5)
                .ok_or_else(|| unsupported(who, format!("streams of kind {} are unknown here", flags >> 5)))?;
            let prefilter = if extended {
                pipeline(bytes, element, who)?
            } else {
                prefilters_of_flags(flags, element, generation, who)?
            };
            let count = plain.div_ceil(block);
            let starts = behind.get(..4 * count).ok_or_else(|| wrong("it is cut off"))?;
            Content::Blocks(Blocks { generation, streams, split: flags & 0x10 == 0, prefilter, starts })
        };
        Ok(Self { who, bytes, content, plain, block, element })
    }

    /// The decoded size.
    pub(super) fn plain_size(&self) -> usize {
        self.plain
    }

    /// Block size in bytes; the last block may be smaller.
    pub(super) fn block_size(&self) -> usize {
        self.block
    }

    /// Whether blocks are delta-encoded against the first one.
    pub(super) fn needs_reference(&self) -> bool {
        let Content::Blocks(blocks) = &self.content else { return false };
        blocks.prefilter.iter().any(|(prefilter, _)| *prefilter == Prefilter::Delta)
    }

    /// Decodes the chunk into `plain`, which has exactly its size.
    pub(super) fn decode(&self, plain: &mut [u8], contexts: &mut CodecContexts) -> Result<()> {
        match &self.content {
            Content::Copied(bytes) => plain.copy_from_slice(bytes),
            Content::Repeated(value) => repeat(value, plain),
            Content::Blocks(_) => {
                let (first, others) = plain.split_at_mut(self.block);
                self.decode_block(0, first, None, contexts)?;
                for (index, block) in others.chunks_mut(self.block).enumerate() {
                    self.decode_block(index + 1, block, Some(first), contexts)?;
                }
            }
        }
        Ok(())
    }

    /// Decodes one block into `plain`, which has exactly its size. `reference` is the first block, for all later ones.
    pub(super) fn decode_block(
        &self,
        index: usize,
        plain: &mut [u8],
        reference: Option<&[u8]>,
        contexts: &mut CodecContexts,
    ) -> Result<()> {
        match &self.content {
            Content::Copied(bytes) => {
                let start = index * self.block;
                let from = bytes.get(start..start + plain.len()).ok_or_else(|| corrupt(self.who, "it is cut off"))?;
                plain.copy_from_slice(from);
                Ok(())
            }
            Content::Repeated(value) => {
                repeat(value, plain); // blocks are whole elements
                Ok(())
            }
            Content::Blocks(blocks) => {
                let mut sorted = std::mem::take(&mut contexts.block);
                let mut between = std::mem::take(&mut contexts.between);
                let result = match blocks.prefilter.as_slice() {
                    [] => self.decode_streams(blocks, index, plain, contexts),
                    [(Prefilter::Delta, element)] => {
                        let read = self.decode_streams(blocks, index, plain, contexts);
                        prefilter::delta_decode(*element, plain, reference);
                        read
                    }
                    prefilter => {
                        let (sorted, between) = (sorted.room(plain.len()), between.room(plain.len()));
                        let read = self.decode_streams(blocks, index, sorted, contexts);
                        undo_prefilters(blocks.generation, prefilter, sorted, plain, between, reference);
                        read
                    }
                };
                (contexts.block, contexts.between) = (sorted, between);
                result
            }
        }
    }

    /// Decompresses the streams of a block into `out`, which has exactly their size.
    fn decode_streams(
        &self,
        blocks: &Blocks,
        index: usize,
        out: &mut [u8],
        contexts: &mut CodecContexts,
    ) -> Result<()> {
        let wrong = |what: &str| corrupt(self.who, what);
        let mut place = size(blocks.starts, 4 * index, self.who)?;
        let whole = out.len() == self.block;
        let split = blocks.split && whole && self.may_split(blocks.generation);
        let stream = if split { out.len() / self.element } else { out.len() };
        if stream == 0 || !out.len().is_multiple_of(stream) {
            return Err(wrong("blocks are too small for their streams"));
        }
        for out in out.chunks_exact_mut(stream) {
            let stored = number(self.bytes, place).ok_or_else(|| wrong("a stream is cut off"))?;
            place += 4;
            match (stored, blocks.generation) {
                (0, Generation::Second) => out.fill(0),
                (-255..0, Generation::Second) => {
                    if self.bytes.get(place).is_none_or(|token| token & 1 == 0) {
                        return Err(wrong("a stream of unknown kind"));
                    }
                    place += 1;
                    out.fill(stored.unsigned_abs() as u8);
                }
                (1.., _) => {
                    let stored = stored as usize;
                    let stream = self.bytes.get(place..).and_then(|rest| rest.get(..stored));
                    let stream = stream.ok_or_else(|| wrong("a stream is cut off"))?;
                    place += stored;
                    if stream.len() == out.len() {
                        out.copy_from_slice(stream);
                    } else {
                        blocks.streams.decode(stream, out, contexts).ok_or_else(|| wrong("a stream cannot be read"))?;
                    }
                }
                _ => return Err(wrong("the size of a stream makes no sense")),
            }
        }
        Ok(())
    }

    fn may_split(&self, generation: Generation) -> bool {
        generation == Generation::Second || self.element <= MOST_SPLITS && self.block / self.element >= SMALLEST_SPLIT
    }
}

/// The value of a chunk of one repeated value.
fn repeated(special: u8, element: usize, behind: &[u8]) -> Option<Vec<u8>> {
    match (special, element) {
        (1 | 4, _) => Some(vec![0]), // 4: uninitialised, any value is right
        (2, 4) => Some(f32::NAN.to_le_bytes().to_vec()),
        (2, 8) => Some(f64::NAN.to_le_bytes().to_vec()),
        (3, _) => behind.get(..element).map(<[u8]>::to_vec),
        _ => None,
    }
}

fn repeat(value: &[u8], plain: &mut [u8]) {
    for element in plain.chunks_mut(value.len()) {
        element.copy_from_slice(&value[..element.len()]);
    }
}

/// Prefilters according to the flags of a short header.
fn prefilters_of_flags(
    flags: u8,
    element: usize,
    generation: Generation,
    who: &'static str,
) -> Result<Vec<(Prefilter, usize)>> {
    if flags & 8 != 0 {
        return Err(unsupported(who, "differences are unknown in chunks of this version"));
    }
    Ok(match generation {
        _ if flags & 1 != 0 && element > 1 => vec![(Prefilter::Shuffle, element)],
        _ if flags & 4 != 0 => vec![(Prefilter::Bitshuffle, element)],
        _ => Vec::new(),
    })
}

/// Prefilters of an extended header, without those that need no undoing.
fn pipeline(bytes: &[u8], element: usize, who: &'static str) -> Result<Vec<(Prefilter, usize)>> {
    const SLOTS: usize = 6;
    /// Truncates precision; irreversible, so nothing to undo.
    const ROUNDING: u8 = 4;
    let (steps, details) = (&bytes[SHORT..SHORT + SLOTS], &bytes[SHORT + 8..SHORT + 8 + SLOTS]);
    let mut prefilter = Vec::new();
    for (&step, &detail) in steps.iter().zip(details) {
        let known = Prefilter::numbered(u32::from(step), Generation::Second);
        match (known, detail) {
            (Some(Prefilter::None), _) => {}
            (None, _) if step == ROUNDING => {}
            (Some(step), 0) => prefilter.push((step, element)),
            (Some(Prefilter::Shuffle), detail) => prefilter.push((Prefilter::Shuffle, usize::from(detail))),
            _ => return Err(unsupported(who, format!("the step {step} is unknown here"))),
        }
    }
    if prefilter.iter().skip(1).any(|(step, _)| *step == Prefilter::Delta) {
        return Err(unsupported(who, "differences are known here only as the first step"));
    }
    Ok(prefilter)
}

/// Undoes the prefilters on `sorted`, with the result in `plain`.
fn undo_prefilters(
    generation: Generation,
    steps: &[(Prefilter, usize)],
    sorted: &mut [u8],
    plain: &mut [u8],
    between: &mut [u8],
    reference: Option<&[u8]>,
) {
    for (left, (step, element)) in steps.iter().enumerate().rev() {
        match step {
            Prefilter::Shuffle => prefilter::unshuffle(*element, sorted, plain),
            Prefilter::Bitshuffle => prefilter::bit_unshuffle(generation, *element, sorted, plain, between),
            Prefilter::Delta => {
                prefilter::delta_decode(*element, plain, reference);
                continue; // always the last to be undone
            }
            Prefilter::None => plain.copy_from_slice(sorted),
        }
        if left > 0 && steps[left - 1].0 != Prefilter::Delta {
            sorted.copy_from_slice(plain);
        }
    }
}
