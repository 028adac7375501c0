//! Puts a file back to its last commit after its writer was killed.

use crate::identity::FileIdentity;
use crate::io::{read_up_to, write_all};
use crate::journal::{self, HEAD, Head, RECORD, RECORDS, Record};
use crate::rollback::{HEARTBEAT, touch};
use crate::sighting::{self, FileSighting};
use crate::superblock;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file may be this much younger than its journal: writes follow the touch of the journal, and may be held up.
const SLACK: Duration = Duration::from_secs(2);

/// What lies beside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// No journal.
    Nothing,
    /// The journal of a process that is alive.
    Live,
    /// A journal without a writer: the file must be rolled back before it is used.
    Orphaned,
}

/// Why a file was not touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The writing process is alive.
    WriterAlive,
    /// Somebody has the file open.
    InUse,
    /// There is no file, or not an ordinary one.
    NoFile(String),
    /// The file is not the one that the journal was made for.
    AnotherFile,
    /// The file was changed after its journaling process last wrote it.
    Changed(String),
    /// The journal cannot be understood.
    Damaged(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WriterAlive => f.write_str("the process that writes the file is still alive"),
            Self::InUse => f.write_str("another process has the file open"),
            Self::NoFile(why) => write!(f, "the file cannot be opened: {why}"),
            Self::AnotherFile => f.write_str("the journal was made for another file that had this name"),
            Self::Changed(how) => write!(f, "the file was changed since by a program without the journal: {how}"),
            Self::Damaged(how) => write!(f, "the journal cannot be used: {how}"),
        }
    }
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackOutcome {
    /// There was no journal.
    Nothing,
    /// It was as of its last commit already; the journal is removed.
    Clean,
    /// It is as of its last commit now; the journal is removed.
    RolledBack {
        /// Bytes that were put back.
        bytes: u64,
        /// Length before.
        from: u64,
        /// Length now.
        to: u64,
    },
    /// Nothing was touched.
    Refused(Refusal),
}

/// Whether a journal lies beside a file, and whether its writer lives. Changes nothing.
///
/// # Errors
/// Fails if a journal cannot be opened.
pub fn pending(file: &Path) -> io::Result<Pending> {
    let Some(journal) = open_journal(&journal::path_of(file))? else { return Ok(Pending::Nothing) };
    Ok(if claim(&journal)? { Pending::Orphaned } else { Pending::Live })
}

/// The files in a folder beside which journals lie, sorted.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn find_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        found.extend(journal::file_of(&entry?.path()));
    }
    found.sort();
    Ok(found)
}

