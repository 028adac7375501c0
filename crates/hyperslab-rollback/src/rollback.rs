//! Saves old bytes before they are overwritten, for one open file.

use crate::identity::FileIdentity;
use crate::io::{read_up_to, write_all, write_zeros};
use crate::journal::{self, Head, RECORD, RECORDS, Record};
use crate::saved::{PAGE, SavedPages};
use crate::sighting::{self, FileSighting};
use hyperslab_core::lock;
use rustix::fs::{FlockOperation, Timestamps};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Most bytes of one record, and of the buffer that carries them.
pub(crate) const PIECE: u64 = 256 << 10;
/// A journal longer than this is shortened by a commit; a shorter one is written over.
const KEPT: u64 = 1 << 20;
/// Room that a journal takes at once, so that a file can be closed on a disk that has become full since.
const ROOM: u64 = 16 << 10;
/// Least time between two touches of the journal, which tell when the file was last written by its journaling process.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(100);

/// The rollback journal of a file that is open for writing. Every write to the file goes through [`Rollback::overwrite`].
#[derive(Debug)]
pub struct Rollback {
    file: Arc<File>,
    path: PathBuf,
    durable: bool,
    /// Read-locked by writes, write-locked by commits: a commit has no write in flight.
    writes: RwLock<()>,
    state: Mutex<State>,
    failed: AtomicBool,
    flushed: AtomicBool,
    has_missing: AtomicBool,
    saved_bytes: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// Length of the file at the last commit.
    committed: u64,
    /// Length that the file is to have, if it was shortened since: it keeps its bytes until the commit.
    shortened: Option<u64>,
    pages: SavedPages,
    journal: Option<Journal>,
    /// Whether the file goes without a journal.
    without: bool,
    /// Why it has to, if it should have one.
    missing: Option<String>,
    buffer: Vec<u8>,
    synced: Synced,
}

/// Syncs that stay failed: after one the kernel forgets which pages it could not write, so that the next would succeed without
/// them.
#[derive(Debug, Default)]
struct Synced {
    /// The error number of the first that failed.
    failed: Option<i32>,
}

impl Synced {
    /// Hands a file's data to the device, unless that has failed before.
    fn sync(&mut self, file: &File) -> io::Result<()> {
        if let Some(number) = self.failed {
            return Err(io::Error::from_raw_os_error(number));
        }
        file.sync_data()
            .inspect_err(|error| self.failed = Some(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())))
    }
}

#[derive(Debug)]
struct Journal {
    file: File,
    head: Head,
    /// Where the next record goes.
    end: u64,
    /// Whether records are not on the device yet.
    unsynced: bool,
    touched: Instant,
    /// Whether the file's time tells of every change.
    exact: bool,
    /// Whether it says that writes are under way.
    writing: bool,
}

/// Descriptors of journals of this process, for [`HeldJournals::forget_in_child`].
static OPEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

impl Rollback {
    /// Begins to guard a file that is open for writing and has its last commit's content now. Creates no journal yet.
    /// With `durable` the order of writes holds through a loss of power, else through a kill.
    ///
    /// # Errors
    /// Fails if the file's length cannot be asked for.
    pub fn begin(file: Arc<File>, path: &Path, durable: bool) -> io::Result<Self> {
        let committed = file.metadata()?.len();
        let state = State {
            committed,
            shortened: None,
            pages: SavedPages::default(),
            journal: None,
            without: false,
            missing: None,
            buffer: Vec::new(),
            synced: Synced::default(),
        };
        Ok(Self {
            file,
            path: journal::path_of(path),
            durable,
            writes: RwLock::new(()),
            state: Mutex::new(state),
            failed: AtomicBool::new(false),
            flushed: AtomicBool::new(false),
            has_missing: AtomicBool::new(false),
            saved_bytes: AtomicU64::new(0),
        })
    }

