//! Index entries and their encoding.

use hyperslab_core::{Datatype, ElementPlan, Error, ErrorKind, Result, Selection};
use hyperslab_journal::selection_wire;
use hyperslab_journal::wire::{Decoder, Encoder};

/// The location of a write's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataLocation {
    /// Packed in a volume of the log, from this offset.
    Log { volume: u32, offset: u64 },
    /// In the array itself.
    Array,
}

/// A byte range of each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: u32,
    pub len: u32,
}

/// An index entry: one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub selection: Selection,
    /// The written bytes of each element, in order; empty for whole elements.
    pub pieces: Vec<Piece>,
    pub place: DataLocation,
}

/// The index update of one rank for one array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexUpdate {
    pub array: String,
    /// Whether earlier entries of the array are discarded.
    pub cleared: bool,
    pub entries: Vec<Entry>,
}

const LONGEST_NAME: usize = 64 << 10;
const CLEARED: u32 = 1;
const IN_LOG: u32 = 1;
const IN_ARRAY: u32 = 2;

/// The bytes of an element that a plan transfers; empty for all.
pub(super) fn pieces_of(plan: &ElementPlan) -> Vec<Piece> {
    if plan.covers_element() {
        return Vec::new();
    }
    // An element has no more than 2^24 bytes.
    let mut pieces: Vec<Piece> =
        plan.pieces.iter().map(|piece| Piece { offset: piece.element as u32, len: piece.len as u32 }).collect();
    pieces.sort_unstable_by_key(|piece| piece.offset);
    pieces
}

impl Entry {
    /// Length of each element in the log.
    pub fn stride(&self, dtype: &Datatype) -> u64 {
        stride(&self.pieces, dtype)
    }

    /// Checks the entry against the type and shape of its array.
    pub fn check(&self, dtype: &Datatype, shape: &[u64]) -> Result<()> {
        self.selection.check_inside(shape).map_err(|error| corrupt(error.to_string()))?;
        let mut end = 0;
        for piece in &self.pieces {
            let next = u64::from(piece.offset) + u64::from(piece.len);
            if u64::from(piece.offset) < end || piece.len == 0 || next > dtype.size() {
                return Err(corrupt("parts of elements that make no sense"));
            }
            end = next;
        }
        Ok(())
    }
}

/// Length of each element in the log.
pub(super) fn stride(pieces: &[Piece], dtype: &Datatype) -> u64 {
    match pieces {
        [] => dtype.size(),
        some => some.iter().map(|piece| u64::from(piece.len)).sum(),
    }
}

pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read index", message).backend(super::NAME)
}

/// Encoded length of an entry.
pub(super) fn encoded_len(selection: &Selection, pieces: &[Piece]) -> u64 {
    20 + 8 * pieces.len() as u64 + selection_wire::encoded_len(selection)
}

/// Encodes an index update.
pub(super) fn encode<'a>(
    out: &mut Encoder,
    array: &str,
    cleared: bool,
    entries: impl ExactSizeIterator<Item = &'a Entry>,
) {
    out.counted(array.as_bytes());
    out.u32(if cleared { CLEARED } else { 0 });
    out.u32(entries.len() as u32);
    for entry in entries {
        let (kind, volume, offset) = match entry.place {
            DataLocation::Log { volume, offset } => (IN_LOG, volume, offset),
            DataLocation::Array => (IN_ARRAY, 0, 0),
        };
        out.u32(kind);
        out.u32(volume);
        out.u64(offset);
        out.u32(entry.pieces.len() as u32);
        for piece in &entry.pieces {
            out.u32(piece.offset);
            out.u32(piece.len);
        }
        selection_wire::encode(&entry.selection, out);
    }
}

/// Decodes index updates. Allocates at most a small multiple of the input.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<IndexUpdate>> {
    let mut from = Decoder(bytes);
    let mut all = Vec::new();
    while !from.0.is_empty() {
        let array = from.text(LONGEST_NAME)?.to_owned();
        let cleared = match from.u32()? {
            0 => false,
            CLEARED => true,
            other => return Err(corrupt(format!("flags {other} of {array:?}, which this version does not know"))),
        };
        let (count, mut entries) = (from.u32()?, Vec::new());
        for _ in 0..count {
            entries.push(decode_entry(&mut from)?);
        }
        all.push(IndexUpdate { array, cleared, entries });
    }
    Ok(all)
}

