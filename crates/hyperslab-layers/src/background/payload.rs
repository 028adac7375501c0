//! The elements of a buffered write.

use super::staging::StagedWrite;
use hyperslab_core::{Bytes, Result};

#[derive(Debug)]
pub(crate) enum Payload {
    Memory(Bytes),
    /// Packed in a journal.
    Staged(StagedWrite),
}

impl Payload {
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Staged(record) => record.len(),
        }
    }

    /// Calls `work` with the bytes.
    pub fn with<T>(&self, work: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        match self {
            Self::Memory(bytes) => work(bytes),
            Self::Staged(record) => record.with(work),
        }
    }

    /// Marks the write as completed in the journal.
    pub fn written(&self) {
        if let Self::Staged(record) = self {
            record.moved();
        }
    }
}
