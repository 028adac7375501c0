//! The data log of the next segment, made before an append needs it. Creating a file and reserving room wait for a sync that
//! runs, and so would the append; whoever syncs does both before.
//!
//! Data without records are nothing: a file that is left by the end of the process is removed with the others.

use super::file_names;
use super::segment_list::{SegmentList, lock};
use super::storage::LogFile;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// What there is of it. Its room is counted from when it is wanted.
#[derive(Debug, Default)]
pub(super) struct PreallocatedSegment(Mutex<Next>);

#[derive(Debug, Default)]
enum Next {
    #[default]
    None,
    /// The data log of a segment, and the bytes to reserve for it.
    ReadRequest(u64, u64),
    Made(u64, u64, Arc<dyn LogFile>),
}

impl SegmentList {
    /// The next sync shall make the data log of a segment, with so much room.
    pub fn want_ahead(&self, number: u64, room: u64) {
        let mut next = lock(&self.ahead.0);
        if let Next::None = *next {
            self.used.fetch_add(room, Ordering::AcqRel);
            *next = Next::ReadRequest(number, room);
        }
    }

    /// Makes what is wanted. Where that fails, the append that needs it tries again, and says why it cannot be.
    pub fn make_ahead(&self) {
        let mut next = lock(&self.ahead.0);
        let Next::ReadRequest(number, room) = *next else { return };
        let name = file_names::data(&self.stem, number);
        let file = self.files.create(&name);
        self.names.changed();
        *next = match file {
            Ok(file) if file.reserve(0, room).is_ok() => Next::Made(number, room, file),
            file => {
                self.used.fetch_sub(room, Ordering::AcqRel);
                // One that cannot be removed is used without.
                let stays = file.ok().filter(|_| self.files.remove(&name).is_err());
                stays.map_or(Next::None, |file| Next::Made(number, 0, file))
            }
        };
    }

    /// The data log of a segment and its room, which is no longer counted, if it was made.
    pub fn take_ahead(&self, number: u64) -> Option<(Arc<dyn LogFile>, u64)> {
        let mut next = lock(&self.ahead.0);
        let is_it = matches!(*next, Next::Made(made, ..) if made == number);
        match std::mem::take(&mut *next) {
            Next::Made(_, room, file) if is_it => {
                self.used.fetch_sub(room, Ordering::AcqRel);
                Some((file, room))
            }
            other => {
                self.forget(other);
                None
            }
        }
    }

    /// Gives its room back.
    pub fn release_ahead(&self) {
        self.forget(std::mem::take(&mut *lock(&self.ahead.0)));
    }

    fn forget(&self, next: Next) {
        let (Next::ReadRequest(number, room) | Next::Made(number, room, _)) = next else { return };
        if let Next::Made(..) = next {
            // Without records it is nothing, and goes with the others if it does not now.
            let _ = self.files.remove(&file_names::data(&self.stem, number));
            self.names.changed();
        }
        self.used.fetch_sub(room, Ordering::AcqRel);
    }
}
