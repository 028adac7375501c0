//! Giving the kernel what was gathered, and what to do where it does not take it.

use super::failed;
use super::journal::no_room;
use super::segment::Segment;
use super::segment_list::SegmentList;
use hyperslab_core::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

/// Where the writes of a journal are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOut {
    /// With the kernel, all of them.
    All,
    /// Some are in memory alone, and no file holds any other.
    InMemory,
}

impl WriteOut {
    /// Fails where some are in memory for good.
    pub fn check(self) -> Result<()> {
        if self == Self::All { Ok(()) } else { Err(no_room()) }
    }
}

impl SegmentList {
    /// Hands over what is gathered.
    pub fn try_write_out(&self) -> Result<WriteOut> {
        self.last().map_or(Ok(WriteOut::All), |segment| self.write_out_segment(&segment, false))
    }

    /// Hands over what is gathered. Where the storage does not take it and everything else is done, the files go instead, so
    /// that nothing old can be replayed over what is in memory.
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

    /// The storage did not take something. Where there was no space, there may be some later; other errors are final.
    pub fn not_taken(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NoSpace => self.starved.store(self.used(), Ordering::Release),
            _ => self.fail(error.copied()),
        }
        error
    }

    /// Whether there was no space the last time.
    pub fn is_out_of_space(&self) -> bool {
        self.starved.load(Ordering::Acquire) != u64::MAX
    }

    /// Whether the end of the journal is in memory for good, until it is done.
    pub fn is_given_up(&self) -> bool {
        self.last().is_some_and(|segment| segment.batch().given_up)
    }
}
