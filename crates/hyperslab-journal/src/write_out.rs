//! Writing batched records out to the kernel, and the fallback if the storage refuses them.

use super::failed;
use super::journal::no_room;
use super::segment::Segment;
use super::segment_list::SegmentList;
use hyperslab_core::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

/// Result of a write-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOut {
    /// All writes are in the kernel.
    All,
    /// Some writes are in memory only, and the files hold no others.
    InMemory,
}

impl WriteOut {
    /// Fails if some writes can only stay in memory.
    pub fn check(self) -> Result<()> {
        if self == Self::All { Ok(()) } else { Err(no_room()) }
    }
}

impl SegmentList {
    /// Writes out the batch.
    pub fn try_write_out(&self) -> Result<WriteOut> {
        self.last().map_or(Ok(WriteOut::All), |segment| self.write_out_segment(&segment, false))
    }

    /// Writes out the batch. If the storage refuses it and all other writes are completed, removes the files instead, so that
    /// replay cannot put older data over what is in memory.
    pub fn write_out(&self) -> Result<WriteOut> {
        self.last().map_or(Ok(WriteOut::All), |segment| self.write_out_segment(&segment, true))
    }

    fn write_out_segment(&self, segment: &Segment, may_give_up: bool) -> Result<WriteOut> {
        let mut batch = segment.batch();
        if batch.is_empty() {
            return Ok(WriteOut::All);
        }
        self.check_process()?;
        if batch.given_up {
            return Ok(WriteOut::InMemory);
        }
        let error = match self.check() {
            Err(error) => error,
            Ok(()) => match batch.flush(&*segment.meta, segment.data.get().map(|data| &**data)) {
                Ok(()) => {
                    segment.dirty.store(true, Ordering::Release);
                    let recorded = self.reaches(segment.number, batch.meta_at);
                    recorded.map_err(|cause| self.not_taken(failed("append to journal", self.files.place(), cause)))?;
                    return Ok(WriteOut::All);
                }
                Err(cause) => self.not_taken(failed("append to journal", self.files.place(), cause)),
            },
        };
        let only_here = may_give_up && self.first_pending(u64::MAX) >= batch.first;
        if !only_here || self.remove_files(segment).is_err() {
            return Err(error);
        }
        batch.given_up = true;
        Ok(WriteOut::InMemory)
    }

    /// Records a refused write: `NoSpace` may pass, other errors are final.
    pub fn not_taken(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NoSpace => self.starved.store(self.used(), Ordering::Release),
            _ => self.fail(error.copied()),
        }
        error
    }

    /// Whether the last write-out failed with `NoSpace`.
    pub fn is_out_of_space(&self) -> bool {
        self.starved.load(Ordering::Acquire) != u64::MAX
    }

    /// Whether the tail of the journal stays in memory until completed.
    pub fn is_given_up(&self) -> bool {
        self.last().is_some_and(|segment| segment.batch().given_up)
    }
}