fn decode_entry(from: &mut Decoder<'_>) -> Result<Entry> {
    let place = match (from.u32()?, from.u32()?, from.u64()?) {
        (IN_LOG, volume, offset) => DataLocation::Log { volume, offset },
        (IN_ARRAY, 0, 0) => DataLocation::Array,
        _ => return Err(corrupt("the place of a write makes no sense")),
    };
    let (count, mut pieces) = (from.u32()?, Vec::new());
    for _ in 0..count {
        pieces.push(Piece { offset: from.u32()?, len: from.u32()? });
    }
    let selection = selection_wire::decode(from)?;
    match selection.is_empty() {
        true => Err(corrupt("a write of nothing")),
        false => Ok(Entry { selection, pieces, place }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn samples() -> Vec<IndexUpdate> {
        let dense = |start: &[u64], count: &[u64]| Selection::dense(start, count).unwrap();
        let union = dense(&[0, 0], &[2, 3]).union_with(&dense(&[7, 1], &[1, 9])).unwrap();
        let log = |volume, offset| DataLocation::Log { volume, offset };
        let whole = Entry { selection: union, pieces: Vec::new(), place: log(3, 1 << 40) };
        let pieces = vec![Piece { offset: 0, len: 4 }, Piece { offset: 12, len: 8 }];
        let part = Entry { selection: Selection::all(&[]).unwrap(), pieces, place: log(0, 0) };
        let array = Entry { place: DataLocation::Array, ..whole.clone() };
        vec![
            IndexUpdate { array: "group/ä".into(), cleared: false, entries: vec![whole, part] },
            IndexUpdate { array: "b".into(), cleared: true, entries: vec![array] },
            IndexUpdate { array: String::new(), cleared: true, entries: Vec::new() },
        ]
    }

    pub(in super::super) fn encoded(all: &[IndexUpdate]) -> Vec<u8> {
        let mut out = Encoder::default();
        all.iter().for_each(|said| encode(&mut out, &said.array, said.cleared, said.entries.iter()));
        out.0
    }

    #[test]
    fn entries_round_trip() {
        let bytes = encoded(&samples());
        assert_eq!(decode(&bytes).unwrap(), samples());
        let entry = &samples()[0].entries[1];
        let alone = IndexUpdate { array: String::new(), cleared: false, entries: vec![entry.clone()] };
        assert_eq!(encoded(&[alone]).len() as u64, 12 + encoded_len(&entry.selection, &entry.pieces));
        for len in 1..bytes.len() {
            // Cut off between two arrays, it is still something.
            assert!(decode(&bytes[..len]).is_err() || decode(&bytes[..len]).unwrap().len() < 3);
        }
    }

    #[test]
    fn entries_are_checked_against_their_array() {
        let dtype = Datatype::Opaque(20);
        let entry = |pieces: &[(u32, u32)]| Entry {
            selection: Selection::dense(&[1], &[3]).unwrap(),
            pieces: pieces.iter().map(|&(offset, len)| Piece { offset, len }).collect(),
            place: DataLocation::Array,
        };
        assert!(entry(&[(0, 4), (4, 16)]).check(&dtype, &[4]).is_ok());
        assert!(entry(&[]).check(&dtype, &[3]).is_err(), "outside");
        assert!(entry(&[]).check(&dtype, &[4, 4]).is_err(), "another rank");
        for odd in [&[(0, 0)][..], &[(0, 21)], &[(4, 2), (0, 2)], &[(0, 4), (3, 2)], &[(u32::MAX, u32::MAX)]] {
            assert!(entry(odd).check(&dtype, &[4]).is_err(), "{odd:?}");
        }
    }

    proptest::proptest! {
        /// Any change of any bytes: refused or taken, never a panic, and never much more memory than bytes.
        #[test]
        fn any_bytes_are_decoded_or_refused(
            changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<u8>()), 0..6),
            noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        ) {
            let mut bytes = encoded(&samples());
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            for bytes in [&bytes, &noise] {
                if let Ok(all) = decode(bytes) {
                    let slabs: usize = all.iter().flat_map(|said| &said.entries).map(|entry| entry.selection.slabs().len()).sum();
                    assert!(slabs <= bytes.len());
                }
            }
        }
    }
}
