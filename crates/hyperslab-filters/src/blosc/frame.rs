//! Blosc2 frames: a header, one chunk, its offset index, and a trailer.
//!
//! Numbers in frames are msgpack: a type byte, then big-endian. Numbers in chunks are little-endian.

use super::Blosc;
use super::b2nd::B2nd;
use super::decode::Chunk;
use super::encode;
use crate::codec_contexts::CodecContexts;
use crate::errors::corrupt;
use crate::scratch::Scratch;
use hyperslab_core::Result;

const NAME: &str = "blosc2";
const MAGIC: &[u8] = b"\x9e\xa8b2frame\0";
/// Offsets of numbers in the header.
const HEADER_SIZE: usize = 0x0b;
const FRAME_SIZE: usize = 0x10;
const PLAIN_SIZE: usize = 0x1e;
const CHUNKS_SIZE: usize = 0x27;
const ELEMENT_SIZE: usize = 0x30;
const BLOCK_SIZE: usize = 0x35;
const CHUNK_SIZE: usize = 0x3a;
/// Size of a header without metalayers.
const SMALLEST: usize = 0x61;
/// The trailer: version, no variable-length metalayers, its own length, no fingerprint.
const TRAILER: [u8; 35] = {
    let mut trailer = [0; 35];
    let front = *b"\x94\x01\x93\xcd\x00\x06\xde\x00\x00\xdc\x00\x00\xce\x00\x00\x00\x23\xd8";
    let mut place = 0;
    while place < front.len() {
        trailer[place] = front[place];
        place += 1;
    }
    trailer
};
/// The offset index: an uncompressed chunk of eight bytes, the offset 0 of the only chunk.
const INDEX: [u8; 40] = {
    let mut index = [0; 40];
    (index[0], index[1], index[2], index[3]) = (5, 1, 7, 8);
    (index[4], index[8], index[12], index[21]) = (8, 8, 40, 1);
    index
};

/// Encodes `plain` as a frame. Returns `None` if it is too large for the format.
pub(super) fn encode(blosc: &Blosc, plain: &[u8], out: &mut Scratch, contexts: &mut CodecContexts) -> Option<usize> {
    let out = out.room(SMALLEST + encode::room(plain.len()) + INDEX.len() + TRAILER.len());
    let chunk = encode::chunk(blosc, plain, &mut out[SMALLEST..], contexts)?;
    let block = i32::from_le_bytes(*out[SMALLEST + 8..].first_chunk()?);
    let end = SMALLEST + chunk;
    let size = end + INDEX.len() + TRAILER.len();
    out[end..end + INDEX.len()].copy_from_slice(&INDEX);
    out[end + INDEX.len()..size].copy_from_slice(&TRAILER);
    let header = &mut out[..SMALLEST];
    header.fill(0);
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    let long = |kind: u8, number: usize| (kind, number as u64, 8);
    let short = |kind: u8, number: usize| (kind, number as u64, 4);
    for (place, (kind, number, width)) in [
        (HEADER_SIZE, short(0xd2, SMALLEST)),
        (FRAME_SIZE, long(0xcf, size)),
        (PLAIN_SIZE, long(0xd3, plain.len())),
        (CHUNKS_SIZE, long(0xd3, chunk)),
        (ELEMENT_SIZE, short(0xd2, blosc.element)),
        (BLOCK_SIZE, short(0xd2, block as usize)),
        (CHUNK_SIZE, short(0xd2, plain.len())),
    ] {
        header[place - 1] = kind;
        header[place..place + width].copy_from_slice(&number.to_be_bytes()[8 - width..]);
    }
    // Flags: version with 8-byte offsets, contiguous, compressor and level, split mode.
    header[0x18..0x1d].copy_from_slice(&[0xa4, 0x12, 0, blosc.compressor.number() | (blosc.level as u8) << 4, 3]);
    // Threads for compression and decompression; no variable-length metalayers.
    header[0x3e..0x45].copy_from_slice(&[0xd1, 0, 1, 0xd1, 0, 1, 0xc2]);
    (header[0x45], header[0x46]) = (0xd8, 6);
    (header[0x4c], header[0x4d]) = (blosc.prefilter.number(), blosc.compressor.number());
    header[0x57..].copy_from_slice(&[0x93, 0xcd, 0, 7, 0xde, 0, 0, 0xdc, 0, 0]);
    Some(size)
}

/// The decoded size according to the header.
pub(super) fn declared_size(stored: &[u8]) -> Option<u64> {
    let frame = Frame::parse(stored).ok()?;
    match &frame.b2nd {
        Some(b2nd) => Some(b2nd.plain_size() as u64),
        None => Some(frame.plain as u64),
    }
}

