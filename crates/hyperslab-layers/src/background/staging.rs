//! Staging: buffering writes in a journal instead of memory, where they survive a process crash.

use super::pool::Pool;
use hyperslab_core::{
    ArraySpec, Communicator, Container, Datatype, Durability, Error, ErrorKind, OptionSpec, Reduce, Result, Selection,
    StackElement, agree, dims, lock,
};
pub(crate) use hyperslab_journal::CHECKSUM_STEP;
use hyperslab_journal::ChunkImages;
use hyperslab_journal::marker::Marker;
use hyperslab_journal::wire::{Decoder, Encoder};
use hyperslab_journal::{
    Append, Directory, Header, Id, Journal, JournalStorage, Limits, NodeDirectory, NodePlace, PeerJournal, Pulse,
    RecordHandle, Stage, SyncMode, find, read_all,
};
use hyperslab_rollback::FileIdentity;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Divisor of the free space that all ranks of a node use together.
const SHARE: u64 = 2;
const LEAST: u64 = 1 << 20;
/// Interval at which waits for space check for failures.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Time before a failed journal is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(3);

/// Number of ranks that can read the journals of all ranks.
pub(crate) const READERS: usize = 2;

/// Options of staging.
#[derive(Debug, Clone)]
pub(crate) struct StagingOptions {
    pub directory: PathBuf,
    /// Maximum size of a rank's journal.
    pub limit: Option<u64>,
    /// The stack below, for recovery.
    pub below: String,
    /// Name of the layer, for messages.
    pub layer: &'static str,
    /// Durability of staged writes.
    pub sync: SyncMode,
    /// Whether large writes use direct I/O.
    pub direct: bool,
    /// Whether the ranks of a node share one file.
    pub per_node: bool,
    /// Policy for arrays with filters.
    pub filtered: FilteredArrays,
    /// Policy for a failed or full journal.
    pub on_failure: OnLogFailure,
    /// Whose journal it is, where ranks of a job open the container each by itself.
    pub member: Option<Member>,
}

/// A rank of a job that the communicator does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub job: Id,
    pub rank: usize,
    pub ranks: usize,
}

impl Member {
    /// Parses `JOB/RANK/RANKS`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (job, rank, ranks) = (parts.next()?, parts.next()?, parts.next()?);
        let member = Self { job: Id::parse(job)?, rank: rank.parse().ok()?, ranks: ranks.parse().ok()? };
        (parts.next().is_none() && member.rank < member.ranks).then_some(member)
    }
}

/// Policy for writes while the journal's storage fails or is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnLogFailure {
    /// Writes fail.
    Error,
    /// Writes are written through to the container; the journal is retried periodically.
    #[default]
    Through,
}

impl OnLogFailure {
    /// Parses the option `on-log-failure`.
    pub fn parse(element: &StackElement) -> Result<Self> {
        let choices = [("error", Self::Error), ("through", Self::Through)];
        Ok(element.choice("on-log-failure", &choices)?.unwrap_or_default())
    }
}

/// The option for [`OnLogFailure`].
pub(crate) const ON_LOG_FAILURE: OptionSpec = OptionSpec {
    name: "on-log-failure",
    value: "error|through",
    default: "through",
    about: "what becomes of writes while the storage of the log fails or is full: they fail, or go straight to the file",
};

/// Whether writes to arrays with filters are staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilteredArrays {
    /// Like other arrays.
    Usual,
    /// By a single rank, in a layer that stores chunks through [`ChunkImages`].
    WithImages,
    Never,
}

