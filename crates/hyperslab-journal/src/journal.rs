//! The writer's side of a journal: creation, limits, write-out and sync.

use super::active_segment::ActiveSegment;
use super::commit::Committer;
use super::group_commit::GroupCommit;
use super::head_slots::{self, LiveSegments, SLOT};
use super::header::Header;
use super::heartbeat::Heartbeat;
use super::segment::{RecordHandle, Segment};
use super::segment_header::SegmentHeader;
use super::segment_list::SegmentList;
use super::storage::{JournalStorage, Lock, LogFile};
use super::sync_mode::SyncMode;
use super::{checksum, failed, file_names};
use hyperslab_core::{Error, ErrorKind, Result, lock};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

const SMALLEST_LIMIT: u64 = 64 << 10;
/// Milliseconds that a recovery may hold the lock of a new head.
const LOOKS: u32 = 100;
/// How often a recovery may remove an unfinished head before creation fails.
const REMOVALS: u32 = 3;

/// Size limits of a journal, and the durability of its appends.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of all files together, in bytes.
    pub bytes: u64,
    /// Size at which a segment is full, in bytes; it may exceed it by one record.
    pub segment: u64,
    /// Whether directory entries of segments become durable in order, as surviving power loss requires. Otherwise that is left
    /// to the file system (journaling ones do so). Implied by sync modes that cover power loss.
    pub durable: bool,
    /// When appended records reach the kernel and the device.
    pub sync: SyncMode,
    /// Whether the data log is written with direct I/O, bypassing the page cache. The metadata log never is.
    pub direct: bool,
}

impl Limits {
    /// A limit of `bytes`, segments of an eighth of it (32 KiB to 64 MiB), and [`SyncMode::OnFlush`].
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            segment: (bytes / 8).clamp(32 << 10, 64 << 20),
            durable: false,
            sync: SyncMode::OnFlush,
            direct: false,
        }
    }

    fn names_are_durable(&self) -> bool {
        self.durable || self.sync.covers_power()
    }
}

/// Result of an append.
#[derive(Debug)]
pub enum Append {
    /// The write is in the journal, with the durability of its [`SyncMode`].
    Logged(RecordHandle),
    /// The limit is reached, or the storage is full while appends are batched: complete earlier writes first.
    Full {
        /// Free bytes to [wait](Journal::wait_for_room) for.
        needed: u64,
    },
    /// The write exceeds the limit of the journal.
    TooLarge,
}

/// A journal open for appending. Dropping it removes its files if all writes are completed, and leaves them for recovery
/// otherwise.
#[derive(Debug)]
pub struct Journal {
    pub(super) segment_list: Arc<SegmentList>,
    header: Header,
    pub(super) limits: Limits,
    pub(super) writer: Mutex<AppendState>,
    /// The thread of [`SyncMode::Every`].
    pub(super) committer: Option<Committer>,
    /// Present if the head identifies the container.
    heartbeat: Option<Arc<Heartbeat>>,
}

#[derive(Debug, Default)]
pub(super) struct AppendState {
    pub(super) current: Option<ActiveSegment>,
    segments: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// Reused encoding buffer.
    pub(super) buffer: Vec<u8>,
    pub(super) closed: bool,
    /// All files are removed.
    pub(super) removed: bool,
}

impl Journal {
    /// Creates and locks the head of a journal. Segments are created by appends.
    pub fn create(files: Arc<dyn JournalStorage>, header: Header, limits: Limits) -> Result<Arc<Self>> {
        if limits.bytes < SMALLEST_LIMIT {
            return Err(Error::invalid("create journal", format!("{} bytes are too few", limits.bytes))
                .hint("allow 64KiB at least"));
        }
        let stem = file_names::stem(&header);
        let (unfinished, name) = (format!("{stem}{}", file_names::UNFINISHED), format!("{stem}{}", file_names::HEAD));
        let live = LiveSegments {
            first: 1,
            last: 0,
            least: 0,
            durable: limits.names_are_durable(),
            each_write: limits.sync == SyncMode::EveryWrite,
        };
        let bytes = head_bytes(&header, &live);
        let head = write_head(&*files, &bytes, &unfinished, &name, limits.names_are_durable())
            .inspect_err(|_| drop(files.remove(&unfinished)))
            .map_err(|cause| failed("create journal", format!("{}/{name}", files.place()), cause))?;
        let slots = header.identity.map(|_| head_slots::begin(header.encode().len()));
        // A container that cannot be looked at is one that a recovery asks about.
        let heartbeat = slots.and_then(|at| Heartbeat::new(head.clone(), at, &header.container).ok()).map(Arc::new);
        let mut segment_list = SegmentList::new(files, stem, limits.names_are_durable(), head);
        segment_list.live = slots.map(|at| (at + SLOT as u64, Mutex::new(live)));
        let segment_list = Arc::new(segment_list);
        let writer = Mutex::new(AppendState { next: 1, ..AppendState::default() });
        let committer = match limits.sync {
            SyncMode::Every(period) => Some(Committer::new(period)),
            _ => None,
        };
        Ok(Arc::new(Self { segment_list, header, limits, writer, committer, heartbeat }))
    }

