//! Appending a write.

use super::bytes::Encoder;
use super::record::{self, Payload, Place};
use super::segment::Logged;
use super::writer::{Append, Current, Journal, Limits, Writer};
use super::{checksum, failed, names, segment_head};
use hyperslab_core::{Datatype, Error, ErrorKind, Result, Selection};
use std::io::IoSlice;
use std::sync::atomic::Ordering;

/// Payloads up to this length lie behind their records, which saves a call of the kernel.
const BEHIND: u64 = 16 << 10;
/// Payloads are written in pieces of this length, each while the checksum has it in the processor's cache.
const PIECE: usize = 512 << 10;
/// The metadata log grows by so many zeros at a time: writing to pages that the kernel has costs half of making new ones.
const AHEAD: usize = 128 << 10;
static ZEROS: [u8; AHEAD] = [0; AHEAD];

/// What an append needs.
struct Request {
    array: Known,
    /// Bytes at most.
    cost: u64,
}

enum Known {
    /// The segment knows the array by this number.
    As(u32),
    /// It has to be introduced, with its type as text.
    Not(String),
}

impl Request {
    /// `None`: the name or type of the array is too long.
    fn new(writer: &Writer, array: &str, dtype: &Datatype, write: u64) -> Option<Self> {
        let arrays = writer.current.as_ref().map(|current| &current.arrays);
        let known = arrays.and_then(|arrays| arrays.get(array)).filter(|known| known.0 == *dtype);
        let array_and_cost = match known {
            Some((_, number)) => (Known::As(*number), 0),
            None => {
                let text = record::type_text(array, dtype)?;
                let len = record::array_len(array, &text);
                (Known::Not(text), len)
            }
        };
        let (array, introduction) = array_and_cost;
        Some(Self { array, cost: (segment_head::LEN as u64 + introduction).saturating_add(write) })
    }
}

impl Journal {
    /// Appends a write: the elements of `selection`, packed, in any number of parts. When it returns, all of it is with the
    /// kernel. Errors of kind `NoSpace` leave the journal as it was; after others it may refuse everything.
    pub fn append(&self, array: &str, dtype: &Datatype, selection: &Selection, payload: &[&[u8]]) -> Result<Append> {
        let len = payload.iter().map(|part| part.len() as u64).sum::<u64>();
        if selection.len().checked_mul(dtype.size()) != Some(len) {
            let message = format!("{len} bytes for {} elements of {dtype}", selection.len());
            return Err(Error::invalid("append to journal", message).backend("journal").target(array));
        }
        let record = record::write_len(selection);
        if record > record::LONGEST as u64 {
            return Ok(Append::TooLarge);
        }
        let mut writer = self.writer()?;
        let mut out = Encoder(std::mem::take(&mut writer.buffer));
        out.0.clear();
        let appended = self.append_with(&mut writer, &mut out, array, dtype, selection, payload, len);
        writer.buffer = out.0;
        appended.map_err(|error| error.backend("journal").target(array))
    }