/// The staged writes of one container on one rank.
#[derive(Debug)]
pub(crate) struct Staging {
    /// `None` while the storage cannot have one.
    journal: RwLock<Option<Arc<Journal>>>,
    /// Creates further journals.
    making: JournalFactory,
    directory: PathBuf,
    container: Arc<dyn Container>,
    pool: Arc<Pool>,
    /// Whether the ranks are threads of one process.
    one_process: bool,
    /// Directory and names of all ranks' journals, if ranks are processes that can read them.
    readable: Option<Readable>,
    /// Path of the container, if staged writes must survive power loss.
    safe_at: Option<PathBuf>,
    /// Written to the container, which may still buffer them in process memory.
    moved: Mutex<Vec<Arc<RecordHandle>>>,
    /// Set while nothing is staged: since when and why.
    stopped: Mutex<Option<Stopped>>,
    /// Why staging stopped for the first time.
    first_stopped: OnceLock<String>,
    /// Set when a sync of the container has failed: the kernel may have dropped dirty pages, so that later syncs prove
    /// nothing. From then on no write is completed.
    unsafe_since: OnceLock<Error>,
    /// During a durable flush: no write is completed before its sync.
    until_synced: AtomicBool,
    /// Announces the journal to other programs.
    marker: Marker,
    /// The heartbeat for the ranks of a node.
    pulse: Mutex<Option<Pulse>>,
    filtered: FilteredArrays,
    /// The journal of chunk images, with [`FilteredArrays::WithImages`].
    pub images: Option<ChunkImages>,
}

#[derive(Debug)]
struct Stopped {
    why: Error,
    at: Instant,
}

/// Creates journals for a container.
#[derive(Debug)]
struct JournalFactory {
    options: StagingOptions,
    job: Id,
    rank: usize,
    ranks: usize,
    /// Number of ranks on the node.
    sharers: usize,
    /// Path of the container.
    path: PathBuf,
}

impl JournalFactory {
    fn header(&self) -> Result<Header> {
        Header::new(self.job, self.rank, self.ranks, &self.options.below, self.path.clone())
    }

    fn limit(&self) -> Result<u64> {
        match self.options.limit {
            Some(bytes) => Ok(bytes),
            None => Ok((free_space(&self.options.directory)? / SHARE / self.sharers.max(1) as u64).max(LEAST)),
        }
    }

    fn journal(&self, files: Arc<dyn JournalStorage>, header: Header) -> Result<Arc<Journal>> {
        let limits = Limits { sync: self.options.sync, direct: self.options.direct, ..Limits::new(self.limit()?) };
        Journal::create(files, header, limits)
    }
}

/// Directory of the journals, and file name prefixes by rank.
type Readable = (Arc<dyn JournalStorage>, Vec<String>);

/// A write in the journal that is not yet in the container.
#[derive(Debug, Clone)]
pub(crate) struct StagedWrite {
    logged: Arc<RecordHandle>,
    staging: Arc<Staging>,
}

/// Result of staging a write.
#[derive(Debug)]
pub(crate) enum AppendResult {
    Staged(StagedWrite),
    /// No space until staged writes are moved to the container.
    Full {
        needed: u64,
    },
    /// The write must be written through.
    Never,
    /// The write must fail, since it cannot be logged.
    Refused(Error),
}

/// Refuses a container with an unrecovered journal in the directory, whose recovery would overwrite newer writes.
/// Collective.
pub(crate) fn refuse_unrecovered(options: &StagingOptions, path: &Path, comm: &dyn Communicator) -> Result<()> {
    let look = || {
        let files = match Directory::open(&options.directory) {
            Err(error) if options.on_failure == OnLogFailure::Through && is_of_storage(&error) => return Ok(()),
            files => files?,
        };
        let path = absolute(path)?;
        let now = std::fs::File::open(&path).and_then(|file| FileIdentity::of(&file)).ok();
        let is_same = |header: &Header| {
            header.container == path || header.identity.is_some_and(|was| now.is_some_and(|now| was.matches(&now)))
        };
        for found in find(&files)?.iter().filter(|found| found.stage == Stage::Written) {
            // Unreadable journals are not ours.
            let Ok((head, _)) = found.open(&files) else { continue };
            let header = found.header(&files, &*head);
            // Other ranks of the job may be further.
            let of_job = |header: &Header| options.member.is_some_and(|member| member.job == header.job);
            if header.is_ok_and(|header| is_same(&header) && !of_job(&header)) {
                let folder = options.directory.display();
                return Err(Error::new(ErrorKind::AlreadyExists, "open", "writes to it are staged by another job")
                    .backend(options.layer)
                    .target(path.display())
                    .hint(format!("wait for that job, or if it is dead: hyperslab recover {folder}")));
            }
        }
        Ok(())
    };
    // A rank that has just closed the container has no staged writes left.
    comm.barrier()?;
    agree(comm, look())
}