    /// Runs a write of `length` bytes at `offset` after their old bytes are in the journal. No commit happens meanwhile.
    ///
    /// # Errors
    /// Fails if the old bytes cannot be saved, and then the write is not made; or if the write fails.
    pub fn overwrite<T>(&self, offset: u64, length: u64, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _shared = self.writes.read().unwrap_or_else(PoisonError::into_inner);
        self.note(self.before_write(offset, length).and_then(|()| write()))
    }

    /// Runs a write of bytes that are meant to stay after a rollback, since another log has them too: their addresses
    /// belong to the same object in the committed state. What of them was saved already is saved anew.
    ///
    /// # Errors
    /// Fails if the write fails, or what it wrote cannot be saved.
    pub fn overwrite_for_good<T>(
        &self,
        offset: u64,
        length: u64,
        write: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let _shared = self.writes.read().unwrap_or_else(PoisonError::into_inner);
        let begun = lock(&self.state).journal.as_mut().map_or(Ok(()), Journal::before_change);
        self.note(
            begun
                .and_then(|()| write())
                .and_then(|result| self.save_anew(offset..offset.saturating_add(length)).map(|()| result)),
        )
    }

    /// Adds what a range holds now to the journal, where pages of it are saved: later records are restored after earlier ones.
    fn save_anew(&self, range: Range<u64>) -> io::Result<()> {
        let mut state = lock(&self.state);
        let end = range.end.min(state.committed);
        let pages = range.start / PAGE..end.div_ceil(PAGE);
        let mut from = pages.start;
        while range.start < end
            && let Some(saved) = state.pages.first_saved(from..pages.end)
        {
            let saved = saved.start..saved.end.min(saved.start + PIECE / PAGE);
            let bytes = range.start.max(saved.start * PAGE)..end.min(saved.end * PAGE);
            self.add_record(&mut state, bytes)?;
            from = saved.end;
        }
        self.sync_records(&mut state)
    }

    /// Failures are sticky until the next commit.
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn before_write(&self, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.checked_add(length).ok_or(io::ErrorKind::InvalidInput)?;
        let mut state = lock(&self.state);
        self.make_journal(&mut state);
        state.journal.as_mut().map_or(Ok(()), Journal::before_change)?;
        self.save(&mut state, offset..end)?;
        if let Some(now) = state.shortened
            && end > now
        {
            // Between the shortened end and the write there are zeros, as in a file that was really shortened.
            if offset > now {
                self.save(&mut state, now..offset)?;
                write_zeros(&self.file, now, offset.min(self.file.metadata()?.len()))?;
            }
            state.shortened = Some(end);
        }
        Ok(())
    }

    /// Saves those pages of a range that lie below the committed end and are not saved yet.
    fn save(&self, state: &mut State, range: Range<u64>) -> io::Result<()> {
        let end = range.end.min(state.committed);
        if range.start >= end || state.without {
            return Ok(());
        }
        let pages = range.start / PAGE..end.div_ceil(PAGE);
        let mut from = pages.start;
        while let Some(missing) = state.pages.first_missing(from..pages.end) {
            let missing = missing.start..missing.end.min(missing.start + PIECE / PAGE);
            self.save_pages(state, missing.clone())?;
            from = missing.end;
        }
        self.sync_records(state)
    }