/// Puts a file back to its last commit, clears the marks that libhdf5 leaves in files that are open for writing, and
/// removes the journal. May be repeated after it was itself killed. With `force` a changed file and a damaged journal
/// are no reason to refuse.
///
/// # Errors
/// Fails if the system refuses something; the journal is still there then.
pub fn roll_back(file: &Path, force: bool) -> io::Result<RollbackOutcome> {
    let path = journal::path_of(file);
    let Some(journal) = open_journal(&path)? else { return Ok(RollbackOutcome::Nothing) };
    if !claim(&journal)? {
        return Ok(RollbackOutcome::Refused(Refusal::WriterAlive));
    }
    match restore(&journal, file, force) {
        Ok((bytes, from, to)) => {
            std::fs::remove_file(&path)?;
            let clean = bytes == 0 && from == to;
            Ok(if clean { RollbackOutcome::Clean } else { RollbackOutcome::RolledBack { bytes, from, to } })
        }
        Err(Stop::Refused(why)) => Ok(RollbackOutcome::Refused(why)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Extends a file without a journal to the end that its superblock names. Returns by how much.
///
/// # Errors
/// Fails if the file cannot be opened or extended.
pub fn mend_end(file: &Path) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(file)?;
    if !file.metadata()?.is_file() {
        return Ok(0);
    }
    let grown = superblock::extend_to_end(&file)?;
    if grown > 0 {
        file.sync_all()?;
    }
    Ok(grown)
}

enum Stop {
    Refused(Refusal),
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

fn open_journal(path: &Path) -> io::Result<Option<File>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let opened = match open(true) {
        // Whoever may only read may still be told that it is there.
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            open(false)
        }
        other => other,
    };
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether nobody else has a file locked.
fn claim(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Puts the records' bytes back. Returns the bytes, the length before and the length now.
fn restore(journal: &File, path: &Path, force: bool) -> Result<(u64, u64, u64), Stop> {
    let Some(head) = read_head(journal)? else {
        // The writer was killed before its first record, and had overwritten nothing.
        return Ok((0, 0, 0));
    };
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Stop::Refused(Refusal::NoFile(error.to_string())),
        _ => Stop::Failed(error),
    })?;
    if !file.metadata()?.is_file() {
        return Err(Refusal::NoFile("it is no ordinary file".into()).into());
    }
    if !head.identity.matches(&FileIdentity::of(&file)?) {
        return Err(Refusal::AnotherFile.into());
    }
    // Where there are no locks nobody can be asked.
    if let Ok(false) = claim(&file) {
        return Err(Refusal::InUse.into());
    }
    let (records, damage) = read_records(journal, &head)?;
    let from = file.metadata()?.len();
    if !force {
        if let Some(how) = changed(journal, &file, &head)? {
            return Err(Refusal::Changed(how).into());
        }
        if let Some(how) = damage {
            return Err(Refusal::Damaged(how).into());
        }
    }
    // From now on the file is not as its job left it, should this be killed too.
    sighting::write(journal, None)?;
    let bytes = put_back(journal, &file, &records)?;
    if from != head.committed {
        file.set_len(head.committed)?;
    }
    touch(journal);
    superblock::clear_marks(&file)?;
    superblock::extend_to_end(&file)?;
    file.sync_all()?;
    Ok((bytes, from, file.metadata()?.len()))
}

/// The head; none if it was never finished.
fn read_head(journal: &File) -> Result<Option<Head>, Stop> {
    let mut bytes = [0; HEAD];
    let read = read_up_to(journal, &mut bytes, 0)?;
    if read < HEAD || bytes == [0; HEAD] {
        return Ok(None);
    }
    Head::decode(&bytes).map(Some).map_err(|why| Refusal::Damaged(why.into()).into())
}

/// A record's bytes in the journal.
struct Found {
    record: Record,
    /// Where its data begin.
    at: u64,
}

/// All whole records, and whether one before the last is damaged. The last may be torn: its overwrite has not happened.
fn read_records(journal: &File, head: &Head) -> io::Result<(Vec<Found>, Option<String>)> {
    let (mut records, mut at, mut data) = (Vec::new(), RECORDS, Vec::new());
    loop {
        let Some(record) = record_at(journal, at, head.sequence)? else { return Ok((records, None)) };
        data.resize(record.length as usize, 0);
        let begin = at + RECORD as u64;
        let next = begin + u64::from(record.length);
        let whole = read_up_to(journal, &mut data, begin)? == data.len()
            && crc32c::crc32c(&data) == record.data_checksum
            && record.offset.checked_add(u64::from(record.length)).is_some_and(|end| end <= head.committed);
        if !whole {
            let more = record_at(journal, next, head.sequence)?.is_some();
            return Ok((records, more.then(|| format!("the record at byte {at} is damaged"))));
        }
        records.push(Found { record, at: begin });
        at = next;
    }
}

fn record_at(journal: &File, at: u64, sequence: u64) -> io::Result<Option<Record>> {
    let mut bytes = [0; RECORD];
    let read = read_up_to(journal, &mut bytes, at)?;
    // No writer makes longer records, so that damage cannot make this take all memory.
    let record = Record::decode(&bytes, sequence).filter(|record| record.length <= crate::rollback::PIECE as u32);
    Ok(record.filter(|_| read == RECORD))
}

/// How a file was changed by others than its journaling process, if it was.
fn changed(journal: &File, file: &File, head: &Head) -> io::Result<Option<String>> {
    let (seen, now) = (sighting::read(journal)?, FileSighting::of(file)?);
    let (journal, file) = (journal.metadata()?, file.metadata()?);
    if file.len() < head.committed {
        return Ok(Some(format!("it has {} bytes, and had {} at its last commit", file.len(), head.committed)));
    }
    // The time of a file that was put back from elsewhere may be any, so only sameness tells.
    if let Some(seen) = seen {
        return Ok((seen != now).then(|| "it is not as that process left it".into()));
    }
    let nanoseconds = |m: &std::fs::Metadata| i128::from(m.mtime()) * 1_000_000_000 + i128::from(m.mtime_nsec());
    let later = nanoseconds(&file) - nanoseconds(&journal);
    let most = (HEARTBEAT + SLACK).as_nanos() as i128;
    Ok((later > most).then(|| format!("it was written {} s after the journal", later / 1_000_000_000)))
}

fn put_back(journal: &File, file: &File, records: &[Found]) -> io::Result<u64> {
    let (mut data, mut bytes) = (Vec::new(), 0);
    touch(journal);
    let mut touched = Instant::now();
    for found in records {
        data.resize(found.record.length as usize, 0);
        if read_up_to(journal, &mut data, found.at)? != data.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if touched.elapsed() >= HEARTBEAT {
            touch(journal);
            touched = Instant::now();
        }
        write_all(file, &data, found.record.offset)?;
        bytes += data.len() as u64;
    }
    Ok(bytes)
}