/// A random identity, the same on all ranks. Collective.
fn agreed_job(comm: &dyn Communicator) -> Result<Id> {
    let mut job = if comm.rank() == 0 { Id::random()?.0.to_vec() } else { Vec::new() };
    comm.broadcast(0, &mut job)?;
    Ok(Id(job.as_slice().try_into().map_err(|_| Error::invalid("open", "ranks do not agree"))?))
}

impl Staging {
    /// Creates the staging of a container that was just opened. Collective.
    pub fn create(
        options: &StagingOptions,
        path: &Path,
        container: &Arc<dyn Container>,
        comm: &dyn Communicator,
        pool: Arc<Pool>,
    ) -> Result<Self> {
        let job = match options.member {
            Some(member) => member.job,
            None => agreed_job(comm)?,
        };
        let node = if comm.one_process() { None } else { Some(comm.split_by_node()?) };
        let node = node.as_deref().unwrap_or(comm);
        let (rank, ranks) = options.member.map_or((comm.rank(), comm.size()), |member| (member.rank, member.ranks));
        let sharers = options.member.map_or(node.size(), |member| member.ranks);
        let files = match options.per_node {
            true => join_node(&options.directory, job, node)?,
            false => Directory::open(&options.directory).map(|files| Arc::new(files) as Arc<dyn JournalStorage>),
        };
        let here = files.as_ref().ok().cloned().filter(|_| {
            // Ranks of one machine, each with its own files.
            !comm.one_process() && !options.per_node && sharers == comm.size() && sharers > 1
        });
        let making = JournalFactory { options: options.clone(), job, rank, ranks, sharers, path: absolute(path)? };
        let create = || {
            let (files, header): (Arc<dyn JournalStorage>, _) = (files?, making.header()?);
            let images = match options.filtered == FilteredArrays::WithImages && comm.size() == 1 {
                true => Some(ChunkImages::new(files.clone(), &header, making.limit()?, options.sync.covers_power())?),
                false => None,
            };
            making.journal(files, header).map(|journal| (journal, images))
        };
        let (journal, images, stopped) = match agree(comm, create()) {
            Ok((journal, images)) => (Some(journal), images, None),
            Err(error) if options.on_failure == OnLogFailure::Through && is_of_storage(&error) => {
                if comm.rank() == 0 {
                    eprintln!(
                        "hyperslab: warning: {error}; writes go straight to {} until there is a log",
                        path.display()
                    );
                }
                (None, None, Some(error))
            }
            Err(error) => return Err(error),
        };
        let readable = match &journal {
            Some(journal) => readable(here, journal, comm)?,
            None => None,
        };
        let identity = journal.as_ref().and_then(|journal| journal.header().identity);
        let staging = Self {
            marker: Marker::new(job, &options.directory, identity)?,
            journal: RwLock::new(None),
            making,
            directory: options.directory.clone(),
            container: container.clone(),
            pool,
            one_process: comm.one_process(),
            readable,
            safe_at: options.sync.covers_power().then(|| path.to_path_buf()),
            moved: Mutex::default(),
            stopped: Mutex::default(),
            first_stopped: OnceLock::new(),
            unsafe_since: OnceLock::new(),
            until_synced: AtomicBool::new(false),
            pulse: Mutex::default(),
            filtered: options.filtered,
            images,
        };
        match (journal, stopped) {
            (Some(journal), _) => staging.begin(journal, node.rank() == 0),
            (None, Some(error)) => staging.stop(error),
            (None, None) => {}
        }
        Ok(staging)
    }

