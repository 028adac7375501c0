//! Appending a write.

use super::active_segment::ActiveSegment;
use super::journal::{Append, AppendState, Journal};
use super::placement::BEHIND;
use super::record::{self, Payload, PayloadPlace};
use super::segment::RecordHandle;
use super::sync_mode::SyncMode;
use super::wire::Encoder;
use super::write_out::WriteOut;
use super::{failed, segment_header};
use hyperslab_core::{Datatype, Error, ErrorKind, Result, Selection};
use std::sync::atomic::Ordering;

/// A write to append.
pub(super) struct Entry<'a> {
    pub array: &'a str,
    pub dtype: &'a Datatype,
    pub selection: &'a Selection,
    pub payload: &'a [&'a [u8]],
    pub len: u64,
}

/// What an append needs.
struct Request {
    array: ArrayId,
    /// Bytes at most.
    cost: u64,
    /// Those of them that are not counted yet.
    uncounted: u64,
}

pub(super) enum ArrayId {
    /// The segment knows the array by this number.
    As(u32),
    /// It has to be introduced, with its type as text.
    Not(String),
}

impl Request {
    /// `None`: the name or type of the array is too long.
    fn new(writer: &AppendState, entry: &Entry<'_>, write: u64) -> Option<Self> {
        let Entry { array, dtype, len, .. } = *entry;
        let arrays = writer.current.as_ref().map(|current| &current.arrays);
        let known = arrays.and_then(|arrays| arrays.get(array)).filter(|known| known.0 == *dtype);
        let array_and_cost = match known {
            Some((_, number)) => (ArrayId::As(*number), 0),
            None => {
                let text = record::type_text(array, dtype)?;
                let len = record::array_len(array, &text);
                (ArrayId::Not(text), len)
            }
        };
        let (array, introduction) = array_and_cost;
        let cost = (segment_header::LEN as u64 + introduction).saturating_add(write);
        let counted = writer.current.as_ref().filter(|_| len > BEHIND).map_or(0, |current| current.counted_of(len));
        Some(Self { array, cost, uncounted: cost - counted })
    }
}

/// Records of an entry, still without a place for its bytes.
pub(super) struct Records<'a> {
    known: &'a ArrayId,
    number: u32,
    seed: u32,
    /// The sequence number of the first.
    pub first: u64,
}

impl Records<'_> {
    /// The sequence number of the write.
    pub fn sequence(&self) -> u64 {
        self.first + u64::from(self.introduces())
    }

    fn introduces(&self) -> bool {
        matches!(self.known, ArrayId::Not(_))
    }

    pub fn put(&self, out: &mut Encoder, entry: &Entry<'_>, payload: &Payload) {
        if let ArrayId::Not(dtype) = self.known {
            record::put_array(out, self.seed, self.first, self.number, entry.array, dtype);
        }
        record::put_write(out, self.seed, self.sequence(), self.number, entry.selection, payload);
    }
}

/// Where the bytes of a write went.
pub(super) struct PlacedPayload {
    pub payload: Payload,
    /// Their offset, if they are behind the record.
    pub behind: u64,
    /// Checksums on the way, see [`Marked`](super::checksum::Marked).
    pub marks: Vec<u32>,
}

impl PlacedPayload {
    /// Behind the record, still without an offset and a checksum.
    pub fn behind(len: u64) -> Self {
        Self { payload: Payload { place: PayloadPlace::Behind, len, crc: 0 }, behind: 0, marks: Vec::new() }
    }
}

impl Journal {
    /// Appends a write: the elements of `selection`, packed, in any number of parts. When it returns, it is as safe as the
    /// journal's [`SyncMode`] says.
    ///
    /// Errors of kind `NoSpace` leave the journal as it was; after others it may refuse everything, and
    /// [`RecordHandle::read_into`] still gives the bytes of what was acknowledged. Where appends are gathered, the storage may have
    /// no room for those acknowledged before: then this is [`Append::Full`] as long as any of them is not done.
    pub fn append(&self, array: &str, dtype: &Datatype, selection: &Selection, payload: &[&[u8]]) -> Result<Append> {
        let len = payload.iter().map(|part| part.len() as u64).sum::<u64>();
        if selection.len().checked_mul(dtype.size()) != Some(len) {
            let message = format!("{len} bytes for {} elements of {dtype}", selection.len());
            return Err(Error::invalid("append to journal", message).backend("journal").target(array));
        }
        if record::write_len(selection) > record::LONGEST as u64 {
            return Ok(Append::TooLarge);
        }
        let entry = Entry { array, dtype, selection, payload, len };
        let appended = self.append_entry(&entry).and_then(|appended| self.make_safe(appended));
        appended.map_err(|error| error.backend("journal").target(array))
    }

    fn append_entry(&self, entry: &Entry<'_>) -> Result<Append> {
        let mut writer = self.writer()?;
        let mut out = Encoder(std::mem::take(&mut writer.buffer));
        out.0.clear();
        let appended = self.append_with(&mut writer, &mut out, entry);
        writer.buffer = out.0;
        appended
    }

