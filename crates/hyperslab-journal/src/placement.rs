//! Placement of payloads: behind their record or in the data log, written at once or batched.

use super::active_segment::{AHEAD, ActiveSegment};
use super::append::{Entry, PlacedPayload, Records};
use super::checksum::{self, CHECKSUM_STEP, Marked};
use super::group_commit::FULL;
use super::journal::Journal;
use super::record::{self, Payload, PayloadPlace};
use super::segment::Segment;
use super::storage::LogFile;
use super::wire::Encoder;
use super::{failed, file_names};
use hyperslab_core::Result;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Payloads up to this length follow their record, which saves a system call.
pub(super) const BEHIND: u64 = 16 << 10;
/// Payloads up to this length are batched. For longer ones a copy costs more than a system call.
const GATHERED: u64 = 64 << 10;
// Payloads longer than a step need intermediate checksums, which only `write_data` computes.
const _: () = assert!(BEHIND <= GATHERED && GATHERED <= CHECKSUM_STEP);
/// Payloads are written in pieces of this length, while the checksum has them in the processor cache.
const PIECE: usize = 512 << 10;
static ZEROS: [u8; AHEAD] = [0; AHEAD];

impl Journal {
    /// Writes a record and its payload to the kernel.
    pub(super) fn write_now(
        &self,
        current: &mut ActiveSegment,
        out: &mut Encoder,
        entry: &Entry<'_>,
        records: &Records<'_>,
    ) -> std::io::Result<PlacedPayload> {
        let len = entry.len;
        let mut placed = PlacedPayload::behind(len);
        if len <= BEHIND {
            placed.payload.crc = checksum_of(entry);
            records.put(out, entry, &placed.payload);
            placed.behind = current.meta_end + out.0.len() as u64;
            entry.payload.iter().for_each(|part| out.raw(part));
            out.raw(record::END);
            self.write_meta(current, &out.0)?;
        } else {
            let Marked { crc, marks, .. } = self.write_data(current, entry.payload, len)?;
            placed.payload = Payload { place: PayloadPlace::Data(current.data_end), len, crc };
            placed.marks = marks;
            records.put(out, entry, &placed.payload);
            self.write_meta(current, &out.0)?;
            current.data_end += self.limits.data_len(len);
        }
        current.meta_end += out.0.len() as u64;
        Ok(placed)
    }

    /// Adds a record and its payload to the batch.
    pub(super) fn gather(
        &self,
        current: &mut ActiveSegment,
        entry: &Entry<'_>,
        records: &Records<'_>,
    ) -> Result<PlacedPayload> {
        let len = entry.len;
        let mut placed = PlacedPayload::behind(len);
        let not_taken =
            |cause| self.segment_list.not_taken(failed("append to journal", self.segment_list.files.place(), cause));
        if len > BEHIND {
            let segment = current.segment.clone();
            let data = self.data_of(current, &segment).map_err(not_taken)?;
            let mut batch = segment.batch();
            let crc = match len <= GATHERED {
                true => {
                    self.reserve(current, data, len);
                    let crc = checksum_of(entry);
                    entry.payload.iter().for_each(|part| batch.data.extend_from_slice(part));
                    let padded = batch.data.len() + (self.limits.data_len(len) - len) as usize;
                    batch.data.resize(padded, 0);
                    crc
                }
                false => {
                    let written =
                        batch.flush_data(Some(data)).and_then(|()| self.write_data(current, entry.payload, len));
                    let Marked { crc, marks, .. } = written.map_err(|cause| {
                        // Remains are overwritten by the next write.
                        let _ = data.truncate(batch.data_at);
                        current.room.data = batch.data_at;
                        self.segment_list.give_back(current.shrunk());
                        not_taken(cause)
                    })?;
                    batch.data_at += self.limits.data_len(len);
                    placed.marks = marks;
                    crc
                }
            };
            batch.bytes += len;
            placed.payload = Payload { place: PayloadPlace::Data(current.data_end), len, crc };
            current.data_end += self.limits.data_len(len);
        } else {
            placed.payload.crc = checksum_of(entry);
        }
        let mut before_payload = 0;
        let meta = self.gather_meta(current, records.first, |out| {
            let begin = out.0.len();
            records.put(out, entry, &placed.payload);
            before_payload = (out.0.len() - begin) as u64;
            if let PayloadPlace::Behind = placed.payload.place {
                entry.payload.iter().for_each(|part| out.raw(part));
                out.raw(record::END);
            }
        });
        placed.behind = current.meta_end + before_payload;
        current.meta_end += meta;
        Ok(placed)
    }