    /// Installs a new journal.
    fn begin(&self, journal: Arc<Journal>, looks_after: bool) {
        if let Some(heartbeat) = journal.heartbeat().filter(|_| looks_after) {
            *lock(&self.pulse) = Some(Pulse::new(heartbeat.clone()));
        }
        // Which ranks of a job have opened it is not known.
        if self.making.rank == 0 || self.making.options.member.is_some() {
            self.marker.store(&self.making.path);
        }
        *self.journal.write().unwrap_or_else(PoisonError::into_inner) = Some(journal);
    }

    fn journal(&self) -> Option<Arc<Journal>> {
        self.journal.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn beat(&self) {
        if let Some(heartbeat) = self.journal().as_ref().and_then(|journal| journal.heartbeat()) {
            heartbeat.beat();
        }
    }

    /// Suspends staging.
    fn stop(&self, why: Error) {
        let _ = self.first_stopped.set(why.to_string());
        *lock(&self.stopped) = Some(Stopped { why, at: Instant::now() });
    }

    /// Whether writes can be staged. After a failure, periodically tries to create a new journal.
    fn is_running(&self) -> Result<(), Error> {
        let mut stopped = lock(&self.stopped);
        let Some(since) = &mut *stopped else { return Ok(()) };
        // Other processes know the journal by name, so that it cannot be replaced.
        let may = self.readable.is_none() && !self.making.options.per_node && since.at.elapsed() >= TRY_AGAIN;
        if may && let Some(error) = self.resume().err() {
            *since = Stopped { why: error, at: Instant::now() };
        } else if may {
            *stopped = None;
            return Ok(());
        }
        Err(since.why.copied())
    }

    fn resume(&self) -> Result<()> {
        if let Some(journal) = self.journal() {
            let is_empty = self.lock().is_empty() && journal.pending() == 0;
            if !is_empty || !journal.close_and_remove()? {
                return Err(Error::unsupported("begin log", "the one before is not empty"));
            }
        }
        let files: Arc<dyn JournalStorage> = Arc::new(Directory::open(&self.making.options.directory)?);
        let journal = self.making.journal(files, self.making.header()?)?;
        self.begin(journal, self.making.rank == 0);
        Ok(())
    }

    /// Whether ranks are processes and the first [`READERS`] can read all journals. The same on all ranks.
    pub fn is_readable(&self) -> bool {
        self.readable.is_some()
    }

    /// Upper bound of the number of this rank's journal files.
    pub fn files(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.files())
    }

    /// Opens the journal of another rank.
    pub fn of_rank(self: &Arc<Self>, rank: usize) -> Result<PeerStaging> {
        let unknown = || Error::invalid("read journal", "it is of a rank that cannot be read");
        let (files, stems) = self.readable.as_ref().ok_or_else(unknown)?;
        let stem = stems.get(rank).ok_or_else(unknown)?;
        Ok(PeerStaging { journal: PeerJournal::open(files.clone(), stem)?, staging: self.clone() })
    }

    /// Whether writes to such an array can be staged. With ranks that are processes, a relocated filtered chunk is only
    /// found after the next flush, and might not survive a crash.
    pub fn takes(&self, spec: &ArraySpec) -> bool {
        let chunk = || spec.chunk.as_ref().and_then(|chunk| dims::byte_count(chunk, spec.dtype.size()).ok());
        spec.filters.is_empty()
            || match (self.filtered, &self.images) {
                (FilteredArrays::Usual, _) => self.one_process,
                (FilteredArrays::WithImages, Some(images)) => chunk().is_some_and(|bytes| images.fits(bytes)),
                _ => false,
            }
    }

    /// The journal of chunk images that chunks of an array must be stored through, if any.
    pub fn images(&self, spec: &ArraySpec) -> Option<&ChunkImages> {
        self.images.as_ref().filter(|_| !spec.filters.is_empty())
    }

    /// Writes the container back to the OS, and to the device if staged writes must survive power loss.
    pub fn write_back_container(&self) -> Result<()> {
        self.beat();
        self.container.write_back().and_then(|()| self.sync_fs())
    }

