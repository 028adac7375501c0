//! What a segment was given and the kernel has not: records, and bytes of writes that are gathered with others.

use super::storage::LogFile;
use std::io::{IoSlice, Result};

/// So many bytes are handed over at once.
pub(super) const FULL: u64 = 1 << 20;

/// The end of a segment that is only in memory.
#[derive(Debug, Default)]
pub(super) struct GroupCommit {
    /// Records, and payloads that lie behind them.
    pub meta: Vec<u8>,
    /// Where in the metadata log they go.
    pub meta_at: u64,
    /// Payloads for the data log.
    pub data: Vec<u8>,
    /// Where they go: everything before is with the kernel.
    pub data_at: u64,
    /// The sequence number of the first record here.
    pub first: u64,
    /// Bytes that a crash would cost, those included whose records alone are here.
    pub bytes: u64,
    /// The files of the segment are gone, and what is here stays here: see [`super::Journal::write_out`].
    pub given_up: bool,
}

impl GroupCommit {
    /// Whether the kernel has everything.
    pub fn is_empty(&self) -> bool {
        self.meta.is_empty()
    }

    /// Hands the payloads over, which must be there before their records.
    pub fn flush_data(&mut self, data: Option<&dyn LogFile>) -> Result<()> {
        if let (Some(file), false) = (data, self.data.is_empty()) {
            file.write_at(&[IoSlice::new(&self.data)], self.data_at)?;
            self.data_at += self.data.len() as u64;
            self.data.clear();
        }
        Ok(())
    }

    /// Hands everything over. After an error it can be tried again; what is left is still here.
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

    /// Copies bytes of the metadata log, if they are here.
    pub fn read_meta(&self, into: &mut [u8], offset: u64) -> bool {
        copy(&self.meta, self.meta_at, into, offset)
    }

    /// Copies bytes of the data log, if they are here.
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
