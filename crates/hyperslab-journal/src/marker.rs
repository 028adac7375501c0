//! Markers: a file `.NAME.hyperslab-log` beside a container says that a journal of it exists. The extended attribute
//! `user.hyperslab.log` of the container has the same bytes, and follows it when it is moved or linked.
//!
//! The marker is stored when the journal is created and removed with it. Opening a container checks it
//! ([`check_unrecovered`]): while a journal of a dead process needs recovery, writing is refused, or recovery would
//! overwrite new data with old.

mod marker_check;

pub use marker_check::with_marker_check;

use crate::wire::{Decoder, Encoder};
use crate::{Directory, FoundJournal, Id, JournalStorage, Lock, NodeDirectory, Process, Stage, find};
use hyperslab_core::{Error, ErrorKind, Result};
use hyperslab_rollback::FileIdentity;
use rustix::fs::XattrFlags;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"HSLBMARK";
const VERSION: u32 = 1;
const LONGEST: usize = 16 << 10;
const ATTRIBUTE: &str = "user.hyperslab.log";

/// The location of a container's journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The job that wrote the journals.
    pub job: Id,
    /// Host name of the writer.
    pub host: String,
    /// Directory of the journals.
    pub directory: PathBuf,
    /// Identity of the container's file.
    pub identity: Option<FileIdentity>,
}

/// Status of the journals that a marker names.
#[derive(Debug, PartialEq, Eq)]
enum LogStatus {
    /// There are none.
    Gone,
    /// In use by a process.
    InUse,
    /// Left by a dead process.
    NeedsRecovery,
    /// On another machine, or in an unreadable directory.
    Unknown,
}

/// Path of the marker file of a container.
pub(crate) fn path_of(container: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(container.file_name()?);
    name.push(".hyperslab-log");
    Some(container.with_file_name(name))
}

impl Marker {
    /// A marker for journals of this process.
    pub fn new(job: Id, directory: &Path, identity: Option<FileIdentity>) -> Result<Self> {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        Ok(Self { job, host: Process::this()?.host, directory, identity })
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.raw(MAGIC);
        out.u32(VERSION);
        out.u32(0); // length, below
        out.raw(&self.job.0);
        out.u32(u32::from(self.identity.is_some()));
        out.raw(&self.identity.map_or([0; FileIdentity::ENCODED], |identity| identity.encode()));
        out.counted(self.host.as_bytes());
        out.counted(self.directory.as_os_str().as_bytes());
        let len = out.0.len() as u32 + 4;
        out.0[12..16].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c::crc32c(&out.0);
        out.u32(crc);
        out.0
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if crc32c::crc32c(content).to_le_bytes() != crc {
            return None;
        }
        let mut from = Decoder(content);
        let known = from.raw(MAGIC.len()).ok()? == MAGIC && from.u32().ok()? == VERSION;
        if !known || from.u32().ok()? as usize != bytes.len() {
            return None;
        }
        let job = Id(from.bytes16().ok()?);
        let has_identity = from.u32().ok()? == 1;
        let identity = from.raw(FileIdentity::ENCODED).ok()?.try_into().ok().and_then(FileIdentity::decode);
        let host = from.text(LONGEST).ok()?.to_owned();
        let directory = PathBuf::from(OsString::from_vec(from.counted(LONGEST).ok()?.to_vec()));
        from.end().ok()?;
        Some(Self { job, host, directory, identity: identity.filter(|_| has_identity) })
    }

    /// Stores the marker file and attribute. Best effort: without them the journals are found in their directory only.
    pub fn store(&self, container: &Path) {
        let bytes = self.encode();
        let _ = rustix::fs::setxattr(container, ATTRIBUTE, &bytes, XattrFlags::empty());
        let Some(path) = path_of(container) else { return };
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(format!(".{}", self.job));
        let made = File::options().write(true).create_new(true).mode(0o644).open(&unfinished);
        let put = made.and_then(|mut file| file.write_all(&bytes)).and_then(|()| std::fs::rename(&unfinished, &path));
        if put.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
    }