    /// Appends a write of packed elements to the journal.
    pub fn append(
        self: &Arc<Self>,
        array: &str,
        dtype: &Datatype,
        selection: &Selection,
        packed: &[u8],
    ) -> AppendResult {
        let never = |error| match self.making.options.on_failure {
            OnLogFailure::Through => AppendResult::Never,
            OnLogFailure::Error => AppendResult::Refused(error),
        };
        if let Err(error) = self.is_running() {
            return never(error);
        }
        let Some(journal) = self.journal() else { return AppendResult::Never };
        match journal.append(array, dtype, selection, &[packed]) {
            Ok(Append::Logged(logged)) => {
                AppendResult::Staged(StagedWrite { logged: Arc::new(logged), staging: self.clone() })
            }
            Ok(Append::TooLarge) => AppendResult::Never,
            Ok(Append::Full { needed }) => AppendResult::Full { needed },
            Err(error) => {
                self.stop(error.copied());
                never(error)
            }
        }
    }

    /// Waits for space, up to [`LOOK_AGAIN`].
    pub fn wait_for_room(&self, needed: u64) {
        if let Some(journal) = self.journal() {
            journal.wait_for_room(needed, LOOK_AGAIN);
        }
    }

    /// Maximum size of the journal.
    pub fn limit(&self) -> u64 {
        self.journal().map_or(LEAST, |journal| journal.limit())
    }

    /// Whether direct I/O was requested and is not supported.
    pub fn direct_was_refused(&self) -> bool {
        self.journal().is_some_and(|journal| journal.direct_was_refused())
    }

    /// Why some writes were written through, if any.
    pub fn stopped(&self) -> Option<&str> {
        self.first_stopped.get().map(String::as_str)
    }

    /// Whether writes to the container stay in the journal until [`Staging::flush`] has synced them, so that they can be
    /// replayed if the sync fails.
    pub fn keep_until_synced(&self, keep: bool) {
        self.until_synced.store(keep, Ordering::Release);
    }

    /// Completes the writes that are in the container, after writing it back.
    pub fn complete_moved(&self) -> Result<()> {
        self.check_safe()?;
        let any = !self.lock().is_empty() && !self.until_synced.load(Ordering::Acquire);
        if any { self.after(|| self.write_back_container()) } else { Ok(()) }
    }

    /// Syncs the file system of the container, if staged writes must survive power loss.
    fn sync_fs(&self) -> Result<()> {
        let Some(path) = &self.safe_at else { return Ok(()) };
        let synced = std::fs::File::open(path).and_then(|file| Ok(rustix::fs::syncfs(&file)?));
        self.syncing(synced.map_err(|cause| Error::io("sync", cause).target(path.display())))
    }

    /// Records the result of a sync of the container. A failure is final.
    fn syncing(&self, synced: Result<()>) -> Result<()> {
        if let Err(error) = &synced {
            let _ = self.unsafe_since.set(error.copied());
        }
        self.check_safe().and(synced)
    }

    /// Fails for good once a sync of the container has failed.
    fn check_safe(&self) -> Result<()> {
        match self.unsafe_since.get() {
            None => Ok(()),
            Some(error) => {
                let message = format!("an earlier sync of the file failed, and nobody knows what it has: {error}");
                let folder = self.directory.display();
                let hint = format!("end the program, remove the cause, then run hyperslab recover {folder}");
                Err(Error::new(error.kind(), "sync", message).backend(self.making.options.layer).hint(hint))
            }
        }
    }

    /// Call before moving staged writes to the container, which must not have writes that recovery lacks. If this fails,
    /// move those for which [`StagedWrite::is_written_out`] is true, and call it again.
    pub fn ensure_logged(&self) -> Result<()> {
        self.beat();
        let Some(journal) = self.journal() else { return Ok(()) };
        match self.safe_at.is_some() {
            true => journal.sync().or_else(|_| journal.write_out()),
            false => journal.write_out(),
        }
    }

