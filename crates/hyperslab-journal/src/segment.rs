//! Segments of a journal, and handles of the writes in them.

use super::checksum::{self, CHECKSUM_STEP};
use super::group_commit::GroupCommit;
use super::record::{Payload, PayloadPlace};
use super::segment_list::SegmentList;
use super::storage::LogFile;
use super::{corrupt, failed};
use hyperslab_core::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that `verify` reads at a time.
const WINDOW: u64 = 256 << 10;

/// A pair of files: the metadata log with records and small payloads, the data log with large payloads.
#[derive(Debug)]
pub(super) struct Segment {
    pub number: u64,
    /// Initial value of record checksums.
    pub seed: u32,
    pub meta: Arc<dyn LogFile>,
    /// Created by the first large write.
    pub data: OnceLock<Arc<dyn LogFile>>,
    /// Written since the last sync.
    pub dirty: AtomicBool,
    /// Appended bytes that are not written out.
    pub batch: Mutex<GroupCommit>,
}

impl Segment {
    pub fn batch(&self) -> MutexGuard<'_, GroupCommit> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes what was written so far durable, data before the records that refer to it.
    pub fn sync(&self) -> std::io::Result<()> {
        // Cleared first: concurrent writes set it again.
        if !self.dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.data.get().map_or(Ok(()), |data| data.sync()).and_then(|()| self.meta.sync());
        if synced.is_err() {
            self.dirty.store(true, Ordering::Release);
        }
        synced
    }
}

/// A handle of one write in the journal. Dropped without [`RecordHandle::done`], the write stays for recovery.
#[derive(Debug)]
pub struct RecordHandle {
    pub(super) segment_list: Arc<SegmentList>,
    pub(super) segment: Arc<Segment>,
    pub(super) sequence: u64,
    /// Location of the bytes; `behind` is the offset of those that follow their record.
    pub(super) payload: Payload,
    pub(super) behind: u64,
    /// Intermediate checksums, see [`Marked`](super::checksum::Marked).
    pub(super) marks: Box<[u32]>,
}

impl RecordHandle {
    /// Sequence number in the order of appends.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Length of the packed elements in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.payload.len
    }

    /// Whether the write is in the kernel, so that it survives a process crash.
    pub fn is_written_out(&self) -> bool {
        let batch = self.segment.batch();
        batch.is_empty() || self.sequence < batch.first
    }

    /// Whether the write survives power loss.
    pub fn is_durable(&self) -> bool {
        self.sequence < self.segment_list.durable_before()
    }

    /// Reads the packed elements and verifies their checksum. `into` must have their length. Works also after `done` and after
    /// the journal has failed: batched bytes stay in memory.
    pub fn read_into(&self, into: &mut [u8]) -> Result<()> {
        if into.len() as u64 != self.payload.len {
            return Err(corrupt(format!("{} bytes to read {} into", into.len(), self.payload.len)));
        }
        self.read(0, into)?;
        self.check(into)
    }

    /// Verifies the checksum of all packed elements.
    pub(super) fn check(&self, elements: &[u8]) -> Result<()> {
        match checksum::extend(0, elements) == self.payload.crc {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// Verifies the checksum of the stored elements in constant memory.
    pub fn verify(&self) -> Result<()> {
        let (mut crc, mut at) = (0, 0);
        let mut buffer = vec![0; self.payload.len.min(WINDOW) as usize];
        while at < self.payload.len {
            let part = &mut buffer[..(self.payload.len - at).min(WINDOW) as usize];
            self.read(at, part)?;
            crc = checksum::extend(crc, part);
            at += part.len() as u64;
        }
        if crc == self.payload.crc { Ok(()) } else { Err(self.changed()) }
    }

    /// Reads bytes of the elements from offset `at` and verifies their checksum. The range must begin at a multiple of
    /// [`CHECKSUM_STEP`], and end at one or at the end of the elements.
    pub fn read_checked(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at.saturating_add(into.len() as u64);
        if !at.is_multiple_of(CHECKSUM_STEP) || !(end.is_multiple_of(CHECKSUM_STEP) || end == self.payload.len) {
            return Err(corrupt(format!("{} bytes at {at} cannot be checked by themselves", into.len())));
        }
        // Checksums before and after each step.
        let first = (at / CHECKSUM_STEP) as usize;
        let mark = |number: usize| self.marks.get(number).copied().unwrap_or(self.payload.crc);
        let mut crc = if first == 0 { 0 } else { mark(first - 1) };
        for (number, step) in (first..).zip(into.chunks_mut(CHECKSUM_STEP as usize)) {
            self.read(number as u64 * CHECKSUM_STEP, step)?;
            crc = checksum::extend(crc, step);
            if crc != mark(number) {
                return Err(self.changed());
            }
        }
        Ok(())
    }

    /// Reads bytes of the elements from offset `at`, unchecked: see [`RecordHandle::verify`].
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        if at.checked_add(into.len() as u64).is_none_or(|end| end > self.payload.len) {
            return Err(corrupt(format!("{} bytes at {at} of {}", into.len(), self.payload.len)));
        }
        let (file, offset) = match self.payload.place {
            PayloadPlace::Behind => (Some(&self.segment.meta), self.behind + at),
            PayloadPlace::Data(offset) => (self.segment.data.get(), offset + at),
        };
        let name = || self.segment_list.name_of(self.segment.number);
        let gathered = {
            let batch = self.segment.batch();
            match self.payload.place {
                PayloadPlace::Behind => batch.read_meta(into, offset),
                PayloadPlace::Data(_) => batch.read_data(into, offset),
            }
        };
        let read = match (gathered, file) {
            (true, _) => into.len(),
            (false, Some(file)) => file.read_at(into, offset).map_err(|cause| failed("read journal", name(), cause))?,
            (false, None) => return Err(corrupt("its data are gone").target(name())),
        };
        if read < into.len() { Err(self.changed()) } else { Ok(()) }
    }

    pub(super) fn changed(&self) -> Error {
        let name = self.segment_list.name_of(self.segment.number);
        corrupt("the bytes of a write are no longer what they were").target(name)
    }

    /// Marks the write as completed: its elements are in the container, as durable there as required (see the crate
    /// documentation). Space is freed once all older writes are completed too. Idempotent.
    pub fn done(&self) {
        self.segment_list.finish(&self.segment, self.sequence);
    }
}