    /// Adds records to the batch; returns their length.
    pub(super) fn gather_meta(&self, current: &mut ActiveSegment, first: u64, put: impl FnOnce(&mut Encoder)) -> u64 {
        let mut batch = current.segment.batch();
        if batch.is_empty() {
            batch.first = first;
        }
        let mut out = Encoder(std::mem::take(&mut batch.meta));
        let before = out.0.len();
        put(&mut out);
        let bytes = (out.0.len() - before) as u64;
        batch.meta = out.0;
        batch.bytes += bytes;
        let end = current.meta_end + bytes;
        current.room.for_meta(&*current.segment.meta, end, &self.limits, self.segment_list.used());
        current.meta_len = end;
        bytes
    }

    /// Writes out a full batch. An error is reported by the next append.
    pub(super) fn hand_over_if_full(&self, segment: &Segment) {
        let full = segment.batch().bytes >= FULL;
        if full {
            let _ = self.segment_list.write_out();
        }
    }

    /// Appends records to the metadata log.
    pub(super) fn write_meta(&self, current: &mut ActiveSegment, bytes: &[u8]) -> std::io::Result<()> {
        let (end, ahead) = (current.meta_end + bytes.len() as u64, self.limits.ahead());
        let grows = end > current.meta_len;
        if grows {
            let zeros = ahead > 0 && bytes.len() as u64 <= ahead;
            let len = if zeros { end.next_multiple_of(ahead) } else { end };
            current.room.for_meta(&*current.segment.meta, len, &self.limits, self.segment_list.used());
            while zeros && current.meta_len < len {
                let zeros = &ZEROS[..(len - current.meta_len).min(ahead) as usize];
                current.segment.meta.write_at(&[IoSlice::new(zeros)], current.meta_len)?;
                current.meta_len += zeros.len() as u64;
            }
        }
        current.segment.meta.write_at(&[IoSlice::new(bytes)], current.meta_end)?;
        current.segment.dirty.store(true, Ordering::Release);
        current.meta_len = current.meta_len.max(end);
        if grows { self.segment_list.reaches(current.segment.number, current.meta_len) } else { Ok(()) }
    }

    /// The data log of the active segment, created if there is none.
    fn data_of<'a>(&self, current: &mut ActiveSegment, segment: &'a Segment) -> std::io::Result<&'a dyn LogFile> {
        if let Some(data) = segment.data.get() {
            return Ok(&**data);
        }
        let data = match self.segment_list.take_ahead(segment.number) {
            Some((data, room)) => {
                current.room.data = room;
                data
            }
            None => self.create_data(segment.number)?,
        };
        if let Some(room) = self.limits.room_ahead(self.segment_list.used()) {
            self.segment_list.want_ahead(segment.number + 1, room);
        }
        Ok(&**segment.data.get_or_init(|| data))
    }

    fn create_data(&self, number: u64) -> std::io::Result<Arc<dyn LogFile>> {
        let name = file_names::data(&self.segment_list.stem, number);
        let data = match self.limits.direct {
            false => self.segment_list.files.create(&name)?,
            true => {
                let (data, is_direct) = self.segment_list.files.create_direct(&name)?;
                self.segment_list.direct_refused.fetch_or(!is_direct, Ordering::AcqRel);
                data
            }
        };
        self.segment_list.names.changed();
        Ok(data)
    }

    /// Ensures space for a payload at the end of the data log.
    fn reserve(&self, current: &mut ActiveSegment, data: &dyn LogFile, len: u64) {
        let end = current.data_end + self.limits.data_len(len);
        current.room.for_data(data, end, &self.limits, self.segment_list.used());
    }

    /// Appends a payload to the data log; returns its checksum.
    fn write_data(&self, current: &mut ActiveSegment, payload: &[&[u8]], len: u64) -> std::io::Result<Marked> {
        let segment = current.segment.clone();
        let data = self.data_of(current, &segment)?;
        self.reserve(current, data, len);
        let (mut marked, mut at) = (Marked::default(), current.data_end);
        let mut small: Vec<IoSlice<'_>> = Vec::new();
        let mut held = 0;
        for piece in payload.iter().flat_map(|part| part.chunks(PIECE)) {
            marked.extend(piece);
            small.push(IoSlice::new(piece));
            held += piece.len();
            // Direct I/O needs whole blocks, and copies anyhow.
            if held >= PIECE && !self.limits.direct {
                data.write_at(&small, at)?;
                at += held as u64;
                held = 0;
                small.clear();
            }
        }
        if held > 0 {
            data.write_at(&small, at)?;
        }
        current.segment.dirty.store(true, Ordering::Release);
        Ok(marked)
    }
}

fn checksum_of(entry: &Entry<'_>) -> u32 {
    entry.payload.iter().fold(0, |crc, part| checksum::extend(crc, part))
}
