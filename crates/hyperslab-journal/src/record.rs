//! Encoding of the metadata log's records.

use super::wire::{Decoder, Encoder};
use super::{checksum, corrupt, selection_wire};
use hyperslab_core::{Datatype, Result, Selection};

/// Maximum length of a record without payload.
pub(super) const LONGEST: usize = 32 << 20;
/// Length of a record's fixed part: length, kind, check, sequence number.
pub(super) const FIXED: usize = 16;
/// Length of the checksum at its end.
pub(super) const CHECKSUM: usize = 4;
const LONGEST_NAME: usize = 64 << 10;
const LONGEST_TYPE: usize = 4 << 20;

/// Terminates a payload that follows its record. Not zero, so that a payload of zeros differs from one never written.
pub(super) const END: &[u8; 4] = b"HSLB";

const ARRAY: u16 = 1;
const WRITE: u16 = 2;
const CHECKPOINT: u16 = 3;

/// The location of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadPlace {
    /// Directly behind the record.
    Behind,
    /// In the data log, at this offset.
    Data(u64),
}

/// The payload of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payload {
    pub place: PayloadPlace,
    pub len: u64,
    pub crc: u32,
}

/// A decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// Assigns a number to an array within the segment.
    Array { number: u32, name: String, dtype: Datatype },
    /// Elements of an array, packed in row-major order.
    Write { array: u32, selection: Selection, payload: Payload },
    /// Every record before this sequence number is in the container.
    Checkpoint { before: u64 },
}

/// The type as text; `None` if it or the array's name is too long for a record.
pub(super) fn type_text(name: &str, dtype: &Datatype) -> Option<String> {
    let text = serde_json::to_string(dtype).ok()?;
    (name.len() <= LONGEST_NAME && text.len() <= LONGEST_TYPE).then_some(text)
}

/// Encodes an array record; the type is given as text.
pub(super) fn put_array(out: &mut Encoder, seed: u32, sequence: u64, number: u32, name: &str, dtype: &str) {
    put(out, seed, sequence, ARRAY, |body| {
        body.u32(number);
        body.counted(name.as_bytes());
        body.counted(dtype.as_bytes());
    });
}

/// Length of an array record.
pub(super) fn array_len(name: &str, dtype: &str) -> u64 {
    (FIXED + CHECKSUM + 12 + name.len() + dtype.len()) as u64
}

/// Encodes a write record.
pub(super) fn put_write(
    out: &mut Encoder,
    seed: u32,
    sequence: u64,
    array: u32,
    selection: &Selection,
    payload: &Payload,
) {
    put(out, seed, sequence, WRITE, |body| {
        body.u32(array);
        let (place, offset) = match payload.place {
            PayloadPlace::Behind => (0, 0),
            PayloadPlace::Data(offset) => (1, offset),
        };
        body.u32(place);
        body.u64(offset);
        body.u64(payload.len);
        body.u32(payload.crc);
        selection_wire::encode(selection, body);
    });
}

/// Length of a write record.
pub(super) fn write_len(selection: &Selection) -> u64 {
    (FIXED + CHECKSUM + 28) as u64 + selection_wire::encoded_len(selection)
}

/// Encodes a checkpoint record.
pub(super) fn put_checkpoint(out: &mut Encoder, seed: u32, sequence: u64, before: u64) {
    put(out, seed, sequence, CHECKPOINT, |body| body.u64(before));
}

fn put(out: &mut Encoder, seed: u32, sequence: u64, kind: u16, body: impl FnOnce(&mut Encoder)) {
    let begin = out.0.len();
    out.u32(0); // length, below
    out.u16(kind);
    out.u16(0); // check, below
    out.u64(sequence);
    body(out);
    let len = (out.0.len() - begin + CHECKSUM) as u32;
    out.0[begin..begin + 4].copy_from_slice(&len.to_le_bytes());
    let check = check_of(&out.0[begin..], seed);
    out.0[begin + 6..begin + 8].copy_from_slice(&check.to_le_bytes());
    let crc = checksum::extend(seed, &out.0[begin..]);
    out.u32(crc);
}

