//! A segment of a journal, and the handle of one write in it.

use super::checksum::{self, CHECKSUM_STEP};
use super::group_commit::GroupCommit;
use super::record::{Payload, PayloadPlace};
use super::segment_list::SegmentList;
use super::storage::LogFile;
use super::{corrupt, failed};
use hyperslab_core::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that are read at a time to check them.
const WINDOW: u64 = 256 << 10;

/// A pair of files: records, and the bytes of large writes.
#[derive(Debug)]
pub(super) struct Segment {
    pub number: u64,
    /// With which the checksums of its records begin.
    pub seed: u32,
    pub meta: Arc<dyn LogFile>,
    /// There once a write needed it.
    pub data: OnceLock<Arc<dyn LogFile>>,
    /// Whether something was written since the last sync.
    pub dirty: AtomicBool,
    /// Its end, as far as the kernel does not have it.
    pub batch: Mutex<GroupCommit>,
}

impl Segment {
    pub fn batch(&self) -> MutexGuard<'_, GroupCommit> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes what was written so far durable, data before the records that speak of them.
    pub fn sync(&self) -> std::io::Result<()> {
        // Cleared first: what is written meanwhile sets it again.
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

/// A write that is in the journal. Dropping it without [`RecordHandle::done`] leaves it there for recovery.
#[derive(Debug)]
pub struct RecordHandle {
    pub(super) segment_list: Arc<SegmentList>,
    pub(super) segment: Arc<Segment>,
    pub(super) sequence: u64,
    /// Where its bytes are; behind a record, `behind` is their offset.
    pub(super) payload: Payload,
    pub(super) behind: u64,
    /// Checksums on the way, see [`Marked`](super::checksum::Marked).
    pub(super) marks: Box<[u32]>,
}

impl RecordHandle {
    /// Its place in the order of all writes of the journal.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of the elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.payload.len
    }

    /// Whether the kernel has it, so that it survives the end of the process.
    pub fn is_written_out(&self) -> bool {
        let batch = self.segment.batch();
        batch.is_empty() || self.sequence < batch.first
    }

    /// Whether it survives the loss of power.
    pub fn is_durable(&self) -> bool {
        self.sequence < self.segment_list.durable_before()
    }

    /// Reads the elements, packed, and checks that they are what was appended. `into` must have their length. Works also
    /// after `done`, and after the journal failed: what the kernel was never given is still in memory.
    pub fn read_into(&self, into: &mut [u8]) -> Result<()> {
        if into.len() as u64 != self.payload.len {
            return Err(corrupt(format!("{} bytes to read {} into", into.len(), self.payload.len)));
        }
        self.read(0, into)?;
        self.check(into)
    }

    /// Checks that these are all its elements as they were appended.
    pub(super) fn check(&self, elements: &[u8]) -> Result<()> {
        match checksum::extend(0, elements) == self.payload.crc {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// Checks that all elements are what was appended, with little memory.
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

    /// Reads bytes of the elements, from `at` on, and checks that they are what was appended. They begin at a multiple of
    /// [`CHECKSUM_STEP`], and end at one or with the elements.
    pub fn read_checked(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at.saturating_add(into.len() as u64);
        if !at.is_multiple_of(CHECKSUM_STEP) || !(end.is_multiple_of(CHECKSUM_STEP) || end == self.payload.len) {
            return Err(corrupt(format!("{} bytes at {at} cannot be checked by themselves", into.len())));
        }
        // What comes before and behind each step.
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

    /// Reads bytes of the elements, from `at` on. Nothing is checked: see [`RecordHandle::verify`].
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

    /// The elements are in the container, as safe there as they have to be: see the module. Room is given back when this
    /// holds for all older writes too. Calling it again changes nothing.
    pub fn done(&self) {
        self.segment_list.finish(&self.segment, self.sequence);
    }
}