    /// Job, rank and container of the journal.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The heartbeat in the head; call [`Heartbeat::beat`] before writing to the container.
    pub fn heartbeat(&self) -> Option<&Arc<Heartbeat>> {
        self.heartbeat.as_ref()
    }

    /// Maximum size of the files, in bytes.
    pub fn limit(&self) -> u64 {
        self.limits.bytes
    }

    /// Present size of the files, in bytes.
    pub fn used(&self) -> u64 {
        self.segment_list.used()
    }

    /// Number of writes that are not completed.
    pub fn pending(&self) -> u64 {
        self.segment_list.pending()
    }

    /// The active segment, created if there is none.
    pub(super) fn current<'a>(&self, writer: &'a mut AppendState) -> Result<&'a mut ActiveSegment> {
        if writer.current.is_none() {
            self.segment_list.check_process()?;
            let number = writer.segments + 1;
            let done_before = self.segment_list.first_pending(writer.next);
            let head = SegmentHeader { journal: self.header.journal, number, first: writer.next, done_before };
            let name = file_names::meta(&self.segment_list.stem, number);
            let bytes = head.encode();
            // Directory entries of earlier segments must be durable before this one's: if they were lost and it survived, they
            // would seem to have been removed.
            let safe = match number > 1 && self.limits.names_are_durable() && self.segment_list.names.are_new() {
                true => self.segment_list.names.sync(&*self.segment_list.files),
                false => Ok(()),
            };
            let created = safe.and_then(|()| self.segment_list.files.create(&name)).map_err(|cause| (cause, true));
            let meta = created.and_then(|meta| {
                // Recorded in the head before any append is acknowledged, so that recovery notices if the segment is missing.
                let written = meta
                    .write_at(&[IoSlice::new(&bytes)], 0)
                    .and_then(|()| self.segment_list.reaches(number, bytes.len() as u64));
                // A segment without a header would stop the reader in front of later segments.
                let undone = written.as_ref().is_ok() || self.segment_list.files.remove(&name).is_ok();
                written.map(|()| meta).map_err(|cause| (cause, undone))
            });
            let meta = meta.map_err(|(cause, undone)| {
                let error = failed("append to journal", self.segment_list.name_of(number), cause);
                if !undone {
                    self.segment_list.fail(error.copied());
                }
                error
            })?;
            writer.segments = number;
            self.segment_list.names.changed();
            let seed = checksum::seed(&self.header.journal, number);
            let (data, dirty) = (OnceLock::new(), AtomicBool::new(true));
            let head = bytes.len() as u64;
            let batch = Mutex::new(GroupCommit { meta_at: head, ..GroupCommit::default() });
            let segment = Arc::new(Segment { number, seed, meta, data, dirty, batch });
            self.segment_list.push(segment.clone(), writer.next, head);
            writer.current = Some(ActiveSegment::new(segment, head));
        }
        writer.current.as_mut().ok_or_else(|| super::corrupt("no segment"))
    }

    /// Seals the active segment. Fails if its batch cannot be written out; the segment then stays active.
    pub(super) fn fill(&self, writer: &mut AppendState) -> Result<()> {
        // With nothing pending, all files are removed and need no contents.
        match self.segment_list.pending() > 0 {
            true => self.segment_list.try_write_out()?.check()?,
            false => self.segment_list.release_ahead(),
        }
        if let Some(current) = writer.current.take() {
            self.give_room_back(current);
        }
        self.segment_list.fill();
        Ok(())
    }

    /// Frees storage that was reserved and not used.
    pub(super) fn give_room_back(&self, mut current: ActiveSegment) {
        let segment = current.segment.clone();
        let mut batch = segment.batch();
        if !batch.is_empty() {
            return;
        }
        // Nothing is batched in it any more.
        (batch.meta, batch.data) = Default::default();
        if current.room.meta > current.meta_len && segment.meta.truncate(current.meta_len).is_ok() {
            current.room.meta = current.meta_len;
        }
        if let Some(data) = segment.data.get()
            && current.room.data > current.data_end
            && !self.limits.keeps(current.room.data - current.data_end)
            && data.truncate(current.data_end).is_ok()
        {
            current.room.data = current.data_end;
        }
        self.segment_list.give_back(current.shrunk());
    }

    /// Writes batched records to the kernel. Afterwards every earlier append survives a process crash (not power loss), and may
    /// be written to the container.
    ///
    /// If the storage refuses the batch, this fails. The caller then writes those writes to the container for which
    /// [`RecordHandle::is_written_out`] is true, completes them and calls this again: it removes the files, which now hold nothing
    /// that the container lacks, and returns. The remaining writes, still readable from memory, may then be written too.
    pub fn write_out(&self) -> Result<()> {
        self.segment_list.write_out().map(drop)
    }

    /// The common prefix of its file names.
    pub fn stem(&self) -> &str {
        &self.segment_list.stem
    }

    /// Upper bound of the number of files.
    pub fn files(&self) -> u64 {
        1 + 2 * lock(&self.segment_list.state).segments.len() as u64
    }

    /// Whether direct I/O was requested and the file system does not support it.
    pub fn direct_was_refused(&self) -> bool {
        self.segment_list.direct_refused.load(Ordering::Acquire)
    }

    /// All writes with lower sequence numbers are durable.
    pub fn durable_before(&self) -> u64 {
        self.segment_list.durable_before()
    }

    /// Waits until `needed` bytes are free, as returned by [`Append::Full`], or the journal has failed. Returns `false` on
    /// timeout.
    pub fn wait_for_room(&self, needed: u64, limit: Duration) -> bool {
        self.segment_list.wait(limit, |used| used.saturating_add(needed) <= self.limits.bytes)
    }

    /// Makes all appends and checkpoints that returned before durable. Does not block appends of other threads. `NoSpace`
    /// means that the batch could not be written out, see [`Journal::write_out`]; other errors are final.
    pub fn sync(&self) -> Result<()> {
        self.segment_list.sync()
    }

    /// Schedules the periodic sync of a record, in [`SyncMode::Every`].
    pub(super) fn arm(&self, sequence: u64) -> Result<()> {
        match &self.committer {
            Some(committer) if !committer.appended(&self.segment_list) => self.segment_list.sync_up_to(sequence),
            _ => Ok(()),
        }
    }

    pub(super) fn writer(&self) -> Result<MutexGuard<'_, AppendState>> {
        self.segment_list.check()?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.closed {
            false => Ok(writer),
            true => Err(Error::invalid("append to journal", "it is closed").backend("journal")),
        }
    }
}

