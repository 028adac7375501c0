//! Appending to a journal.

use super::active_segment::ActiveSegment;
use super::commit::Committer;
use super::group_commit::GroupCommit;
use super::head_slots::{self, LiveSegments, SLOT};
use super::header::Header;
use super::heartbeat::Heartbeat;
use super::segment::{RecordHandle, Segment};
use super::segment_header::SegmentHeader;
use super::segment_list::{SegmentList, lock};
use super::storage::{JournalStorage, Lock, LogFile};
use super::sync_mode::SyncMode;
use super::{checksum, failed, file_names};
use hyperslab_core::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

const SMALLEST_LIMIT: u64 = 64 << 10;
/// Milliseconds for others to look at a new file.
const LOOKS: u32 = 100;
/// How often a new file may be removed by others.
const REMOVALS: u32 = 3;

/// How large the files of a journal may become, and how safe what is in them.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes after which a segment is full; it may exceed them by one record.
    pub segment: u64,
    /// Whether names of segments become durable in their order, for journals that shall survive the loss of power. Otherwise
    /// that is left to the file system; those with a journal of their own do so. Modes that promise something about the loss
    /// of power do so anyhow.
    pub durable: bool,
    /// When appends reach the kernel and the device.
    pub sync: SyncMode,
    /// Whether the data log goes to the device past the cache of the kernel, which leaves the cache to others. The metadata
    /// log never does.
    pub direct: bool,
}

