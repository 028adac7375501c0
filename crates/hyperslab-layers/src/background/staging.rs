//! Writes that wait in a journal instead of in memory, and survive the end of the process there.

use super::pool::Pool;
use crate::images::Images;
use crate::journal::bytes::{Decoder, Encoder};
pub(crate) use crate::journal::checksum::STEP;
use crate::journal::{
    Append, Directory, Files, Foreign, Header, Id, Journal, Limits, Logged, NodeDirectory, NodePlace, Pulse, Stage,
    SyncMode, find, read_all,
};
use crate::marker::Marker;
use hyperslab_core::{
    ArraySpec, Communicator, Container, Datatype, Durability, Error, ErrorKind, OptionSpec, Reduce, Result, Selection,
    StackElement, agree, dims,
};
use hyperslab_rollback::FileIdentity;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The share of the free space of a directory that all ranks of a node take together, as a divisor.
const SHARE: u64 = 2;
const LEAST: u64 = 1 << 20;
/// How long to wait for room before looking again whether something failed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long writes go past a log that failed before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(3);

/// Ranks that may be asked to read the journals of all.
pub(crate) const READERS: usize = 2;

/// Where writes are staged.
#[derive(Debug, Clone)]
pub(crate) struct StagingOptions {
    pub directory: PathBuf,
    /// Bytes that a rank may have there.
    pub limit: Option<u64>,
    /// What lies below, as a stack, for recovery.
    pub below: String,
    /// The layer, for messages.
    pub layer: &'static str,
    /// How safe a staged write is.
    pub sync: SyncMode,
    /// Whether large writes go past the page cache.
    pub direct: bool,
    /// Whether the ranks of a node share one log file.
    pub per_node: bool,
    /// What becomes of arrays with filters.
    pub filtered: Filtered,
    /// What becomes of writes where the log fails.
    pub on_failure: OnLogFailure,
}

/// What becomes of writes that the log cannot take because its storage fails or is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnLogFailure {
    /// They fail.
    Error,
    /// They are written through to the container, and the log is tried again from time to time.
    #[default]
    Through,
}

impl OnLogFailure {
    /// The option of this name.
    pub fn parse(element: &StackElement) -> Result<Self> {
        let choices = [("error", Self::Error), ("through", Self::Through)];
        Ok(element.choice("on-log-failure", &choices)?.unwrap_or_default())
    }
}

/// The option that [`OnLogFailure`] is.
pub(crate) const ON_LOG_FAILURE: OptionSpec = OptionSpec {
    name: "on-log-failure",
    value: "error|through",
    default: "through",
    about: "what becomes of writes while the storage of the log fails or is full: they fail, or go straight to the file",
};

/// Whether writes of arrays with filters can be staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filtered {
    /// As all others.
    Usual,
    /// By one rank alone, and by a layer that stores chunks through [`Images`].
    WithImages,
    Never,
}

/// The staged writes of one container on one rank.
#[derive(Debug)]
pub(crate) struct Staging {
    /// There is none while its storage cannot have one.
    journal: RwLock<Option<Arc<Journal>>>,
    /// What another one is made of.
    making: Making,
    directory: PathBuf,
    container: Arc<dyn Container>,
    pool: Arc<Pool>,
    /// Whether the ranks are threads of one process.
    one_process: bool,
    /// Where the journals of all ranks are, and their names, if ranks are processes that can read them.
    readable: Option<Readable>,
    /// Where the container is, if what is staged has to survive the loss of power.
    safe_at: Option<PathBuf>,
    /// Written to the container, which may still have them in memory of the process.
    moved: Mutex<Vec<Arc<Logged>>>,
    /// Why nothing is staged at present, and since when.
    stopped: Mutex<Option<Stopped>>,
    /// Why nothing was staged for the first time.
    first_stopped: OnceLock<String>,
    /// A sync of the container failed. What the kernel could not write it forgets, so that a later sync says nothing: from
    /// then on nothing is taken for safe, and nothing is taken out of the log.
    unsafe_since: OnceLock<Error>,
    /// A durable flush is under way: nothing is done before its sync.
    until_synced: AtomicBool,
    /// Tells others of the log.
    marker: Marker,
    /// Looks after the container for the ranks of a node.
    pulse: Mutex<Option<Pulse>>,
    filtered: Filtered,
    /// For chunks of arrays with filters, where these are staged so.
    pub images: Option<Images>,
}