    /// Runs `work`, after which earlier writes survive a process crash, and completes them.
    pub fn after<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let moved = std::mem::take(&mut *self.lock());
        let result = call();
        match &result {
            Ok(_) => moved.iter().for_each(|logged| logged.done()),
            Err(_) => self.lock().extend(moved),
        }
        result
    }

    /// Ensures that recovery does not replay earlier writes. No write may be pending.
    pub fn clear(&self) -> Result<()> {
        self.complete_moved()?;
        let Some(journal) = self.journal() else { return Ok(()) };
        let Err(error) = journal.checkpoint() else { return Ok(()) };
        // A failed journal can still be removed.
        match journal.close_and_remove() {
            Ok(true) => {
                self.stop(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Flushes the container, and completes all writes. No write may be pending. Collective.
    pub fn flush(&self, how: Durability) -> Result<()> {
        let how = if self.safe_at.is_some() { Durability::Durable } else { how };
        self.beat();
        let flush = || match how {
            Durability::Durable => self.syncing(self.container.flush(how)),
            _ => self.container.flush(how),
        };
        // Every rank takes part in the flush, whatever failed before.
        self.after(|| flush().and_then(|()| self.check_safe()))?;
        self.clear()?;
        // Otherwise removed files could reappear after power loss, with data overwritten since.
        match self.journal().filter(|_| how == Durability::Durable && lock(&self.stopped).is_none()) {
            Some(journal) => journal.sync(),
            None => Ok(()),
        }
    }

    /// Flushes metadata of new arrays, so that recovery finds them. Collective.
    pub fn publish_metadata(&self) -> Result<()> {
        self.beat();
        self.container.flush(Durability::Visible)
    }

    /// Removes the journal, if the container is closed and has all writes; otherwise its files stay.
    pub fn finish(&self) -> Result<()> {
        self.check_safe()?;
        self.sync_fs()?;
        // Images first: writes are newer.
        self.images.as_ref().map_or(Ok(()), ChunkImages::finish)?;
        self.lock().drain(..).for_each(|logged| logged.done());
        self.end()
    }

    /// Removes the journal and its marker if it is empty.
    fn end(&self) -> Result<()> {
        let pulse = lock(&self.pulse).take();
        drop(pulse);
        let gone = self.journal().map_or(Ok(true), |journal| journal.close_and_remove())?;
        if gone {
            self.marker.remove_if_last(&self.making.path);
        }
        Ok(())
    }

    /// Adds the location of the journal to an error.
    pub fn explain(&self, error: Error) -> Error {
        match self.left_over() {
            None => error,
            Some(words) => error.hint(words),
        }
    }

    /// The location of the journal, if it has writes.
    pub fn left_over(&self) -> Option<String> {
        self.journal().filter(|journal| journal.pending() > 0).map(|_| {
            let folder = self.directory.display();
            // Some may be in memory only.
            let kept = match self.ensure_logged() {
                Ok(()) => "what was staged is kept".to_owned(),
                Err(error) => format!("only a part of what was staged is kept ({})", first_line(&error)),
            };
            format!("{kept}: remove the cause, end the program, then run hyperslab recover {folder}")
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<RecordHandle>>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Staging {
    /// A container that was not closed: writes in it need no recovery.
    fn drop(&mut self) {
        if self.journal().is_some_and(|journal| journal.header().process.pid == std::process::id()) {
            // On failure the files stay.
            let _ = self.complete_moved().and_then(|()| self.end());
        }
    }
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The journal of another rank that is another process.
#[derive(Debug)]
pub(crate) struct PeerStaging {
    journal: PeerJournal,
    staging: Arc<Staging>,
}

impl PeerStaging {
    /// Decodes a location from [`StagedWrite::encode_location`], for reading only: its owner completes it.
    pub fn decode_location(&mut self, from: &mut Decoder<'_>) -> Result<StagedWrite> {
        Ok(StagedWrite { logged: Arc::new(self.journal.decode_location(from)?), staging: self.staging.clone() })
    }
}

impl StagedWrite {
    /// Encodes its location for another rank. It must be written out.
    pub fn encode_location(&self, out: &mut Encoder) {
        self.logged.encode_location(out);
    }

    pub fn len(&self) -> u64 {
        self.logged.len()
    }

    /// Whether it is in the kernel, not only in process memory.
    pub fn is_written_out(&self) -> bool {
        self.logged.is_written_out()
    }

    /// Reads the packed elements.
    pub fn read_into(&self, into: &mut [u8]) -> Result<()> {
        self.logged.read_into(into)
    }

    /// Reads the packed elements of many writes, batched.
    pub fn read_all<'a>(wanted: impl Iterator<Item = (&'a Self, &'a mut [u8])>) -> Result<()> {
        read_all(wanted.map(|(record, into)| (&*record.logged, into)).collect())
    }

    /// Verifies the checksum of the elements.
    pub fn verify(&self) -> Result<()> {
        self.logged.verify()
    }

    /// Reads bytes of the packed elements and verifies their checksum. The range must begin at a multiple of
    /// [`CHECKSUM_STEP`], and end at one or at the end.
    pub fn read_checked(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.logged.read_checked(at, into)
    }

    /// Reads bytes of the packed elements from offset `at`, unchecked.
    pub fn read_part(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.logged.read(at, into)
    }

    /// Reads the packed elements and calls `work` with them.
    pub fn with<T>(&self, work: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let len = usize::try_from(self.len()).map_err(|_| Error::invalid("read journal", "a write is too long"))?;
        let mut buffer = self.staging.pool.take(len, len as u64)?;
        self.logged.read_into(buffer.as_mut())?;
        work(buffer.as_ref())
    }

    /// Notes that it was written to the container.
    pub fn moved(&self) {
        self.staging.lock().push(self.logged.clone());
    }
}

/// The names of all ranks' journals, if the reading ranks can open them. Collective.
fn readable(
    files: Option<Arc<dyn JournalStorage>>,
    journal: &Journal,
    comm: &dyn Communicator,
) -> Result<Option<Readable>> {
    // All ranks must be on one machine.
    let Some(files) = files else { return Ok(None) };
    let names = comm.all_gather(journal.stem().as_bytes())?;
    let stems: Vec<String> = names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect();
    let opens = comm.rank() >= READERS || stems.iter().all(|stem| PeerJournal::open(files.clone(), stem).is_ok());
    let mut all = [u64::from(opens)];
    comm.all_reduce(&mut all, Reduce::Min)?;
    Ok((all[0] == 1).then_some((files, stems)))
}

/// Opens the journal file of a node, which its first rank creates. Collective within the node; failures of a rank are in
/// the inner result.
fn join_node(directory: &Path, job: Id, node: &dyn Communicator) -> Result<Result<Arc<dyn JournalStorage>>> {
    let place = |id| NodePlace { job, node: id, rank: node.rank(), ranks: node.size() };
    let first = (node.rank() == 0)
        .then(|| Id::random().and_then(|id| NodeDirectory::join(directory, &place(id)).map(|files| (id, files))));
    let mut id = match &first {
        Some(Ok((id, _))) => id.0.to_vec(),
        _ => Vec::new(),
    };
    node.broadcast(0, &mut id)?;
    let failed = || Error::new(ErrorKind::Peer, "open", "the first rank of the node has no log file");
    Ok(match first {
        Some(made) => made.map(|(_, files)| Arc::new(files) as Arc<dyn JournalStorage>),
        None => id
            .try_into()
            .map_err(|_| failed())
            .and_then(|id| NodeDirectory::join(directory, &place(Id(id))))
            .map(|files| Arc::new(files) as Arc<dyn JournalStorage>),
    })
}

/// Whether an error is the storage's: full, read-only or broken; others are the user's.
fn is_of_storage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Io | ErrorKind::Peer)
}

/// Resolves links, at least those of the parent directory if the file does not exist.
fn absolute(path: &Path) -> Result<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let failed = |cause| Error::io("open", cause).target(path.display());
    let path = std::path::absolute(path).map_err(failed)?;
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => Ok(folder.join(name)),
        _ => Ok(path),
    }
}

fn free_space(directory: &Path) -> Result<u64> {
    let failed = |cause: rustix::io::Errno| Error::io("open", cause.into()).target(directory.display());
    let about = rustix::fs::statvfs(directory).map_err(failed)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}