/// A 16-bit check of length, kind and sequence number: distinguishes a record cut off by the end of the file from one with
/// a corrupt length.
fn check_of(fixed: &[u8], seed: u32) -> u16 {
    checksum::extend(checksum::extend(seed, &fixed[..6]), &fixed[8..FIXED]) as u16
}

/// Whether a record may begin so: quick, and without an error for every byte that is none.
pub(super) fn may_begin(fixed: &[u8]) -> bool {
    let [a, b, c, d, kind, zero, ..] = *fixed else { return false };
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    (FIXED + CHECKSUM..=LONGEST).contains(&len) && zero == 0 && (ARRAY..=CHECKPOINT).contains(&u16::from(kind))
}

/// The length of the record whose fixed part this is, if it is plausible.
pub(super) fn len_of(fixed: &[u8], seed: u32) -> Result<usize> {
    let mut from = Decoder(fixed.get(..FIXED).ok_or_else(|| corrupt("a record is too short"))?);
    let (len, _, check) = (from.u32()? as usize, from.u16()?, from.u16()?);
    if check != check_of(fixed, seed) {
        return Err(corrupt("there is no record where one should be"));
    }
    match (FIXED + CHECKSUM..=LONGEST).contains(&len) {
        true => Ok(len),
        false => Err(corrupt(format!("a record of {len} bytes"))),
    }
}

