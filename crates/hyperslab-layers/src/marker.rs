//! A sign beside a container that writes to it wait in a log: `.NAME.hyperslab-log`, and the same bytes in the extended
//! attribute `user.hyperslab.log` of the container, which goes with it where it is moved or linked to.
//!
//! It is put there when a log is begun and removed when the log is gone. Whoever opens a container looks for it
//! ([`notice`]): as long as a log of a dead process waits, nobody may write, or a recovery would put old data over new.

mod guard;

pub use guard::guarded;

use crate::journal::bytes::{Decoder, Encoder};
use crate::journal::{Directory, Files, Found, Id, Lock, NodeDirectory, Process, Stage, find};
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

/// Where the log of a container is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The job whose log it is.
    pub job: Id,
    /// The machine on which it was begun.
    pub host: String,
    /// The directory of the log.
    pub directory: PathBuf,
    /// Which file the container was.
    pub identity: Option<FileIdentity>,
}

/// How it stands with the log that a marker names.
#[derive(Debug, PartialEq, Eq)]
enum Log {
    /// It is gone.
    Gone,
    /// A process uses it.
    InUse,
    /// It waits for a recovery.
    Waits,
    /// Its directory is on another machine, or cannot be looked at.
    Unknown,
}

/// The name of the marker of a container.
pub(crate) fn path_of(container: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(container.file_name()?);
    name.push(".hyperslab-log");
    Some(container.with_file_name(name))
}

impl Marker {
    /// For a log of this process.
    pub(crate) fn new(job: Id, directory: &Path, identity: Option<FileIdentity>) -> Result<Self> {
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

    /// Puts it beside a container. Where that is not possible, the logs are found in their directory only.
    pub(crate) fn put(&self, container: &Path) {
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

    /// Removes it, if it is still this one.
    pub(crate) fn take_away(&self, container: &Path) {
        if attribute(container).is_some_and(|found| found.job == self.job) {
            let _ = rustix::fs::removexattr(container, ATTRIBUTE);
        }
        if let Some(path) = path_of(container)
            && beside(&path).is_some_and(|found| found.job == self.job)
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Removes it, unless another rank of the job still has a log.
    pub(crate) fn release(&self, container: &Path) {
        let others = Directory::open(&self.directory).is_ok_and(|files| !self.journals(&files).is_empty());
        if !others {
            self.take_away(container);
        }
    }

    /// The journals of the job that its directory has.
    fn journals(&self, files: &dyn Files) -> Vec<Found> {
        let prefix = format!("hyperslab-{}-", self.job);
        let found = find(files).unwrap_or_default();
        let is_of_job = |found: &Found| found.stem.starts_with(&prefix) && found.stage == Stage::Written;
        found.into_iter().filter(is_of_job).collect()
    }

    fn log(&self) -> Log {
        let here = self.host == rustix::system::uname().nodename().to_string_lossy();
        let missing = match std::fs::metadata(&self.directory) {
            Ok(about) => !about.is_dir(),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => true,
            Err(_) => return Log::Unknown,
        };
        if missing {
            return if here { Log::Gone } else { Log::Unknown };
        }
        let Ok(files) = Directory::open(&self.directory) else { return Log::Unknown };
        let mut journals = self.journals(&files).into_iter().peekable();
        if journals.peek().is_none() {
            return if here { Log::Gone } else { Log::Unknown };
        }
        match journals.any(|found| found.open(&files).is_ok_and(|(_, lock)| lock == Lock::Busy)) {
            true => Log::InUse,
            false => Log::Waits,
        }
    }

    /// Removes the logs that it names, unless somebody uses them, and then itself. Returns whether they are gone.
    pub(crate) fn discard(&self, container: &Path) -> Result<bool> {
        match self.log() {
            Log::InUse | Log::Unknown => return Ok(false),
            Log::Gone => {}
            Log::Waits => {
                let files = NodeDirectory::open(&self.directory)?;
                self.journals(&files).iter().try_for_each(|found| found.remove(&files))?;
            }
        }
        self.take_away(container);
        Ok(true)
    }

    /// Whether it is about the file that is there now.
    fn is_of(&self, container: &Path) -> bool {
        let now = || File::open(container).and_then(|file| FileIdentity::of(&file)).ok();
        self.identity.is_none_or(|was| now().is_some_and(|now| was.matches(&now)))
    }
}

fn beside(path: &Path) -> Option<Marker> {
    let file = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(file.bits() as i32).open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|about| about.is_file())?;
    file.take(LONGEST as u64 * 2).read_to_end(&mut bytes).ok()?;
    Marker::decode(&bytes)
}

/// Without opening it: closing would release locks that the program may have on the file.
fn attribute(container: &Path) -> Option<Marker> {
    let mut bytes = vec![0; LONGEST * 2];
    let len = rustix::fs::getxattr(container, ATTRIBUTE, &mut bytes[..]).ok()?;
    Marker::decode(bytes.get(..len)?)
}

/// The markers of a container, by its name and by itself.
pub fn markers(container: &Path) -> Vec<Marker> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    let inside = attribute(&real);
    let mut found: Vec<Marker> = path_of(&real).and_then(|path| beside(&path)).into_iter().collect();
    found.extend(inside.filter(|inside| found.first().is_none_or(|found| found.job != inside.job)));
    found
}

/// Looks whether writes of a dead process wait for this container. For writing that is an error; for reading, what is returned
/// should be told to the user. Markers of logs that are gone are removed.
pub fn notice(container: &Path, writing: bool) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for marker in markers(container) {
        let folder = marker.directory.display();
        let (log, is_of) = (marker.log(), marker.is_of(container));
        let waits = match log {
            Log::InUse => continue,
            Log::Gone => {
                if writing {
                    marker.take_away(&container.canonicalize().unwrap_or_else(|_| container.to_path_buf()));
                }
                continue;
            }
            Log::Waits => format!("writes of a job that has ended wait in the log in {folder}"),
            Log::Unknown => format!("writes may wait in the log in {folder} of {}", marker.host),
        };
        match (is_of, writing) {
            (true, true) => {
                return Err(Error::new(ErrorKind::AlreadyExists, "open", waits).target(container.display()).hint(format!(
                    "hyperslab recover {folder}, which brings them into the file (or --discard, which throws them away)"
                )));
            }
            (true, false) => warnings.push(format!(
                "{}: {waits}, and the file lacks them; run hyperslab recover {folder}",
                container.display()
            )),
            // A recovery will refuse to apply them to this file.
            (false, _) => warnings.push(format!(
                "{}: logs of an earlier file of this name wait in {folder}; see hyperslab recover {folder}",
                container.display()
            )),
        }
    }
    Ok(warnings)
}