    /// Removes marker file and attribute, if they are of this job.
    pub fn remove(&self, container: &Path) {
        if read_attribute(container).is_some_and(|found| found.job == self.job) {
            let _ = rustix::fs::removexattr(container, ATTRIBUTE);
        }
        if let Some(path) = path_of(container)
            && read_file(&path).is_some_and(|found| found.job == self.job)
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Removes it, unless another rank of the job still has a journal.
    pub fn remove_if_last(&self, container: &Path) {
        let others = Directory::open(&self.directory).is_ok_and(|files| !self.journals(&files).is_empty());
        if !others {
            self.remove(container);
        }
    }

    /// The journals of the job in its directory.
    fn journals(&self, files: &dyn JournalStorage) -> Vec<FoundJournal> {
        let prefix = format!("hyperslab-{}-", self.job);
        let found = find(files).unwrap_or_default();
        let is_of_job = |found: &FoundJournal| found.stem.starts_with(&prefix) && found.stage == Stage::Written;
        found.into_iter().filter(is_of_job).collect()
    }

    fn log(&self) -> LogStatus {
        let here = self.host == rustix::system::uname().nodename().to_string_lossy();
        let missing = match std::fs::metadata(&self.directory) {
            Ok(about) => !about.is_dir(),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => true,
            Err(_) => return LogStatus::Unknown,
        };
        if missing {
            return if here { LogStatus::Gone } else { LogStatus::Unknown };
        }
        let Ok(files) = Directory::open(&self.directory) else { return LogStatus::Unknown };
        let mut journals = self.journals(&files).into_iter().peekable();
        if journals.peek().is_none() {
            return if here { LogStatus::Gone } else { LogStatus::Unknown };
        }
        match journals.any(|found| found.open(&files).is_ok_and(|(_, lock)| lock == Lock::Busy)) {
            true => LogStatus::InUse,
            false => LogStatus::NeedsRecovery,
        }
    }

    /// Removes the journals that it names, unless they are in use, and then the marker. Returns whether they are removed.
    pub(crate) fn discard(&self, container: &Path) -> Result<bool> {
        match self.log() {
            LogStatus::InUse | LogStatus::Unknown => return Ok(false),
            LogStatus::Gone => {}
            LogStatus::NeedsRecovery => {
                let files = NodeDirectory::open(&self.directory)?;
                self.journals(&files).iter().try_for_each(|found| found.remove(&files))?;
            }
        }
        self.remove(container);
        Ok(true)
    }

    /// Whether its identity is that of the present file.
    fn matches(&self, container: &Path) -> bool {
        let now = || File::open(container).and_then(|file| FileIdentity::of(&file)).ok();
        self.identity.is_none_or(|was| now().is_some_and(|now| was.matches(&now)))
    }
}

fn read_file(path: &Path) -> Option<Marker> {
    let file = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(file.bits() as i32).open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|about| about.is_file())?;
    file.take(LONGEST as u64 * 2).read_to_end(&mut bytes).ok()?;
    Marker::decode(&bytes)
}

/// Reads by path: closing a descriptor would release the program's POSIX locks on the file.
fn read_attribute(container: &Path) -> Option<Marker> {
    let mut bytes = vec![0; LONGEST * 2];
    let len = rustix::fs::getxattr(container, ATTRIBUTE, &mut bytes[..]).ok()?;
    Marker::decode(bytes.get(..len)?)
}

/// The markers of a container, from file and attribute.
pub fn markers(container: &Path) -> Vec<Marker> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    let inside = read_attribute(&real);
    let mut found: Vec<Marker> = path_of(&real).and_then(|path| read_file(&path)).into_iter().collect();
    found.extend(inside.filter(|inside| found.first().is_none_or(|found| found.job != inside.job)));
    found
}

/// Checks for journals of dead processes. Opening for writing fails if there are any; for reading, returns warnings for the
/// user. Removes markers without journals.
pub fn check_unrecovered(container: &Path, writing: bool) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for marker in markers(container) {
        let folder = marker.directory.display();
        let (log, matches) = (marker.log(), marker.matches(container));
        let waits = match log {
            LogStatus::InUse => continue,
            LogStatus::Gone => {
                if writing {
                    marker.remove(&container.canonicalize().unwrap_or_else(|_| container.to_path_buf()));
                }
                continue;
            }
            LogStatus::NeedsRecovery => format!("writes of a job that has ended wait in the log in {folder}"),
            LogStatus::Unknown => format!("writes may wait in the log in {folder} of {}", marker.host),
        };
        match (matches, writing) {
            (true, true) => {
                return Err(Error::new(ErrorKind::AlreadyExists, "open", waits).target(container.display()).hint(format!(
                    "hyperslab recover {folder}, which brings them into the file (or --discard, which throws them away)"
                )));
            }
            (true, false) => warnings.push(format!(
                "{}: {waits}, and the file lacks them; run hyperslab recover {folder}",
                container.display()
            )),
            // Recovery will refuse to apply them to this file.
            (false, _) => warnings.push(format!(
                "{}: logs of an earlier file of this name wait in {folder}; see hyperslab recover {folder}",
                container.display()
            )),
        }
    }
    Ok(warnings)
}

/// Directories of orphaned journals of this very container, wherever it is now, and whether each exists: one that does not was
/// moved or removed.
pub fn waiting(container: &Path) -> Vec<(PathBuf, bool)> {
    let of_it = markers(container).into_iter().filter(|marker| marker.matches(container));
    let each = of_it.filter_map(|marker| match (marker.log(), marker.directory.exists()) {
        (LogStatus::NeedsRecovery, _) => Some((marker.directory, true)),
        (LogStatus::Gone, false) => Some((marker.directory, false)),
        _ => None,
    });
    each.collect()
}

/// Removes the markers of a recovered job.
pub(crate) fn remove_of(container: &Path, job: Id) {
    markers(container).iter().filter(|marker| marker.job == job).for_each(|marker| marker.remove(container));
}

/// Removes the markers of a container that have no journals, on the user's request; also those whose directory is
/// unreachable, which are returned.
pub fn unmark(container: &Path) -> Vec<PathBuf> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    let mut unknown = Vec::new();
    for marker in markers(&real) {
        match marker.log() {
            LogStatus::InUse | LogStatus::NeedsRecovery => continue,
            LogStatus::Unknown => unknown.push(marker.directory.clone()),
            LogStatus::Gone => {}
        }
        marker.remove(&real);
    }
    unknown
}

/// Discards the journals of dead processes and the markers of a container that is being removed or replaced.
pub fn discard(container: &Path) -> Result<()> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    markers(container).iter().try_for_each(|marker| marker.discard(&real).map(drop))
}
