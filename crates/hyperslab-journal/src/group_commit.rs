//! Group commit: records and payloads appended to a segment that are batched in memory until written out.

use super::storage::LogFile;
use std::io::{IoSlice, Result};

/// Batch size at which it is written out, in bytes.
pub(super) const FULL: u64 = 1 << 20;

/// The tail of a segment that is in memory only.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    /// Records, and the payloads that follow them.
    pub meta: Vec<u8>,
    /// Their offset in the metadata log.
    pub meta_at: u64,
    /// Payloads for the data log.
    pub data: Vec<u8>,
    /// Their offset in the data log; everything before is in the kernel.
    pub data_at: u64,
    /// Sequence number of the first batched record.
    pub first: u64,
    /// Bytes that a crash would lose, including data whose records are batched.
    pub bytes: u64,
    /// The files of the segment are removed and the batch stays in memory: see [`super::Journal::write_out`].
    pub given_up: bool,
}

impl GroupCommit {
    /// Whether everything is written out.
    pub fn is_empty(&self) -> bool {
        self.meta.is_empty()
    }

    /// Writes out the payloads, which must precede their records.
    pub fn flush_data(&mut self, data: Option<&dyn LogFile>) -> Result<()> {
        if let (Some(file), false) = (data, self.data.is_empty()) {
            file.write_at(&[IoSlice::new(&self.data)], self.data_at)?;
            self.data_at += self.data.len() as u64;
            self.data.clear();
        }
        Ok(())
    }

    /// Writes out payloads, then records. On error the rest stays batched and can be retried.
    pub fn flush(&mut self, meta: &dyn LogFile, data: Option<&dyn LogFile>) -> Result<()> {
        self.flush_data(data)?;
        if !self.meta.is_empty() {
            meta.write_at(&[IoSlice::new(&self.meta)], self.meta_at)?;
            self.meta_at += self.meta.len() as u64;
            self.meta.clear();
        }
        self.bytes = 0;
        Ok(())
    }

    /// Copies bytes of the metadata log, if they are batched.
    pub fn read_meta(&self, into: &mut [u8], offset: u64) -> bool {
        copy(&self.meta, self.meta_at, into, offset)
    }

    /// Copies bytes of the data log, if they are batched.
    pub fn read_data(&self, into: &mut [u8], offset: u64) -> bool {
        copy(&self.data, self.data_at, into, offset)
    }
}

fn copy(from: &[u8], begin: u64, into: &mut [u8], offset: u64) -> bool {
    let at = offset.checked_sub(begin).and_then(|at| usize::try_from(at).ok());
    let there = at.and_then(|at| from.get(at..at.checked_add(into.len())?));
    if let Some(there) = there {
        into.copy_from_slice(there);
    }
    there.is_some()
}
