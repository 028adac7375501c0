//! Appending a write: space, records, and undo on failure.

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

/// The arguments of an append.
pub(super) struct Entry<'a> {
    pub array: &'a str,
    pub dtype: &'a Datatype,
    pub selection: &'a Selection,
    pub payload: &'a [&'a [u8]],
    pub len: u64,
}

/// The space that an append needs.
struct Request {
    array: ArrayId,
    /// Upper bound in bytes.
    cost: u64,
    /// Part of `cost` that is not yet counted as used.
    uncounted: u64,
}

pub(super) enum ArrayId {
    /// The number by which the segment knows the array.
    Existing(u32),
    /// The array needs an array record first; its type as text.
    New(String),
}

impl Request {
    /// `None` if the name or type of the array is too long.
    fn new(writer: &AppendState, entry: &Entry<'_>, write: u64) -> Option<Self> {
        let Entry { array, dtype, len, .. } = *entry;
        let arrays = writer.current.as_ref().map(|current| &current.arrays);
        let known = arrays.and_then(|arrays| arrays.get(array)).filter(|known| known.0 == *dtype);
        let array_and_cost = match known {
            Some((_, number)) => (ArrayId::Existing(*number), 0),
            None => {
                let text = record::type_text(array, dtype)?;
                let len = record::array_len(array, &text);
                (ArrayId::New(text), len)
            }
        };
        let (array, introduction) = array_and_cost;
        let cost = (segment_header::LEN as u64 + introduction).saturating_add(write);
        let counted = writer.current.as_ref().filter(|_| len > BEHIND).map_or(0, |current| current.counted_of(len));
        Some(Self { array, cost, uncounted: cost - counted })
    }
}

/// The records of an entry, before its payload has a location.
pub(super) struct Records<'a> {
    known: &'a ArrayId,
    number: u32,
    seed: u32,
    /// Sequence number of the first record.
    pub first: u64,
}

impl Records<'_> {
    /// Sequence number of the write record.
    pub fn sequence(&self) -> u64 {
        self.first + u64::from(self.introduces())
    }

    fn introduces(&self) -> bool {
        matches!(self.known, ArrayId::New(_))
    }

    pub fn put(&self, out: &mut Encoder, entry: &Entry<'_>, payload: &Payload) {
        if let ArrayId::New(dtype) = self.known {
            record::put_array(out, self.seed, self.first, self.number, entry.array, dtype);
        }
        record::put_write(out, self.seed, self.sequence(), self.number, entry.selection, payload);
    }
}

/// The location of a write's payload.
pub(super) struct PlacedPayload {
    pub payload: Payload,
    /// Offset of a payload that follows its record.
    pub behind: u64,
    /// Intermediate checksums, see [`Marked`](super::checksum::Marked).
    pub marks: Vec<u32>,
}

impl PlacedPayload {
    /// A payload that follows its record; offset and checksum are set later.
    pub fn behind(len: u64) -> Self {
        Self { payload: Payload { place: PayloadPlace::Behind, len, crc: 0 }, behind: 0, marks: Vec::new() }
    }
}

impl Journal {
    /// Appends a write: the packed elements of `selection`, in any number of parts. On return it has the durability of the
    /// journal's [`SyncMode`].
    ///
    /// `NoSpace` leaves the journal unchanged; after other errors it may refuse everything, but [`RecordHandle::read_into`] still
    /// returns the bytes of acknowledged writes. In modes that batch, a full storage makes this return [`Append::Full`] until
    /// the acknowledged writes are completed.
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

    /// Applies the sync mode to an append.
    fn make_safe(&self, appended: Append) -> Result<Append> {
        let Append::Logged(logged) = &appended else { return Ok(appended) };
        let safe = match self.limits.sync {
            SyncMode::EveryWrite => self.segment_list.sync_up_to(logged.sequence),
            _ => self.arm(logged.sequence),
        };
        match safe {
            Ok(()) => Ok(appended),
            Err(error) => {
                // The caller gets no handle and cannot complete it.
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
            // Sealing the active segment frees its completed writes.
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
            ArrayId::Existing(number) => number,
            ArrayId::New(_) => current.next_array,
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

    /// Seals the active segment if it is full, or if its batch is given up and completed.
    fn make_room(&self, writer: &mut AppendState, most: u64) -> Result<Option<Append>> {
        let Some(current) = &writer.current else { return Ok(None) };
        let full = current.meta_end + current.data_end >= self.limits.segment;
        let starved = self.limits.sync.gathers() && self.segment_list.is_out_of_space();
        if !full && !starved {
            return Ok(None);
        }
        // There may be space by now. With nothing pending, the segment is removed.
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

    /// The result of an append on full storage: `Full` while completing pending writes can help.
    fn full(&self, error: Error, needed: u64) -> Result<Append> {
        match error.kind() == ErrorKind::NoSpace && self.segment_list.pending() > 0 {
            true => Ok(Append::Full { needed }),
            false => Err(error),
        }
    }

    /// Erases a failed append, so that no reader finds it; if that fails, the journal fails for good.
    pub(super) fn undo(&self, current: &mut ActiveSegment, error: Error) -> Error {
        current.meta_len = current.meta_end;
        (current.room.meta, current.room.data) = (current.meta_end, current.data_end);
        self.segment_list.give_back(current.shrunk());
        let data = current.segment.data.get().map_or(Ok(()), |data| data.truncate(current.data_end));
        let shrunk = self.segment_list.shrinks(current.meta_end);
        let shrunk = shrunk.and_then(|()| current.segment.meta.truncate(current.meta_end));
        if shrunk.and(data).is_err() || error.kind() != ErrorKind::NoSpace {
            self.segment_list.fail(error.copied());
        }
        error
    }
}