    /// With `durable`, records are on the device before what they save is overwritten.
    fn sync_records(&self, state: &mut State) -> io::Result<()> {
        let State { journal, synced, .. } = state;
        match journal {
            Some(journal) if self.durable && journal.unsynced => {
                synced.sync(&journal.file)?;
                journal.unsynced = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn save_pages(&self, state: &mut State, pages: Range<u64>) -> io::Result<()> {
        let bytes = pages.start * PAGE..(pages.end * PAGE).min(state.committed);
        self.add_record(state, bytes)?;
        state.pages.add(pages);
        Ok(())
    }

    /// Adds what the file holds in a range to the journal.
    fn add_record(&self, state: &mut State, bytes: Range<u64>) -> io::Result<()> {
        let State { journal: Some(journal), buffer, .. } = state else { return Ok(()) };
        let (from, length) = (bytes.start, (bytes.end - bytes.start) as usize);
        buffer.resize(RECORD + length, 0);
        let data = &mut buffer[RECORD..];
        // Space that was never written reads as zeros; the file is at least as long as at its last commit.
        let read = read_up_to(&self.file, data, from)?;
        data[read..].fill(0);
        let record = Record::of(journal.head.sequence, from, data);
        buffer[..RECORD].copy_from_slice(&record.encode());
        write_all(&journal.file, buffer, journal.end)?;
        journal.end += buffer.len() as u64;
        journal.unsynced = true;
        self.saved_bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(())
    }

    /// A journal that cannot be made is done without, one that cannot be synced is not synced, as [`Rollback::take_missing`] tells.
    fn make_journal(&self, state: &mut State) {
        if state.journal.is_some() || state.without {
            return;
        }
        let create = |durable| Journal::create(&self.path, &self.file, state.committed, durable);
        let missing = match create(self.durable) {
            Ok(journal) => {
                state.journal = Some(journal);
                return;
            }
            // What cannot be synced outlives a kill all the same.
            Err(error) => match self.durable.then(|| create(false)) {
                Some(Ok(journal)) => {
                    state.journal = Some(journal);
                    format!("the file is safe from kills, and not from a loss of power: {error}")
                }
                _ => {
                    state.without = true;
                    format!("the file is not safe from kills, it has no rollback journal: {error}")
                }
            },
        };
        state.missing = Some(format!("{missing} ({})", self.path.display()));
        self.has_missing.store(true, Ordering::Relaxed);
    }

    /// Sets the length of the file: at once if it grows, at the next commit if it shrinks.
    ///
    /// # Errors
    /// Fails if the system cannot extend the file, or old bytes cannot be saved.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let _shared = self.writes.read().unwrap_or_else(PoisonError::into_inner);
        self.note(self.change_length(length))
    }

    fn change_length(&self, length: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        self.make_journal(&mut state);
        state.journal.as_mut().map_or(Ok(()), Journal::before_change)?;
        let now = match state.shortened {
            Some(now) => now,
            None => self.file.metadata()?.len(),
        };
        if length >= now {
            self.save(&mut state, now..length)?;
            let kept = self.file.metadata()?.len();
            if now < kept {
                write_zeros(&self.file, now, length.min(kept))?;
            }
            if length >= kept {
                state.shortened = None;
                return self.file.set_len(length);
            }
        } else if length >= state.committed || state.without {
            // Bytes beyond the committed end belong to nobody after a rollback.
            if state.shortened.is_none() {
                return self.file.set_len(length);
            }
        }
        state.shortened = Some(length);
        Ok(())
    }

    /// End of the file as its writer sees it, if the file was shortened and keeps its bytes until the commit.
    #[must_use]
    pub fn shortened(&self) -> Option<u64> {
        lock(&self.state).shortened
    }

    /// Length of the file as its writer sees it.
    ///
    /// # Errors
    /// Fails if the file's length cannot be asked for.
    pub fn length(&self) -> io::Result<u64> {
        match lock(&self.state).shortened {
            Some(now) => Ok(now),
            None => Ok(self.file.metadata()?.len()),
        }
    }

    /// Makes the present content the state that a rollback restores. Everything must have been handed to the file.
    ///
    /// # Errors
    /// Fails if the journal cannot be emptied or, with `durable`, the file not synced. The last commit stays then. After a sync
    /// that failed every later commit fails.
    pub fn commit(&self) -> io::Result<()> {
        let _alone = self.writes.write().unwrap_or_else(PoisonError::into_inner);
        let mut state = lock(&self.state);
        let done = self.make_commit(&mut state);
        self.failed.store(done.is_err(), Ordering::Relaxed);
        done
    }

    fn make_commit(&self, state: &mut State) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let wanted = state.shortened.unwrap_or(length).min(length);
        if self.durable {
            state.synced.sync(&self.file)?;
        }
        // The head before the file is shortened: a file that is too long is whole, one that is too short is not. Without a
        // journal nothing was written.
        let State { journal, synced, .. } = &mut *state;
        if let Some(journal) = journal {
            if wanted < length {
                journal.before_change()?;
            }
            let clean = journal.end == RECORDS && journal.head.committed == wanted;
            if !clean {
                journal.restart(wanted, self.durable.then_some(synced))?;
            }
        }
        state.pages.clear();
        state.committed = wanted;
        if wanted < length {
            self.file.set_len(wanted)?;
        }
        state.shortened = None;
        Ok(())
    }

    /// Call when a program's call is over: notes how the file is now, so that every later change by others is noticed. While
    /// writes are under way on other threads it does nothing.
    pub fn settle(&self) {
        let Ok(_alone) = self.writes.try_write() else { return };
        if let Some(journal) = &mut lock(&self.state).journal {
            journal.settle(&self.file);
        }
    }

    /// Hands the file's data to the device.
    ///
    /// # Errors
    /// Fails if the device does, and from then on always, as every commit does.
    pub fn sync(&self) -> io::Result<()> {
        lock(&self.state).synced.sync(&self.file)
    }

    /// Ends guarding after everything was handed to the file: commits, then removes the journal.
    ///
    /// # Errors
    /// Fails as [`Rollback::commit`], or if the journal cannot be removed.
    pub fn finish(&self) -> io::Result<()> {
        self.give_up()
    }

    /// Commits and goes on without a journal.
    ///
    /// # Errors
    /// Fails as [`Rollback::finish`].
    pub fn give_up(&self) -> io::Result<()> {
        self.commit()?;
        self.remove_journal()
    }

    fn remove_journal(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.without = true;
        match state.journal.take() {
            Some(_journal) => std::fs::remove_file(&self.path),
            None => Ok(()),
        }
    }

    /// Whether a write or a commit has failed since the last commit.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What the file is not safe from, and why, if its journal cannot be made as wished. Told once.
    pub fn take_missing(&self) -> Option<String> {
        if self.has_missing.swap(false, Ordering::Relaxed) { lock(&self.state).missing.clone() } else { None }
    }

    /// Notes that the library below has written all it holds.
    pub fn note_flushed(&self) {
        self.flushed.store(true, Ordering::Relaxed);
    }

    /// Whether that was noted since the last time of asking.
    pub fn take_flushed(&self) -> bool {
        self.flushed.swap(false, Ordering::Relaxed)
    }

    /// Bytes that were saved since the last time of asking.
    pub fn take_saved_bytes(&self) -> u64 {
        self.saved_bytes.swap(0, Ordering::Relaxed)
    }
}

impl Journal {
    /// Creates the journal, or takes over one that was left empty-handed. One that fails on the way is removed: a rollback
    /// would take a file that goes on without it back to this moment.
    fn create(path: &Path, guarded: &File, committed: u64, durable: bool) -> io::Result<Self> {
        let file = open_new(path)?;
        let begun = Self::write_head(&file, path, guarded, committed, durable);
        let head = begun.inspect_err(|_| {
            let _ = file.set_len(0);
            let _ = std::fs::remove_file(path);
        })?;
        lock(&OPEN).push(file.as_raw_fd());
        take_room(&file);
        let (exact, touched) = (sighting::are_exact(guarded), Instant::now());
        Ok(Self { file, head, end: RECORDS, unsynced: false, touched, exact, writing: false })
    }

