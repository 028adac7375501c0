//! Messages between ranks: data, then a list of byte offsets in storage order. In a write the data belongs to these
//! offsets; in a read the data replies to the list of the preceding round, and the list is the next request.
//!
//! Places are rows of equal runs at equal distances, each run after the one before it. A row is written as numbers of
//! seven bits per byte, low bits first, with the high bit set on all but the last byte: the gap since the end of the row
//! before, the length of a run, the number of runs and, if that is not 1, the distance between them. The last eight bytes
//! of a message are the length of this list, little-endian.

use hyperslab_core::{Error, ErrorKind, Result, Row, Run};
use std::ops::Range;

const TRAILER: usize = 8;

/// An encoder of a list of rows.
#[derive(Debug, Default)]
pub(super) struct OffsetList {
    bytes: Vec<u8>,
    /// The last row, not yet encoded since the next may extend it.
    pending: Option<Row>,
    end: u64,
}

impl OffsetList {
    /// Adds a row that begins at or after the end of the preceding one.
    pub fn push(&mut self, row: Row) {
        if !self.pending.as_mut().is_some_and(|pending| continues(pending, &row)) {
            self.write_pending();
            self.pending = Some(row);
        }
    }

    fn write_pending(&mut self) {
        let Some(row) = self.pending.take() else { return };
        self.write(row.offset - self.end);
        self.write(row.len);
        self.write(row.count);
        if row.count > 1 {
            self.write(row.stride);
        }
        self.end = row_end(&row);
    }

    fn write(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Upper bound of a message's length without the data.
    pub fn most_bytes(&self) -> usize {
        self.bytes.len() + 4 * 10 + TRAILER
    }

    /// The encoded list.
    pub fn finish(mut self) -> Vec<u8> {
        self.write_pending();
        self.bytes
    }
}

/// Extends `row` by `next`, if one row can express both.
pub(super) fn continues(row: &mut Row, next: &Row) -> bool {
    if row.len != next.len {
        return false;
    }
    let distance = next.offset - (row.offset + (row.count - 1) * row.stride);
    if (row.count > 1 && row.stride != distance) || (next.count > 1 && next.stride != distance) {
        return false;
    }
    row.stride = distance;
    row.count += next.count;
    true
}

/// End of a row.
fn row_end(row: &Row) -> u64 {
    row.offset + (row.count - 1) * row.stride + row.len
}

/// Appends a list of offsets to data, as one message; empty if both are.
pub(super) fn join(mut bytes: Vec<u8>, places: OffsetList) -> Vec<u8> {
    let list = places.finish();
    if !bytes.is_empty() || !list.is_empty() {
        bytes.reserve(list.len() + TRAILER);
        bytes.extend_from_slice(&list);
        bytes.extend_from_slice(&(list.len() as u64).to_le_bytes());
    }
    bytes
}

/// Splits a message into data and list.
pub(super) fn split(message: &[u8]) -> Result<(&[u8], &[u8])> {
    if message.is_empty() {
        return Ok((message, message));
    }
    let (rest, trailer) = message.split_last_chunk::<TRAILER>().ok_or_else(corrupt)?;
    let list = u64::from_le_bytes(*trailer) as usize;
    let at = rest.len().checked_sub(list).ok_or_else(corrupt)?;
    Ok(rest.split_at(at))
}

pub(super) fn corrupt() -> Error {
    Error::new(ErrorKind::Corrupt, "exchange", "a rank sent places that make no sense")
        .hint("check that all ranks run the same version")
}

/// A validated list of offsets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checked<'a> {
    list: &'a [u8],
    /// Begin and end of the hull; `None` if there are no rows.
    pub hull: Option<(u64, u64)>,
    /// Total length of all runs.
    pub bytes: u64,
}

impl<'a> Checked<'a> {
    /// Refuses truncated lists, lists that leave `window`, and runs for which `allowed` is false.
    pub fn new(list: &'a [u8], window: &Range<u64>, allowed: impl Fn(Run) -> bool) -> Result<Self> {
        let mut rows = Rows { list, end: 0 };
        let mut checked = Self { list, hull: None, bytes: 0 };
        while !rows.list.is_empty() {
            let row = rows.read().ok_or_else(corrupt)?;
            if row.offset < window.start || rows.end > window.end || !runs(row).all(&allowed) {
                return Err(corrupt());
            }
            // No overflow: disjoint runs are no longer than the range.
            checked.bytes += row.len * row.count;
            checked.hull = Some((checked.hull.map_or(row.offset, |(first, _)| first), rows.end));
        }
        Ok(checked)
    }

    /// The rows, increasing.
    fn rows(&self) -> Rows<'a> {
        Rows { list: self.list, end: 0 }
    }

    /// The runs, increasing.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        self.rows().flat_map(runs)
    }
}

/// The runs of a row.
pub(super) fn runs(row: Row) -> impl Iterator<Item = Run> {
    (0..row.count).map(move |i| Run { offset: row.offset + i * row.stride, len: row.len })
}

/// A decoder of rows; ends at invalid bytes.
#[derive(Debug, Clone)]
pub(super) struct Rows<'a> {
    list: &'a [u8],
    end: u64,
}

impl Rows<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.list.split_first()?;
            self.list = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn read(&mut self) -> Option<Row> {
        let offset = self.end.checked_add(self.number()?)?;
        let (len, count) = (self.number()?, self.number()?);
        let stride = if count > 1 { self.number()? } else { len };
        if len == 0 || count == 0 || stride < len {
            return None;
        }
        self.end = (count - 1).checked_mul(stride)?.checked_add(len)?.checked_add(offset)?;
        Some(Row { offset, len, count, stride })
    }
}

impl Iterator for Rows<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.read()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_survive_the_way(
            rows in prop::collection::vec((0u64..300, 1u64..300, 1u64..5, 0u64..300), 0..20),
            bytes in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let (mut places, mut expected, mut end) = (OffsetList::default(), Vec::new(), 0);
            for (gap, len, count, between) in rows {
                let row = Row { offset: end + gap, len, count, stride: len + between };
                places.push(row);
                expected.extend(runs(row));
                end = row_end(&row);
            }
            let message = join(bytes.clone(), places);
            let (payload, list) = split(&message).unwrap();
            let checked = Checked::new(list, &(0..end), |_| true).unwrap();
            prop_assert_eq!(payload, bytes);
            prop_assert_eq!(checked.bytes, expected.iter().map(|run| run.len).sum::<u64>());
            prop_assert_eq!(checked.hull, expected.first().map(|first| (first.offset, end)));
            prop_assert_eq!(checked.runs().collect::<Vec<_>>(), expected);
            prop_assert!(end == 0 || Checked::new(list, &(0..end - 1), |_| true).is_err());
            prop_assert!(end == 0 || Checked::new(list, &(0..end), |run| run.end() < end).is_err());
        }

        #[test]
        fn nonsense_is_refused_without_panic(message in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok((_, list)) = split(&message)
                && let Ok(checked) = Checked::new(list, &(0..1000), |_| true)
            {
                prop_assert!(checked.runs().all(|run| run.end() <= 1000));
            }
        }
    }

    #[test]
    fn equal_pieces_at_equal_distances_cost_one_row() {
        let mut places = OffsetList::default();
        for i in 0..1000 {
            places.push(Row { offset: 512 + i * 8192, len: 4096, count: 1, stride: 4096 });
        }
        assert!(places.finish().len() < 16);
    }
}
