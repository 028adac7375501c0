//! Whole chunks, kept in a journal of their own while they are stored.
//!
//! Some formats give a chunk that changes another place, say so in the file only at the next flush, and may have given the old place
//! away by then ([`Caps::relocates_chunks`](hyperslab_core::Caps::relocates_chunks)). Where the process ends in between, neither the old
//! nor the new content can be found, and a replay of writes to parts of the chunk has nothing to put them into.
//!
//! So a chunk is stored in these steps, one chunk at a time, with nothing else unflushed in the container:
//!
//! 1. Its new content, all of it, is appended to the journal of images: from now on it may be lost in the container.
//! 2. It is written to the container as a whole, and the container is flushed. The file says where it is.
//! 3. The image is done.
//!
//! One at a time, because of what a flush that was interrupted may leave: some chunks with their new places in the file, others with
//! their old ones. If the place of one had become another's, both would be said to be there, and storing the one again would give
//! the place of the other away. With one chunk in question, its old place can only be its own.
//!
//! A recovery applies images before all other journals of the job: their heads have an earlier time. What was logged since then follows,
//! and is newer or the same. For that, images must be gone before any write that they may be older than is taken out of its journal:
//! [`Images::clear`].

use crate::journal::{Append, Files, Header, Id, Journal, Limits, Logged, SyncMode};
use hyperslab_core::{Datatype, Error, Result, Selection};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Segments are small, so that their files are given back soon.
const SEGMENT: u64 = 4 << 20;
/// How much earlier than the writes that come after them images say they are.
const EARLIER: Duration = Duration::from_nanos(1);

/// The chunks that are being stored in one container.
#[derive(Debug)]
pub(crate) struct Images {
    files: Arc<dyn Files>,
    header: Header,
    limits: Limits,
    /// Made when it is needed.
    journal: Mutex<Option<Arc<Journal>>>,
    /// Why chunks are stored without being kept.
    stopped: OnceLock<String>,
}

impl Images {
    /// For the container that journals with such a head belong to. `bytes`: what the largest chunk may have, with room to spare.
    /// `power`: whether the loss of power matters, too.
    pub fn new(files: Arc<dyn Files>, writes: &Header, bytes: u64, power: bool) -> Result<Self> {
        let created = writes.created.checked_sub(EARLIER).unwrap_or(writes.created);
        let header = Header { journal: Id::random()?, created, rank: 0, ..writes.clone() };
        let usual = Limits::new(bytes);
        let limits = Limits { segment: usual.segment.min(SEGMENT), durable: power, sync: SyncMode::OnFlush, ..usual };
        Ok(Self { files, header, limits, journal: Mutex::default(), stopped: OnceLock::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Journal>>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a chunk of so many bytes can be kept.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes <= self.limits.bytes / 4
    }

    /// Why chunks are stored without being kept, if they are.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Stores a chunk: `store` writes these elements, packed, and returns when the container was flushed. Before the first
    /// chunk nothing in the container may wait for a flush. Where the image cannot be kept, the chunk is stored without.
    pub fn store(
        &self,
        array: &str,
        dtype: &Datatype,
        chunk: &Selection,
        packed: &[u8],
        store: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let kept = match self.stopped.get() {
            Some(_) => None,
            None => self.keep(array, dtype, chunk, packed).map_or_else(
                |error| {
                    let _ = self.stopped.set(error.to_string());
                    None
                },
                Some,
            ),
        };
        store()?;
        if let Some(kept) = kept {
            kept.done();
        }
        Ok(())
    }

    fn keep(&self, array: &str, dtype: &Datatype, chunk: &Selection, packed: &[u8]) -> Result<Logged> {
        let mut journal = self.lock();
        let journal = match &mut *journal {
            Some(journal) => journal,
            none => none.insert(Journal::create(self.files.clone(), self.header.clone(), self.limits)?),
        };
        match journal.append(array, dtype, chunk, &[packed])? {
            Append::Logged(logged) => {
                let safe = if self.limits.durable { journal.sync() } else { Ok(()) };
                // Nobody will have it done otherwise.
                safe.inspect_err(|_| logged.done()).map(|()| logged)
            }
            Append::Full { .. } | Append::TooLarge => {
                Err(Error::unsupported("keep chunk", "it is too large for the log").target(array))
            }
        }
    }

    /// After this, recovery finds no image any more. No chunk may be being stored.
    pub fn clear(&self) -> Result<()> {
        let mut journal = self.lock();
        let Some(open) = &*journal else { return Ok(()) };
        if open.checkpoint().is_err() {
            // One that failed can still go.
            if !open.close_and_remove()? {
                return Err(Error::unsupported("clear images", "a chunk is being stored"));
            }
            *journal = None;
        }
        Ok(())
    }

    /// Everything is in the container: the files go. Otherwise they stay.
    pub fn finish(&self) -> Result<()> {
        self.lock().take().map_or(Ok(()), |journal| journal.close_and_remove().map(drop))
    }
}
