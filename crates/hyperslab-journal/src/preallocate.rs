//! Preallocation of the next segment's data log before an append needs it. Creating a file and reserving space would wait
//! for a running sync, and the append with them; so the syncing thread does both beforehand.
//!
//! Data without records has no effect: a file left by a crash is removed with the others.

use super::file_names;
use super::segment_list::SegmentList;
use super::storage::LogFile;
use hyperslab_core::lock;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The preallocated data log. Its space counts as used from the request on.
#[derive(Debug, Default)]
pub(super) struct PreallocatedSegment(Mutex<Next>);

#[derive(Debug, Default)]
enum Next {
    #[default]
    None,
    /// Requested: segment number, and bytes to reserve.
    ReadRequest(u64, u64),
    Made(u64, u64, Arc<dyn LogFile>),
}

impl SegmentList {
    /// Requests the data log of a segment, with `room` bytes; the next sync creates it.
    pub fn want_ahead(&self, number: u64, room: u64) {
        let mut next = lock(&self.ahead.0);
        if let Next::None = *next {
            self.used.fetch_add(room, Ordering::AcqRel);
            *next = Next::ReadRequest(number, room);
        }
    }

    /// Creates the requested file. On failure, the append that needs it retries and reports the error.
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
                // If it cannot be removed, it is used without preallocation.
                let stays = file.ok().filter(|_| self.files.remove(&name).is_err());
                stays.map_or(Next::None, |file| Next::Made(number, 0, file))
            }
        };
    }

    /// Takes the data log of a segment and its space, which is no longer counted here.
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

    /// Releases its space.
    pub fn release_ahead(&self) {
        self.forget(std::mem::take(&mut *lock(&self.ahead.0)));
    }

    fn forget(&self, next: Next) {
        let (Next::ReadRequest(number, room) | Next::Made(number, room, _)) = next else { return };
        if let Next::Made(..) = next {
            // Without records it has no effect; if removal fails, it is removed with the other files.
            let _ = self.files.remove(&file_names::data(&self.stem, number));
            self.names.changed();
        }
        self.used.fetch_sub(room, Ordering::AcqRel);
    }
}