#[derive(Debug)]
struct Stopped {
    why: Error,
    at: Instant,
}

/// What journals of a container are made of.
#[derive(Debug)]
struct Making {
    options: StagingOptions,
    job: Id,
    rank: usize,
    ranks: usize,
    /// Of the node.
    sharers: usize,
    /// The container.
    path: PathBuf,
}

impl Making {
    fn header(&self) -> Result<Header> {
        Header::new(self.job, self.rank, self.ranks, &self.options.below, self.path.clone())
    }

    fn limit(&self) -> Result<u64> {
        match self.options.limit {
            Some(bytes) => Ok(bytes),
            None => Ok((free_space(&self.options.directory)? / SHARE / self.sharers.max(1) as u64).max(LEAST)),
        }
    }

    fn journal(&self, files: Arc<dyn Files>, header: Header) -> Result<Arc<Journal>> {
        let limits = Limits { sync: self.options.sync, direct: self.options.direct, ..Limits::new(self.limit()?) };
        Journal::create(files, header, limits)
    }
}

/// Where journals are, and what the names of their files begin with, by rank.
type Readable = (Arc<dyn Files>, Vec<String>);

/// A write that waits in the journal.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    logged: Arc<Logged>,
    staging: Arc<Staging>,
}

/// What became of a write to be staged.
#[derive(Debug)]
pub(crate) enum Appended {
    Staged(Record),
    /// There is no room before some of what is staged has been moved.
    Full {
        needed: u64,
    },
    /// It has to be written through.
    Never,
    /// It must not be written, since it cannot be logged.
    Refused(Error),
}

/// Refuses a container that has writes in the directory which an earlier job left: newer ones must not be overwritten by a
/// later recovery. Collective.
pub(crate) fn refuse_left_over(options: &StagingOptions, path: &Path, comm: &dyn Communicator) -> Result<()> {
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
            // Whatever cannot be read is not ours.
            let Ok((head, _)) = found.open(&files) else { continue };
            if found.header(&files, &*head).is_ok_and(|header| is_same(&header)) {
                let folder = options.directory.display();
                return Err(Error::new(ErrorKind::AlreadyExists, "open", "writes to it are staged by another job")
                    .backend(options.layer)
                    .target(path.display())
                    .hint(format!("wait for that job, or if it is dead: hyperslab recover {folder}")));
            }
        }
        Ok(())
    };
    // A rank that has closed the container just now, and has come here, has nothing staged any more.
    comm.barrier()?;
    agree(comm, look())
}