    fn write_head(file: &File, path: &Path, guarded: &File, committed: u64, durable: bool) -> io::Result<Head> {
        let identity = FileIdentity::stamp(guarded)?;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&crate::identity::random()?[..8]);
        let head = Head { identity, committed, sequence: u64::from_le_bytes(sequence) };
        write_all(file, &head.encode(), 0)?;
        if durable {
            file.sync_all()?;
            File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(head)
    }

    /// Empties the journal by one write, the point of commit.
    fn restart(&mut self, committed: u64, synced: Option<&mut Synced>) -> io::Result<()> {
        let head = Head { committed, sequence: self.head.sequence.wrapping_add(1), ..self.head };
        self.file.write_all_at(&head.encode(), 0)?;
        if let Some(synced) = synced {
            synced.sync(&self.file)?;
        }
        self.head = head;
        if self.end > KEPT {
            // Only to give room back: records of the old sequence are nobody's.
            let _ = self.file.set_len(RECORDS);
            take_room(&self.file);
        }
        self.end = RECORDS;
        self.unsynced = false;
        self.touched = Instant::now();
        Ok(())
    }

    /// Says that writes are under way, and that the process lives.
    fn before_change(&mut self) -> io::Result<()> {
        if self.exact && !self.writing {
            sighting::write(&self.file, None)?;
            self.writing = true;
        }
        self.touch();
        Ok(())
    }