/// Decodes a whole record from untrusted bytes; also returns its sequence number.
pub(super) fn decode(bytes: &[u8], seed: u32) -> Result<(u64, Record)> {
    if len_of(bytes, seed)? != bytes.len() {
        return Err(corrupt("the length of a record is wrong"));
    }
    let (content, crc) = bytes.split_at(bytes.len() - CHECKSUM);
    if checksum::extend(seed, content).to_le_bytes() != crc {
        return Err(corrupt("the checksum of a record is wrong"));
    }
    let mut from = Decoder(&content[4..]);
    let (kind, _, sequence) = (from.u16()?, from.u16()?, from.u64()?);
    let record = match kind {
        ARRAY => Record::Array {
            number: from.u32()?,
            name: from.text(LONGEST_NAME)?.to_owned(),
            dtype: serde_json::from_str(from.text(LONGEST_TYPE)?).map_err(|error| corrupt(error.to_string()))?,
        },
        WRITE => {
            let array = from.u32()?;
            let place = match (from.u32()?, from.u64()?) {
                (0, 0) => PayloadPlace::Behind,
                (1, offset) => PayloadPlace::Data(offset),
                _ => return Err(corrupt("the place of a write's data makes no sense")),
            };
            let payload = Payload { place, len: from.u64()?, crc: from.u32()? };
            Record::Write { array, selection: selection_wire::decode(&mut from)?, payload }
        }
        CHECKPOINT => Record::Checkpoint { before: from.u64()? },
        other => return Err(corrupt(format!("a record of kind {other}, which this version does not know"))),
    };
    from.end()?;
    Ok((sequence, record))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Slab;

    fn samples() -> Vec<(u64, Record)> {
        let slab = |start: &[u64], stride: &[u64], count: &[u64], block: &[u64]| {
            Slab::strided(start, stride, count, block).unwrap().unwrap()
        };
        let union = [slab(&[0, 0], &[4, 4], &[3, 2], &[1, 2]), slab(&[100, 7], &[1, 1], &[1, 1], &[5, 1])];
        let compound = Datatype::packed_compound([("x", Datatype::F64), ("y", Datatype::I32)]).unwrap();
        let payload = |place, len| Payload { place, len, crc: 77 };
        vec![
            (1, Record::Array { number: 3, name: "group/ä".into(), dtype: compound }),
            (2, Record::Array { number: u32::MAX, name: String::new(), dtype: Datatype::F32 }),
            (
                u64::MAX,
                Record::Write {
                    array: 3,
                    selection: Selection::union(2, union).unwrap(),
                    payload: payload(PayloadPlace::Data(1 << 40), 160),
                },
            ),
            (
                4,
                Record::Write {
                    array: 0,
                    selection: Selection::all(&[]).unwrap(),
                    payload: payload(PayloadPlace::Behind, 4),
                },
            ),
            (5, Record::Write { array: 0, selection: Selection::empty(3), payload: payload(PayloadPlace::Behind, 0) }),
            (6, Record::Checkpoint { before: 5 }),
        ]
    }

    fn encode(sequence: u64, record: &Record, seed: u32) -> Vec<u8> {
        let mut out = Encoder::default();
        match record {
            Record::Array { number, name, dtype } => {
                let text = type_text(name, dtype).unwrap();
                put_array(&mut out, seed, sequence, *number, name, &text);
                assert_eq!(out.0.len() as u64, array_len(name, &text));
            }
            Record::Write { array, selection, payload } => {
                put_write(&mut out, seed, sequence, *array, selection, payload);
                assert_eq!(out.0.len() as u64, write_len(selection));
            }
            Record::Checkpoint { before } => put_checkpoint(&mut out, seed, sequence, *before),
        }
        out.0
    }

    #[test]
    fn records_round_trip() {
        for (sequence, record) in samples() {
            let bytes = encode(sequence, &record, 9);
            assert_eq!(decode(&bytes, 9).unwrap(), (sequence, record));
            assert!(decode(&bytes, 8).is_err(), "of another segment");
        }
    }

    #[test]
    fn no_other_bytes_are_taken_for_a_record() {
        for (sequence, record) in samples() {
            let bytes = encode(sequence, &record, 9);
            for bit in 0..bytes.len() * 8 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&other, 9).is_err(), "bit {bit} of {record:?}");
            }
            for len in 0..bytes.len() {
                assert!(decode(&bytes[..len], 9).is_err());
            }
        }
    }

    proptest::proptest! {
        /// Bodies of any content, with the right checksums: refused or taken, and never a panic.
        #[test]
        fn any_body_is_decoded_or_refused(
            sample in 0usize..6,
            changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()), 0..4),
            kind in 0u16..5,
            keep in proptest::prelude::any::<bool>(),
        ) {
            let (sequence, record) = samples().swap_remove(sample);
            let whole = encode(sequence, &record, 9);
            let mut body = whole[FIXED..whole.len() - CHECKSUM].to_vec();
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            let kind = if keep { u16::from_le_bytes([whole[4], whole[5]]) } else { kind };
            let mut out = Encoder::default();
            put(&mut out, 9, sequence, kind, |into| into.raw(&body));
            if let Ok((_, Record::Write { selection, .. })) = decode(&out.0, 9) {
                assert!(selection.slabs().len() * selection.rank() * 32 <= body.len() * 4);
            }
        }
    }

    #[test]
    fn selections_that_make_no_sense_are_refused_even_with_a_right_checksum() {
        let spans = |values: &[u64], rank: u32, slabs: u32| {
            let mut out = Encoder::default();
            put(&mut out, 0, 1, WRITE, |body| {
                (0..2).for_each(|_| body.u32(0));
                (0..2).for_each(|_| body.u64(0));
                body.u32(0);
                body.u32(rank);
                body.u32(slabs);
                values.iter().for_each(|value| body.u64(*value));
            });
            decode(&out.0, 0)
        };
        assert!(spans(&[0, 1, 1, 1], 1, 1).is_ok());
        assert!(spans(&[0, 1, 2, 4], 1, 1).is_err(), "blocks overlap");
        assert!(spans(&[0, 1, 0, 1], 1, 1).is_err(), "empty");
        assert!(spans(&[u64::MAX, 1, 1, 1], 1, 1).is_err());
        assert!(spans(&[0, 4, 1, 4, 2, 4, 1, 4], 1, 2).is_err(), "slabs overlap");
        assert!(spans(&[], 33, 0).is_err());
        assert!(spans(&[], 0, u32::MAX).is_err());
        assert!(spans(&[], 32, u32::MAX).is_err());
    }
}