    #[allow(clippy::too_many_arguments)]
    fn append_with(
        &self,
        writer: &mut Writer,
        out: &mut Encoder,
        array: &str,
        dtype: &Datatype,
        selection: &Selection,
        payload: &[&[u8]],
        len: u64,
    ) -> Result<Append> {
        if writer.current.as_ref().is_some_and(|current| current.meta_end + current.data_end >= self.limits.segment) {
            self.fill(writer);
        }
        let most = record::write_len(selection) + len + record::END.len() as u64 + self.limits.ahead();
        let Some(mut request) = Request::new(writer, array, dtype, most) else {
            return Ok(Append::TooLarge);
        };
        if request.cost > self.limits.bytes {
            return Ok(Append::TooLarge);
        }
        if self.shelf.used() + request.cost > self.limits.bytes {
            // What is done in the segment that grows is given back by giving it up.
            if !self.shelf.last_is_pending() {
                self.fill(writer);
            }
            self.shelf.check()?;
            let Some(again) = Request::new(writer, array, dtype, most) else {
                return Ok(Append::TooLarge);
            };
            request = again;
            if self.shelf.used() + request.cost > self.limits.bytes {
                return Ok(Append::Full { needed: request.cost });
            }
        }
        let mut sequence = writer.next;
        let current = self.current(writer)?;
        let seed = current.segment.seed;
        let number = match &request.array {
            Known::As(number) => *number,
            Known::Not(dtype) => {
                record::put_array(out, seed, sequence, current.next_array, array, dtype);
                sequence += 1;
                current.next_array
            }
        };
        let mut described = Payload { place: Place::Behind, len, crc: 0 };
        let mut record = 0;
        let written = match len <= BEHIND {
            true => {
                described.crc = payload.iter().fold(0, |crc, part| checksum::extend(crc, part));
                record::put_write(out, seed, sequence, number, selection, &described);
                record = out.0.len() as u64;
                payload.iter().for_each(|part| out.raw(part));
                out.raw(record::END);
                self.write_meta(current, &out.0)
            }
            false => self.write_data(current, payload).and_then(|crc| {
                described = Payload { place: Place::Data(current.data_end), len, crc };
                record::put_write(out, seed, sequence, number, selection, &described);
                self.write_meta(current, &out.0)
            }),
        };
        let behind = current.meta_end + record;
        let grown = match written {
            Ok(grown) => grown,
            Err(cause) => {
                return Err(self.undo(current, failed("append to journal", self.shelf.files.place(), cause)));
            }
        };
        current.meta_end += out.0.len() as u64;
        let data = if let Place::Data(_) = described.place { len } else { 0 };
        current.data_end += data;
        let segment = current.segment.clone();
        let introduced = matches!(request.array, Known::Not(_));
        if introduced {
            current.arrays.insert(array.to_owned(), (dtype.clone(), number));
            current.next_array += 1;
        }
        self.shelf.add(grown + data, u64::from(introduced), true);
        writer.next = sequence + 1;
        Ok(Append::Logged(Logged { shelf: self.shelf.clone(), segment, sequence, payload: described, behind }))
    }

    /// Writes records behind the others of the metadata log. Returns by how much the file has grown.
    pub(super) fn write_meta(&self, current: &mut Current, bytes: &[u8]) -> std::io::Result<u64> {
        let (end, ahead, before) = (current.meta_end + bytes.len() as u64, self.limits.ahead(), current.meta_len);
        if ahead > 0 && end > before && bytes.len() as u64 <= ahead {
            let len = end.next_multiple_of(ahead);
            while current.meta_len < len {
                let zeros = &ZEROS[..(len - current.meta_len).min(ahead) as usize];
                current.segment.meta.write_at(&[IoSlice::new(zeros)], current.meta_len)?;
                current.meta_len += zeros.len() as u64;
            }
        }
        current.segment.meta.write_at(&[IoSlice::new(bytes)], current.meta_end)?;
        current.segment.dirty.store(true, Ordering::Release);
        current.meta_len = current.meta_len.max(end);
        Ok(current.meta_len - before)
    }

    /// Writes a payload behind the others of the data log. Returns its checksum.
    fn write_data(&self, current: &Current, payload: &[&[u8]]) -> std::io::Result<u32> {
        let data = match current.segment.data.get() {
            Some(data) => data,
            None => {
                let data = self.shelf.files.create(&names::data(&self.shelf.stem, current.segment.number))?;
                self.shelf.names_changed.store(true, Ordering::Release);
                current.segment.data.get_or_init(|| data)
            }
        };
        let (mut crc, mut at) = (0, current.data_end);
        let mut small: Vec<IoSlice<'_>> = Vec::new();
        let mut held = 0;
        for piece in payload.iter().flat_map(|part| part.chunks(PIECE)) {
            crc = checksum::extend(crc, piece);
            small.push(IoSlice::new(piece));
            held += piece.len();
            if held >= PIECE {
                data.write_at(&small, at)?;
                at += held as u64;
                (held, small) = (0, Vec::new());
            }
        }
        if held > 0 {
            data.write_at(&small, at)?;
        }
        Ok(crc)
    }

    /// After a failed append: no trace of it may be found later. Where that cannot be had, the journal fails for good.
    pub(super) fn undo(&self, current: &mut Current, error: Error) -> Error {
        current.meta_len = current.meta_end;
        let data = current.segment.data.get().map_or(Ok(()), |data| data.truncate(current.data_end));
        if current.segment.meta.truncate(current.meta_end).and(data).is_err() || error.kind() != ErrorKind::NoSpace {
            self.shelf.fail(error.copied());
        }
        error
    }
}

impl Limits {
    /// Bytes of zeros by which the metadata log grows; none where segments are small.
    fn ahead(&self) -> u64 {
        (self.segment / 16 / 4096 * 4096).min(AHEAD as u64)
    }
}