/// The error for batched writes that the full storage refuses.
pub(super) fn no_room() -> Error {
    let message = "there is no room for the last writes, which are in memory only";
    Error::new(ErrorKind::NoSpace, "append to journal", message).backend("journal")
}

/// The bytes of the head file, with slots if the container is identified.
fn head_bytes(header: &Header, live: &LiveSegments) -> Vec<u8> {
    let mut bytes = header.encode();
    if header.identity.is_some() {
        bytes.resize(head_slots::begin(bytes.len()) as usize + SLOT, 0);
        bytes.extend(live.encode());
    }
    bytes
}

/// Writes and locks the head under a temporary name, then renames it. Retries if a recovery removed it as unfinished.
fn write_head(
    files: &dyn JournalStorage,
    bytes: &[u8],
    unfinished: &str,
    name: &str,
    durable: bool,
) -> std::io::Result<Arc<dyn LogFile>> {
    let mut written = try_head(files, bytes, unfinished, name, durable);
    for _ in 0..REMOVALS {
        match &written {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                written = try_head(files, bytes, unfinished, name, durable);
            }
            _ => break,
        }
    }
    written
}

fn try_head(
    files: &dyn JournalStorage,
    bytes: &[u8],
    unfinished: &str,
    name: &str,
    durable: bool,
) -> std::io::Result<Arc<dyn LogFile>> {
    let head = files.create(unfinished)?;
    let mut tries = 0;
    while head.lock()? == Lock::Busy {
        // A recovery may be looking what it is, and lets go at once.
        if tries == LOOKS {
            return Err(std::io::Error::other("a file just created is locked by someone else"));
        }
        tries += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    head.write_at(&[IoSlice::new(bytes)], 0)?;
    if durable {
        // After a loss of power the name may be there without what the file had.
        head.sync()?;
    }
    files.rename(unfinished, name)?;
    Ok(head)
}