    /// Does what the mode asks for after an append.
    fn make_safe(&self, appended: Append) -> Result<Append> {
        let Append::Logged(logged) = &appended else { return Ok(appended) };
        let safe = match self.limits.sync {
            SyncMode::EveryWrite => self.segment_list.sync_up_to(logged.sequence),
            _ => self.arm(logged.sequence),
        };
        match safe {
            Ok(()) => Ok(appended),
            Err(error) => {
                // Nobody will have it done: the caller does not get it.
                logged.done();
                Err(error)
            }
        }
    }

    fn append_with(&self, writer: &mut AppendState, out: &mut Encoder, entry: &Entry<'_>) -> Result<Append> {
        let most = record::write_len(entry.selection)
            + self.limits.data_len(entry.len)
            + record::END.len() as u64
            + self.limits.ahead();
        if let Some(full) = self.make_room(writer, most)? {
            return Ok(full);
        }
        let Some(mut request) = Request::new(writer, entry, most) else {
            return Ok(Append::TooLarge);
        };
        if request.cost > self.limits.bytes {
            return Ok(Append::TooLarge);
        }
        if self.segment_list.used() + request.uncounted > self.limits.bytes {
            self.segment_list.release_ahead();
        }
        if self.segment_list.used() + request.uncounted > self.limits.bytes {
            // What is done in the segment that grows is given back by giving it up.
            if !self.segment_list.last_is_pending()
                && let Err(error) = self.fill(writer)
            {
                return self.full(error, request.cost);
            }
            self.segment_list.check()?;
            let Some(again) = Request::new(writer, entry, most) else {
                return Ok(Append::TooLarge);
            };
            request = again;
            if self.segment_list.used() + request.uncounted > self.limits.bytes {
                return Ok(Append::Full { needed: request.uncounted });
            }
        }
        let first = writer.next;
        let current = self.current(writer)?;
        let number = match request.array {
            ArrayId::As(number) => number,
            ArrayId::Not(_) => current.next_array,
        };
        let records = Records { known: &request.array, number, seed: current.segment.seed, first };
        let placed = match self.limits.sync.gathers() {
            true => match self.gather(current, entry, &records) {
                Ok(placed) => placed,
                Err(error) => return self.full(error, request.cost),
            },
            false => self.write_now(current, out, entry, &records).map_err(|cause| {
                self.undo(current, failed("append to journal", self.segment_list.files.place(), cause))
            })?,
        };
        let (introduced, sequence) = (records.introduces(), records.sequence());
        if introduced {
            current.arrays.insert(entry.array.to_owned(), (entry.dtype.clone(), number));
            current.next_array += 1;
        }
        self.segment_list.add(current.grown(), u64::from(introduced), true);
        let segment = current.segment.clone();
        writer.next = sequence + 1;
        self.segment_list.appended.store(writer.next, Ordering::Release);
        if self.limits.sync.gathers() {
            self.hand_over_if_full(&segment);
        }
        let PlacedPayload { payload, behind, marks } = placed;
        let (segment_list, marks) = (self.segment_list.clone(), marks.into());
        Ok(Append::Logged(RecordHandle { segment_list, segment, sequence, payload, behind, marks }))
    }

    /// Begins another segment where the present one is full, or its end is in memory and done.
    fn make_room(&self, writer: &mut AppendState, most: u64) -> Result<Option<Append>> {
        let Some(current) = &writer.current else { return Ok(None) };
        let full = current.meta_end + current.data_end >= self.limits.segment;
        let starved = self.limits.sync.gathers() && self.segment_list.is_out_of_space();
        if !full && !starved {
            return Ok(None);
        }
        // Perhaps there is space by now. Where everything is done, the segment goes.
        let goes = full || self.segment_list.pending() == 0;
        let made = if goes { self.fill(writer) } else { self.segment_list.try_write_out().and_then(WriteOut::check) };
        match made {
            Ok(()) => {
                self.segment_list.starved.store(u64::MAX, Ordering::Release);
                Ok(None)
            }
            Err(error) => self.full(error, most).map(Some),
        }
    }

    /// What an append returns where the storage has no room: as long as writes are pending, having them done helps.
    fn full(&self, error: Error, needed: u64) -> Result<Append> {
        match error.kind() == ErrorKind::NoSpace && self.segment_list.pending() > 0 {
            true => Ok(Append::Full { needed }),
            false => Err(error),
        }
    }

    /// After a failed append: no trace of it may be found later. Where that cannot be had, the journal fails for good.
    pub(super) fn undo(&self, current: &mut ActiveSegment, error: Error) -> Error {
        current.meta_len = current.meta_end;
        (current.room.meta, current.room.data) = (current.meta_end, current.data_end);
        self.segment_list.give_back(current.shrunk());
        let data = current.segment.data.get().map_or(Ok(()), |data| data.truncate(current.data_end));
        if current.segment.meta.truncate(current.meta_end).and(data).is_err() || error.kind() != ErrorKind::NoSpace {
            self.segment_list.fail(error.copied());
        }
        error
    }
}