impl Limits {
    /// Segments of an eighth, from 32 KiB to 64 MiB, which are synced when asked for.
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

/// What became of an append.
#[derive(Debug)]
pub enum Append {
    /// It is in the journal, as safe as its [`SyncMode`] says.
    Logged(RecordHandle),
    /// There is no room until earlier writes are done, by the limits or, where appends are gathered, on the storage.
    Full {
        /// Bytes to [wait](Journal::wait_for_room) for.
        needed: u64,
    },
    /// It never fits.
    TooLarge,
}

/// A journal that this process writes. Dropping it removes its files if all writes are done, and leaves them otherwise.
#[derive(Debug)]
pub struct Journal {
    pub(super) segment_list: Arc<SegmentList>,
    header: Header,
    pub(super) limits: Limits,
    pub(super) writer: Mutex<AppendState>,
    /// Where it syncs by itself.
    pub(super) committer: Option<Committer>,
    /// Where the head says which file the container is.
    heartbeat: Option<Arc<Heartbeat>>,
}

#[derive(Debug, Default)]
pub(super) struct AppendState {
    pub(super) current: Option<ActiveSegment>,
    segments: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// Space for records, used again.
    pub(super) buffer: Vec<u8>,
    pub(super) closed: bool,
    /// All its files are gone.
    pub(super) removed: bool,
}

impl Journal {
    /// Creates the head of a journal and locks it. No segment is there yet.
    pub fn create(files: Arc<dyn JournalStorage>, header: Header, limits: Limits) -> Result<Arc<Self>> {
        if limits.bytes < SMALLEST_LIMIT {
            return Err(Error::invalid("create journal", format!("{} bytes are too few", limits.bytes))
                .hint("allow 64KiB at least"));
        }
        let stem = file_names::stem(&header);
        let (unfinished, name) = (format!("{stem}{}", file_names::UNFINISHED), format!("{stem}{}", file_names::HEAD));
        let live = LiveSegments { first: 1, last: 0, durable: limits.names_are_durable() };
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

    /// Whose it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The sign of life in its head, to be given before the container is written.
    pub fn heartbeat(&self) -> Option<&Arc<Heartbeat>> {
        self.heartbeat.as_ref()
    }

    /// Bytes that its files may have.
    pub fn limit(&self) -> u64 {
        self.limits.bytes
    }

    /// Bytes of its files.
    pub fn used(&self) -> u64 {
        self.segment_list.used()
    }

    /// Writes that are not done.
    pub fn pending(&self) -> u64 {
        self.segment_list.pending()
    }

    /// The segment that grows, begun if there is none.
    pub(super) fn current<'a>(&self, writer: &'a mut AppendState) -> Result<&'a mut ActiveSegment> {
        if writer.current.is_none() {
            self.segment_list.check_process()?;
            let number = writer.segments + 1;
            let done_before = self.segment_list.first_pending(writer.next);
            let head = SegmentHeader { journal: self.header.journal, number, first: writer.next, done_before };
            let name = file_names::meta(&self.segment_list.stem, number);
            let bytes = head.encode();
            // The names of segments before must not be lost while this one is kept: it would look as if they had been
            // removed.
            let safe = match number > 1 && self.limits.names_are_durable() && self.segment_list.names.are_new() {
                true => self.segment_list.names.sync(&*self.segment_list.files),
                false => Ok(()),
            };
            let created = safe.and_then(|()| self.segment_list.files.create(&name)).map_err(|cause| (cause, true));
            let meta = created.and_then(|meta| {
                // Told before anything in it is acknowledged: from now on a recovery misses it if it is not there.
                let written = meta.write_at(&[IoSlice::new(&bytes)], 0).and_then(|()| self.segment_list.begins(number));
                // A segment without a head must not stay: later ones would stand behind it.
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

    /// Ends the segment that grows. Fails where the kernel does not take the end of it: then it goes on.
    pub(super) fn fill(&self, writer: &mut AppendState) -> Result<()> {
        // Where everything is done, all files go, and nothing has to be in them.
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

    /// Gives room back that was reserved and not used.
    pub(super) fn give_room_back(&self, mut current: ActiveSegment) {
        let segment = current.segment.clone();
        let mut batch = segment.batch();
        if !batch.is_empty() {
            return;
        }
        // Nothing will be gathered in it any more.
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

    /// Hands everything that was gathered to the kernel. After it every write appended before may go to the container: if
    /// the process ends, a replay has it too.
    ///
    /// Where the storage does not take it, this fails, and the layer brings those writes into the container of which
    /// [`RecordHandle::is_written_out`] is true, has them done, and calls this again: it then removes the files, in which nothing
    /// is left that the container lacks, and returns. The other writes, which can still be read from memory, may then follow.
    pub fn write_out(&self) -> Result<()> {
        self.segment_list.write_out().map(drop)
    }

    /// What the names of its files begin with.
    pub fn stem(&self) -> &str {
        &self.segment_list.stem
    }

    /// How many files it may have.
    pub fn files(&self) -> u64 {
        1 + 2 * lock(&self.segment_list.state).segments.len() as u64
    }

    /// Whether the data log goes through the cache of the kernel although it should not: the file system cannot do otherwise.
    pub fn direct_was_refused(&self) -> bool {
        self.segment_list.direct_refused.load(Ordering::Acquire)
    }

    /// Every write before this sequence number is durable.
    pub fn durable_before(&self) -> u64 {
        self.segment_list.durable_before()
    }

    /// Waits until there is room for an append that was [`Append::Full`], or the journal failed, or the time is over, which
    /// is `false`.
    pub fn wait_for_room(&self, needed: u64, limit: Duration) -> bool {
        self.segment_list.wait(limit, |used| used.saturating_add(needed) <= self.limits.bytes)
    }

    /// Makes every append and checkpoint that returned before durable. Appends of other threads go on meanwhile. Errors of
    /// kind `NoSpace` mean that the kernel does not take what was gathered, see [`Journal::write_out`]; others are final.
    pub fn sync(&self) -> Result<()> {
        self.segment_list.sync()
    }

    /// Has a record synced in time, where the journal does so by itself.
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

/// The last writes are in memory, and the storage has no room for them.
pub(super) fn no_room() -> Error {
    let message = "there is no room for the last writes, which are in memory only";
    Error::new(ErrorKind::NoSpace, "append to journal", message).backend("journal")
}

/// The head, with its slots where it has some.
fn head_bytes(header: &Header, live: &LiveSegments) -> Vec<u8> {
    let mut bytes = header.encode();
    if header.identity.is_some() {
        bytes.resize(head_slots::begin(bytes.len()) as usize + SLOT, 0);
        bytes.extend(live.encode());
    }
    bytes
}

/// The head becomes visible under its name when it is complete and locked. A recovery that takes it for one that nobody will
/// finish removes it before: then another one is made.
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