/// The directories in which logs of dead processes wait for this very container, wherever it is now, and whether they are there:
/// one that is gone was moved or removed.
pub fn waiting(container: &Path) -> Vec<(PathBuf, bool)> {
    let of_it = markers(container).into_iter().filter(|marker| marker.is_of(container));
    let each = of_it.filter_map(|marker| match (marker.log(), marker.directory.exists()) {
        (Log::Waits, _) => Some((marker.directory, true)),
        (Log::Gone, false) => Some((marker.directory, false)),
        _ => None,
    });
    each.collect()
}

/// Removes markers of a job, which is recovered.
pub(crate) fn remove_of(container: &Path, job: Id) {
    markers(container).iter().filter(|marker| marker.job == job).for_each(|marker| marker.take_away(container));
}

/// Removes the markers of a container whose logs nobody uses, wherever these are. For users who know that they are not wanted.
/// Returns where the logs were that could not be looked at.
pub fn unmark(container: &Path) -> Vec<PathBuf> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    let mut unknown = Vec::new();
    for marker in markers(&real) {
        match marker.log() {
            Log::InUse | Log::Waits => continue,
            Log::Unknown => unknown.push(marker.directory.clone()),
            Log::Gone => {}
        }
        marker.take_away(&real);
    }
    unknown
}

/// Throws away the logs of a container that wait, and its markers. For whoever removes or replaces the container.
pub fn discard(container: &Path) -> Result<()> {
    let real = container.canonicalize().unwrap_or_else(|_| container.to_path_buf());
    markers(container).iter().try_for_each(|marker| marker.discard(&real).map(drop))
}