    /// Notes how the file is after them. Without that a change is told by its time alone.
    fn settle(&mut self, file: &File) {
        if self.writing && FileSighting::of(file).and_then(|seen| sighting::write(&self.file, Some(seen))).is_ok() {
            self.writing = false;
        }
    }

    /// Touches the journal before the file is written. What cannot be touched makes a rollback ask for `force` at worst.
    fn touch(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.touched) >= HEARTBEAT {
            self.touched = now;
            touch(&self.file);
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let descriptor = self.file.as_raw_fd();
        lock(&OPEN).retain(|open| *open != descriptor);
    }
}

/// Takes room for the first records, where the file system can.
fn take_room(journal: &File) {
    let _ = rustix::fs::fallocate(journal, rustix::fs::FallocateFlags::KEEP_SIZE, 0, ROOM);
}

/// Sets the time of the last change to now.
pub(crate) fn touch(file: &File) {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let _ = rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now });
}

/// A journal for this process alone. One that lies there already has no writer and nothing to be rolled back, or it is
/// another process's, or it was left by the file that had the name before: that is set aside.
fn open_new(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let new = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
    };
    let file = match new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let old = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
            claim(&old)?;
            let mut aside = path.as_os_str().to_owned();
            aside.push(".stale");
            std::fs::rename(path, aside)?;
            new()?
        }
        other => other?,
    };
    claim(&file)?;
    Ok(file)
}

fn claim(file: &File) -> io::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has this journal open"))
        }
        // Without locks nobody can tell whether the writer lives.
        Err(error) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

/// The list of this process's journals, locked while the process forks, so that the child finds it unlocked.
#[derive(Debug)]
pub struct HeldJournals(MutexGuard<'static, Vec<RawFd>>);

/// Locks the list before a fork.
pub fn hold_journals() -> HeldJournals {
    HeldJournals(lock(&OPEN))
}

impl HeldJournals {
    /// In a forked child: gives up the parent's journals, so that their locks end with the parent. The child must not use
    /// any [`Rollback`] of the parent from now on.
    pub fn forget_in_child(self) {
        let Ok(nothing) = File::open("/dev/null") else { return };
        for descriptor in self.0.iter() {
            // SAFETY: the number stays that of an open file, owned by the same `File` as before; only what it means changes.
            let mut owned = std::mem::ManuallyDrop::new(unsafe {
                <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(*descriptor)
            });
            let _ = rustix::io::dup3(&nothing, &mut owned, rustix::io::DupFlags::CLOEXEC);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_failed_stays_failed() {
        let file = tempfile::tempfile().expect("file");
        let mut synced = Synced::default();
        synced.sync(&file).expect("sync");
        // A device that has nothing to sync says so.
        let refused = synced.sync(&File::open("/dev/null").expect("device")).expect_err("refused");
        let later = synced.sync(&file).expect_err("forgotten");
        assert_eq!((later.raw_os_error(), refused.raw_os_error().is_some()), (refused.raw_os_error(), true));
    }
}
