//! Chunk images: whole chunks, journaled while the format stores them.
//!
//! Some formats move a rewritten chunk, update the file's index only at the next flush, and may have reused the old
//! location by then (`Execution::relocates_chunks`). After a crash in between, neither
//! the old nor the new contents can be found, and replay cannot apply writes to parts of the chunk.
//!
//! Therefore chunks are stored in these steps, one chunk at a time, with nothing else unflushed in the container:
//!
//! 1. The whole new chunk is appended to the journal of images: from now on the container may lose it.
//! 2. The chunk is written to the container, and the container is flushed: its index has the new location.
//! 3. The image is completed.
//!
//! One at a time, because an interrupted flush may leave an index with some new and some old locations. If one chunk had
//! moved to the old location of another, both would seem to be there, and storing the one again would free the location of
//! the other.
//!
//! Recovery applies images before all other journals of the job, since their heads have an earlier time; later writes are
//! newer or the same. Images must therefore be removed before any write newer than them leaves its journal:
//! [`ChunkImages::clear`].

use crate::{Append, Header, Id, Journal, JournalStorage, Limits, RecordHandle, SyncMode};
use hyperslab_core::{Datatype, Error, Result, Selection};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Small segments, so that space is freed soon.
const SEGMENT: u64 = 4 << 20;
/// The creation time of images precedes that of the writes by this.
const EARLIER: Duration = Duration::from_nanos(1);

/// The journal of chunk images of one container.
#[derive(Debug)]
pub struct ChunkImages {
    files: Arc<dyn JournalStorage>,
    header: Header,
    limits: Limits,
    /// Created by the first image.
    journal: Mutex<Option<Arc<Journal>>>,
    /// Why chunks are stored without images.
    stopped: OnceLock<String>,
}

impl ChunkImages {
    /// For the container of the journals with this head. `bytes`: size limit, several times the largest chunk. `power`:
    /// whether images must survive power loss.
    pub fn new(files: Arc<dyn JournalStorage>, writes: &Header, bytes: u64, power: bool) -> Result<Self> {
        let created = writes.created.checked_sub(EARLIER).unwrap_or(writes.created);
        let header = Header { journal: Id::random()?, created, rank: 0, ..writes.clone() };
        let usual = Limits::new(bytes);
        // By that recovery tells what a loss of power leaves of an image from damage.
        let sync = if power { SyncMode::EveryWrite } else { SyncMode::OnFlush };
        let limits = Limits { segment: usual.segment.min(SEGMENT), durable: power, sync, ..usual };
        Ok(Self { files, header, limits, journal: Mutex::default(), stopped: OnceLock::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Journal>>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a chunk of this size can be journaled.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes <= self.limits.bytes / 4
    }

    /// Why chunks are stored without images, if they are.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Journals a chunk while `store` writes the packed elements and flushes the container. Nothing in the container may be
    /// unflushed before the first chunk. If the image cannot be journaled, the chunk is stored without.
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

    fn keep(&self, array: &str, dtype: &Datatype, chunk: &Selection, packed: &[u8]) -> Result<RecordHandle> {
        let mut journal = self.lock();
        let journal = match &mut *journal {
            Some(journal) => journal,
            none => none.insert(Journal::create(self.files.clone(), self.header.clone(), self.limits)?),
        };
        match journal.append(array, dtype, chunk, &[packed])? {
            Append::Logged(logged) => {
                let safe = if self.limits.durable { journal.sync() } else { Ok(()) };
                // Completed here, since the caller gets no handle.
                safe.inspect_err(|_| logged.done()).map(|()| logged)
            }
            Append::Full { .. } | Append::TooLarge => {
                Err(Error::unsupported("keep chunk", "it is too large for the log").target(array))
            }
        }
    }

    /// Ensures that recovery finds no image. No chunk may be in the process of being stored.
    pub fn clear(&self) -> Result<()> {
        let mut journal = self.lock();
        let Some(open) = &*journal else { return Ok(()) };
        if open.checkpoint().is_err() {
            // A failed journal can still be removed.
            if !open.close_and_remove()? {
                return Err(Error::unsupported("clear images", "a chunk is being stored"));
            }
            *journal = None;
        }
        Ok(())
    }

    /// Closes the journal: removes its files if all images are completed; otherwise they stay for recovery.
    pub fn finish(&self) -> Result<()> {
        self.lock().take().map_or(Ok(()), |journal| journal.close_and_remove().map(drop))
    }
}
