//! Generations of the index: the updates of all ranks at one flush.
//!
//! A head of 48 bytes, then the body: for each rank the length of its part (64 bits) and the part. Numbers are
//! little-endian. The head is written last: a generation whose head is all zeros is unfinished and ignored.

use super::entry::{IndexUpdate, corrupt, decode};
use hyperslab_core::Result;
use hyperslab_journal::wire::{Decoder, Encoder};

const MAGIC: &[u8; 8] = b"HSLBLAYT";
const VERSION: u32 = 1;
/// Length of the head.
pub(super) const HEAD: usize = 48;

/// The head of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub generation: u64,
    /// The preceding finished generation; 0 for none.
    pub previous: u64,
    pub len: u64,
    pub crc: u32,
}

impl Head {
    pub fn new(generation: u64, previous: u64, body: &[u8]) -> Self {
        Self { generation, previous, len: body.len() as u64, crc: crc32c::crc32c(body) }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(MAGIC);
        out.u32(VERSION);
        out.u32(0);
        out.u64(self.generation);
        out.u64(self.previous);
        out.u64(self.len);
        out.u32(self.crc);
        let crc = crc32c::crc32c(&out.0);
        out.u32(crc);
        out.0
    }

    /// Decodes a head; `None` if the generation is unfinished.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let mut from = Decoder(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(corrupt("it does not begin as an index does"));
        }
        match from.u32()? {
            VERSION => {}
            other => {
                return Err(corrupt(format!("it has version {other}, and this program knows version {VERSION}"))
                    .hint("read it with the version of hyperslab that wrote it"));
            }
        }
        let _flags = from.u32()?;
        let head = Self { generation: from.u64()?, previous: from.u64()?, len: from.u64()?, crc: from.u32()? };
        let crc = from.u32()?;
        from.end()?;
        match crc == crc32c::crc32c(&bytes[..HEAD - 4]) {
            true => Ok(Some(head)),
            false => Err(corrupt("the checksum of its head is wrong")),
        }
    }

    /// Checks the checksum of a body.
    pub fn check(&self, body: &[u8]) -> Result<()> {
        match self.len == body.len() as u64 && self.crc == crc32c::crc32c(body) {
            true => Ok(()),
            false => Err(corrupt("its checksum is wrong")),
        }
    }
}

/// Concatenates the parts of all ranks to a body.
pub(super) fn join(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Encoder::default();
    for part in parts {
        out.u64(part.len() as u64);
        out.raw(part);
    }
    out.0
}

/// Decodes the updates of a body, in order of precedence.
pub(super) fn split(body: &[u8]) -> Result<Vec<IndexUpdate>> {
    let (mut from, mut all) = (Decoder(body), Vec::new());
    while !from.0.is_empty() {
        let len = usize::try_from(from.u64()?).map_err(|_| corrupt("a part is too long"))?;
        all.extend(decode(from.raw(len)?)?);
    }
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::entry::tests::{encoded, samples};
    use super::*;

    #[test]
    fn generations_round_trip_and_no_bit_may_change() {
        let body = join(&[encoded(&samples()), Vec::new(), encoded(&samples()[..1])]);
        assert_eq!(split(&body).unwrap(), [&samples()[..], &samples()[..1]].concat());
        let head = Head::new(7, 5, &body);
        let bytes = head.encode();
        assert_eq!((bytes.len(), Head::decode(&bytes).unwrap()), (HEAD, Some(head)));
        head.check(&body).unwrap();
        assert_eq!(Head::decode(&[0; HEAD]).unwrap(), None);
        for bit in 0..HEAD * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&other).is_err(), "bit {bit}");
        }
        for bit in 0..body.len() * 8 {
            let mut other = body.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(head.check(&other).is_err(), "bit {bit}");
            let _ = split(&other);
        }
        for len in 0..HEAD {
            assert!(Head::decode(&bytes[..len]).is_err() || len == 0);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_taken_or_refused(noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = split(&noise);
            let _ = Head::decode(&noise);
        }
    }
}