impl Staging {
    /// For a container that has just been opened. Collective.
    pub fn create(
        options: &StagingOptions,
        path: &Path,
        container: &Arc<dyn Container>,
        comm: &dyn Communicator,
        pool: Arc<Pool>,
    ) -> Result<Self> {
        let mut job = if comm.rank() == 0 { Id::random()?.0.to_vec() } else { Vec::new() };
        comm.broadcast(0, &mut job)?;
        let job = Id(job.as_slice().try_into().map_err(|_| Error::invalid("open", "ranks do not agree"))?);
        let node = if comm.one_process() { None } else { Some(comm.split_by_node()?) };
        let node = node.as_deref().unwrap_or(comm);
        let sharers = node.size();
        let files = match options.per_node {
            true => join_node(&options.directory, job, node)?,
            false => Directory::open(&options.directory).map(|files| Arc::new(files) as Arc<dyn Files>),
        };
        let here = files.as_ref().ok().cloned().filter(|_| {
            // Of one machine, each with files of its own.
            !comm.one_process() && !options.per_node && sharers == comm.size() && sharers > 1
        });
        let making = Making {
            options: options.clone(),
            job,
            rank: comm.rank(),
            ranks: comm.size(),
            sharers,
            path: absolute(path)?,
        };
        let create = || {
            let (files, header): (Arc<dyn Files>, _) = (files?, making.header()?);
            let images = match options.filtered == Filtered::WithImages && comm.size() == 1 {
                true => Some(Images::new(files.clone(), &header, making.limit()?, options.sync.covers_power())?),
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

    /// Uses a new journal from now on.
    fn begin(&self, journal: Arc<Journal>, looks_after: bool) {
        if let Some(heartbeat) = journal.heartbeat().filter(|_| looks_after) {
            *lock(&self.pulse) = Some(Pulse::new(heartbeat.clone()));
        }
        if self.making.rank == 0 {
            self.marker.put(&self.making.path);
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

    /// Nothing is staged for a while.
    fn stop(&self, why: Error) {
        let _ = self.first_stopped.set(why.to_string());
        *lock(&self.stopped) = Some(Stopped { why, at: Instant::now() });
    }

    /// Whether writes can be staged. After a failure, tries from time to time to have a log again.
    fn is_running(&self) -> Result<(), Error> {
        let mut stopped = lock(&self.stopped);
        let Some(since) = &mut *stopped else { return Ok(()) };
        // Others know the journals of processes by name, so that there cannot be another one.
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
        let files: Arc<dyn Files> = Arc::new(Directory::open(&self.making.options.directory)?);
        let journal = self.making.journal(files, self.making.header()?)?;
        self.begin(journal, self.making.rank == 0);
        Ok(())
    }

    /// Whether ranks are processes of which the first [`READERS`] can read everyone's journal. The same on all.
    pub fn is_readable(&self) -> bool {
        self.readable.is_some()
    }

    /// How many files this rank's journal may have.
    pub fn files(&self) -> u64 {
        self.journal().map_or(0, |journal| journal.files())
    }

    /// The journal of another rank.
    pub fn of_rank(self: &Arc<Self>, rank: usize) -> Result<Others> {
        let unknown = || Error::invalid("read journal", "it is of a rank that cannot be read");
        let (files, stems) = self.readable.as_ref().ok_or_else(unknown)?;
        let stem = stems.get(rank).ok_or_else(unknown)?;
        Ok(Others { journal: Foreign::open(files.clone(), stem)?, staging: self.clone() })
    }

    /// Whether writes of such an array can be staged. Where ranks are processes, a library may not say where it put a
    /// chunk that changes its size before the next flush, so that nobody knows whether it would survive.
    pub fn takes(&self, spec: &ArraySpec) -> bool {
        let chunk = || spec.chunk.as_ref().and_then(|chunk| dims::byte_count(chunk, spec.dtype.size()).ok());
        spec.filters.is_empty()
            || match (self.filtered, &self.images) {
                (Filtered::Usual, _) => self.one_process,
                (Filtered::WithImages, Some(images)) => chunk().is_some_and(|bytes| images.fits(bytes)),
                _ => false,
            }
    }

    /// What chunks of an array have to be stored through.
    pub fn images(&self, spec: &ArraySpec) -> Option<&Images> {
        self.images.as_ref().filter(|_| !spec.filters.is_empty())
    }

    /// Has the container hand everything to the kernel, or to the device where that matters.
    pub fn settle_container(&self) -> Result<()> {
        self.beat();
        self.container.write_back().and_then(|()| self.make_safe())
    }

    /// Appends a write of packed elements.
    pub fn append(self: &Arc<Self>, array: &str, dtype: &Datatype, selection: &Selection, packed: &[u8]) -> Appended {
        let never = |error| match self.making.options.on_failure {
            OnLogFailure::Through => Appended::Never,
            OnLogFailure::Error => Appended::Refused(error),
        };
        if let Err(error) = self.is_running() {
            return never(error);
        }
        let Some(journal) = self.journal() else { return Appended::Never };
        match journal.append(array, dtype, selection, &[packed]) {
            Ok(Append::Logged(logged)) => Appended::Staged(Record { logged: Arc::new(logged), staging: self.clone() }),
            Ok(Append::TooLarge) => Appended::Never,
            Ok(Append::Full { needed }) => Appended::Full { needed },
            Err(error) => {
                self.stop(error.copied());
                never(error)
            }
        }
    }

    /// Waits a little for room.
    pub fn wait_for_room(&self, needed: u64) {
        if let Some(journal) = self.journal() {
            journal.wait_for_room(needed, LOOK_AGAIN);
        }
    }

    /// Bytes that the journal may have.
    pub fn limit(&self) -> u64 {
        self.journal().map_or(LEAST, |journal| journal.limit())
    }

    /// Whether the storage does not allow what was wanted.
    pub fn direct_was_refused(&self) -> bool {
        self.journal().is_some_and(|journal| journal.direct_was_refused())
    }

    /// Why writes went straight to the storage, if some did.
    pub fn stopped(&self) -> Option<&str> {
        self.first_stopped.get().map(String::as_str)
    }

    /// Whether what is written to the container from now on stays in the log until [`Staging::flush`] has synced it: if the sync
    /// fails, a recovery can bring it there again.
    pub fn keep_until_synced(&self, keep: bool) {
        self.until_synced.store(keep, Ordering::Release);
    }

    /// Gives the room of writes back that the container has.
    pub fn settle(&self) -> Result<()> {
        self.check_safe()?;
        let any = !self.lock().is_empty() && !self.until_synced.load(Ordering::Acquire);
        if any { self.after(|| self.settle_container()) } else { Ok(()) }
    }

    /// Where it matters, returns when what the kernel has of the container survives the loss of power.
    fn make_safe(&self) -> Result<()> {
        let Some(path) = &self.safe_at else { return Ok(()) };
        let synced = std::fs::File::open(path).and_then(|file| Ok(rustix::fs::syncfs(&file)?));
        self.syncing(synced.map_err(|cause| Error::io("sync", cause).target(path.display())))
    }

    /// The result of a sync of the container. A failure is final.
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

    /// To be called before staged writes go to the container: none may be there that a recovery lacks. Where this fails, those
    /// of which [`Record::is_handed_over`] is true may go, and then it has to be called again.
    pub fn before_moving(&self) -> Result<()> {
        self.beat();
        let Some(journal) = self.journal() else { return Ok(()) };
        match self.safe_at.is_some() {
            true => journal.sync().or_else(|_| journal.hand_over()),
            false => journal.hand_over(),
        }
    }

    /// Runs something after which all that was written before survives the process.
    pub fn after<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let moved = std::mem::take(&mut *self.lock());
        let result = call();
        match &result {
            Ok(_) => moved.iter().for_each(|logged| logged.done()),
            Err(_) => self.lock().extend(moved),
        }
        result
    }

    /// After this, recovery changes nothing that was written before. Nothing may be waiting.
    pub fn clear(&self) -> Result<()> {
        self.settle()?;
        let Some(journal) = self.journal() else { return Ok(()) };
        let Err(error) = journal.checkpoint() else { return Ok(()) };
        // One that failed can still go.
        match journal.close_and_remove() {
            Ok(true) => {
                self.stop(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Flushes the container, after which nothing is staged: durably, if that is asked for. Nothing may be waiting. Collective.
    pub fn flush(&self, how: Durability) -> Result<()> {
        let how = if self.safe_at.is_some() { Durability::Durable } else { how };
        self.beat();
        let flush = || match how {
            Durability::Durable => self.syncing(self.container.flush(how)),
            _ => self.container.flush(how),
        };
        // Every rank takes part in the flush, whatever went wrong before.
        self.after(|| flush().and_then(|()| self.check_safe()))?;
        self.clear()?;
        // Otherwise files that are gone could be there again after a loss of power, with what has been overwritten since.
        match self.journal().filter(|_| how == Durability::Durable && lock(&self.stopped).is_none()) {
            Some(journal) => journal.sync(),
            None => Ok(()),
        }
    }

    /// Makes arrays known to a later recovery. Collective.
    pub fn make_known(&self) -> Result<()> {
        self.beat();
        self.container.flush(Durability::Visible)
    }

    /// Everything is in the container, which is closed. Otherwise the files stay.
    pub fn finish(&self) -> Result<()> {
        self.check_safe()?;
        self.make_safe()?;
        // Before the writes, which are newer.
        self.images.as_ref().map_or(Ok(()), Images::finish)?;
        self.lock().drain(..).for_each(|logged| logged.done());
        self.end()
    }

    /// Removes the log and its marker if nothing is in it.
    fn end(&self) -> Result<()> {
        let pulse = lock(&self.pulse).take();
        drop(pulse);
        let gone = self.journal().map_or(Ok(true), |journal| journal.close_and_remove())?;
        if gone {
            self.marker.release(&self.making.path);
        }
        Ok(())
    }

    /// Says where the data are that could not be written.
    pub fn explain(&self, error: Error) -> Error {
        match self.left_over() {
            None => error,
            Some(words) => error.hint(words),
        }
    }

    /// Where the data are that could not be written, if there are any.
    pub fn left_over(&self) -> Option<String> {
        self.journal().filter(|journal| journal.pending() > 0).map(|_| {
            let folder = self.directory.display();
            // Some may be in memory alone.
            let kept = match self.before_moving() {
                Ok(()) => "what was staged is kept".to_owned(),
                Err(error) => format!("only a part of what was staged is kept ({})", first_line(&error)),
            };
            format!("{kept}: remove the cause, end the program, then run hyperslab recover {folder}")
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Logged>>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Staging {
    /// A container that was not closed: whatever is in it needs no recovery.
    fn drop(&mut self) {
        if self.journal().is_some_and(|journal| journal.header().process.pid == std::process::id()) {
            // Where this fails, the files stay.
            let _ = self.settle().and_then(|()| self.end());
        }
    }
}

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The journal of another rank, which is another process.
#[derive(Debug)]
pub(crate) struct Others {
    journal: Foreign,
    staging: Arc<Staging>,
}

impl Others {
    /// A write of it that [`Record::tell`] told of. It is only read: whose it is says when it was moved.
    pub fn hear(&mut self, from: &mut Decoder<'_>) -> Result<Record> {
        Ok(Record { logged: Arc::new(self.journal.hear(from)?), staging: self.staging.clone() })
    }
}

impl Record {
    /// Says where it is, for another rank. It must have been handed over.
    pub fn tell(&self, out: &mut Encoder) {
        self.logged.tell(out);
    }

    pub fn len(&self) -> u64 {
        self.logged.len()
    }

    /// Whether it is in the files of the journal, not in memory alone.
    pub fn is_handed_over(&self) -> bool {
        self.logged.is_handed_over()
    }

    /// Reads the elements, packed.
    pub fn read_into(&self, into: &mut [u8]) -> Result<()> {
        self.logged.read_into(into)
    }

    /// Reads the elements of many, packed, each to its place.
    pub fn read_all<'a>(wanted: impl Iterator<Item = (&'a Self, &'a mut [u8])>) -> Result<()> {
        read_all(wanted.map(|(record, into)| (&*record.logged, into)).collect())
    }

    /// Checks that the elements are what was staged.
    pub fn verify(&self) -> Result<()> {
        self.logged.verify()
    }

    /// Reads bytes of the packed elements and checks them. They begin at a multiple of [`STEP`], and end at one or with the elements.
    pub fn read_checked(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.logged.read_checked(at, into)
    }

    /// Reads bytes of the packed elements, from `at` on, without a check.
    pub fn read_part(&self, at: u64, into: &mut [u8]) -> Result<()> {
        self.logged.read(at, into)
    }

    /// Reads the elements, packed, and hands them on.
    pub fn with<T>(&self, work: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let len = usize::try_from(self.len()).map_err(|_| Error::invalid("read journal", "a write is too long"))?;
        let mut buffer = self.staging.pool.take(len, len as u64)?;
        self.logged.read_into(buffer.as_mut())?;
        work(buffer.as_ref())
    }

    /// It was written to the container.
    pub fn moved(&self) {
        self.staging.lock().push(self.logged.clone());
    }
}

/// The names of all ranks' journals, if those who read them can open all. Collective.
fn readable(files: Option<Arc<dyn Files>>, journal: &Journal, comm: &dyn Communicator) -> Result<Option<Readable>> {
    // All ranks of one machine, or none.
    let Some(files) = files else { return Ok(None) };
    let names = comm.all_gather(journal.stem().as_bytes())?;
    let stems: Vec<String> = names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect();
    let opens = comm.rank() >= READERS || stems.iter().all(|stem| Foreign::open(files.clone(), stem).is_ok());
    let mut all = [u64::from(opens)];
    comm.all_reduce(&mut all, Reduce::Min)?;
    Ok((all[0] == 1).then_some((files, stems)))
}

/// Opens the log file of a node, which its first rank makes. Collective within the node; what goes wrong on one rank is told by
/// the inner result.
fn join_node(directory: &Path, job: Id, node: &dyn Communicator) -> Result<Result<Arc<dyn Files>>> {
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
        Some(made) => made.map(|(_, files)| Arc::new(files) as Arc<dyn Files>),
        None => id
            .try_into()
            .map_err(|_| failed())
            .and_then(|id| NodeDirectory::join(directory, &place(Id(id))))
            .map(|files| Arc::new(files) as Arc<dyn Files>),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an error is one of the storage: it is full, read-only or broken. Others are the user's.
fn is_of_storage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Io | ErrorKind::Peer)
}

/// Without links; in its folder at least, where it does not exist.
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