/// Decodes into the front of `plain`. Returns the decoded size, or `None` if `plain` is too small.
pub(super) fn decode(stored: &[u8], plain: &mut [u8], contexts: &mut CodecContexts) -> Result<Option<usize>> {
    let frame = Frame::parse(stored)?;
    let size = frame.b2nd.as_ref().map_or(frame.plain, B2nd::plain_size);
    let Some(plain) = plain.get_mut(..size) else { return Ok(None) };
    let place = frame.place(contexts)?;
    if place >> 63 == 1 {
        match place >> 56 & 7 {
            1 | 4 => plain.fill(0),
            _ => return Err(corrupt(NAME, "the only chunk repeats an unknown value")),
        }
        return Ok(Some(size));
    }
    let bytes = usize::try_from(place).ok().and_then(|place| frame.chunks.get(place..));
    let chunk = Chunk::parse(bytes.ok_or_else(|| corrupt(NAME, "the chunk lies outside"))?, NAME)?;
    match &frame.b2nd {
        Some(b2nd) => b2nd.decode(&chunk, plain, contexts)?,
        None if chunk.plain_size() == size => chunk.decode(plain, contexts)?,
        None => return Err(corrupt(NAME, "the chunk and its frame state different sizes")),
    }
    Ok(Some(size))
}

struct Frame<'a> {
    plain: usize,
    /// The chunk.
    chunks: &'a [u8],
    /// The bytes after the chunk.
    behind: &'a [u8],
    b2nd: Option<B2nd>,
}

impl<'a> Frame<'a> {
    fn parse(stored: &'a [u8]) -> Result<Self> {
        let wrong = |what: &str| corrupt(NAME, what);
        if stored.len() < SMALLEST || !stored.starts_with(MAGIC) {
            return Err(wrong("this is no frame"));
        }
        let header = number(stored, HEADER_SIZE, 4).filter(|size| *size >= SMALLEST);
        let header = header.and_then(|size| stored.get(..size)).ok_or_else(|| wrong("the header is cut off"))?;
        let chunks = number(stored, CHUNKS_SIZE, 8).and_then(|size| stored[header.len()..].split_at_checked(size));
        let (chunks, behind) = chunks.ok_or_else(|| wrong("the chunk is cut off"))?;
        let plain = number(stored, PLAIN_SIZE, 8).ok_or_else(|| wrong("the size makes no sense"))?;
        let element = number(stored, ELEMENT_SIZE, 4).ok_or_else(|| wrong("the size of elements makes no sense"))?;
        let b2nd = match extra(header, &[b"b2nd", b"caterva"])? {
            Some(bytes) => Some(B2nd::parse(bytes, element).ok_or_else(|| wrong("the shape makes no sense"))?),
            None => None,
        };
        Ok(Self { plain, chunks, behind, b2nd })
    }

    /// The offset of the only chunk; with the top bit set, a code for a repeated value instead.
    fn place(&self, contexts: &mut CodecContexts) -> Result<u64> {
        let index = Chunk::parse(self.behind, NAME)?;
        if index.plain_size() != 8 {
            return Err(corrupt(NAME, format!("{} bytes name chunks where one is expected", index.plain_size())));
        }
        let mut place = [0; 8];
        index.decode(&mut place, contexts)?;
        Ok(u64::from_le_bytes(place))
    }
}

/// The metalayer of one of these names in the header.
fn extra<'a>(header: &'a [u8], names: &[&[u8]]) -> Result<Option<&'a [u8]>> {
    let wrong = || corrupt(NAME, "what the header holds extra makes no sense");
    // A list of three: size, map of names to offsets, list of contents.
    let count = number(header, 0x5c, 2).ok_or_else(wrong)?;
    let mut place = 0x5e;
    for _ in 0..count {
        let name_size = usize::from(header.get(place).ok_or_else(wrong)? & 31);
        let name = header.get(place + 1..place + 1 + name_size).ok_or_else(wrong)?;
        place += 1 + name_size;
        let content = number(header, place + 1, 4).ok_or_else(wrong)?;
        place += 5;
        if names.contains(&name) {
            let size = content.checked_add(1).and_then(|place| number(header, place, 4)).ok_or_else(wrong)?;
            let bytes = header.get(content + 5..).and_then(|rest| rest.get(..size));
            return bytes.map(Some).ok_or_else(wrong);
        }
    }
    Ok(None)
}

/// The non-negative number of `width` bytes at `place`.
pub(super) fn number(bytes: &[u8], place: usize, width: usize) -> Option<usize> {
    let mut number = [0; 8];
    number[8 - width..].copy_from_slice(bytes.get(place..place.checked_add(width)?)?);
    let number = u64::from_be_bytes(number);
    // The top bit of the number is its sign.
    if width < 8 && width > 2 && number >> (8 * width - 1) == 1 {
        return None;
    }
    i64::try_from(number).ok().and_then(|number| usize::try_from(number).ok())
}
