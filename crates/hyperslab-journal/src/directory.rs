//! [`JournalStorage`] in a directory of the file system. Files are private: created exclusively, mode 0600, never through
//! links.

use super::direct_io::DirectFile;
use super::storage::{JournalStorage, Lock, LogFile};
use hyperslab_core::{Error, Result};
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Maximum number of parts of one vectored system call.
const MOST_PARTS: usize = 1024;

/// An open directory, checked to be safe for journals.
#[derive(Debug)]
pub struct Directory {
    folder: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens an existing directory. Refuses one in which other users could replace files: it must belong to this user, or
    /// to root with the sticky bit, and need the sticky bit if it is writable for others.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |cause: Errno| super::failed("open journal directory", path.display(), cause.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|cause| match cause {
            Errno::NOENT => failed(cause).hint("create it, on storage that is fast and local to the node"),
            _ => failed(cause),
        })?;
        let stat = rustix::fs::fstat(&folder).map_err(failed)?;
        let (mode, user) = (Mode::from_raw_mode(stat.st_mode), rustix::process::geteuid().as_raw());
        let sticky = mode.contains(Mode::SVTX);
        let refuse = |message: String| {
            Err(Error::invalid("open journal directory", message)
                .backend("journal")
                .target(path.display())
                .hint("use a directory of your own, such as one made with mkdir -m 700"))
        };
        if stat.st_uid != user && !(stat.st_uid == 0 && sticky) {
            return refuse(format!("it belongs to user {}, who could exchange its files", stat.st_uid));
        }
        if mode.intersects(Mode::WOTH) && !sticky {
            return refuse("every user may exchange its files".into());
        }
        Ok(Self { folder, path: path.to_path_buf() })
    }

    fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Creates a private file exclusively.
    pub(super) fn create_private(&self, name: &str) -> io::Result<File> {
        self.open_at(name, OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file of this user; refuses links and files of other users.
    pub(super) fn open_private(&self, name: &str) -> io::Result<File> {
        let file = self.open_at(name, OFlags::empty()).map_err(|cause| match Errno::from_io_error(&cause) {
            Some(Errno::LOOP) => refused("it is a link"),
            _ => cause,
        })?;
        let about = file.metadata()?;
        if !about.is_file() || about.nlink() > 1 {
            return Err(refused("it is no plain file with one name"));
        }
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(refused(format!("it belongs to user {}", about.uid())));
        }
        if about.mode() & 0o077 != 0 {
            return Err(refused(format!("other users may access it (mode {:o})", about.mode() & 0o7777)));
        }
        Ok(file)
    }
}

impl JournalStorage for Directory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(Arc::new(Stored::new(self.open_at(name, OFlags::CREATE | OFlags::EXCL)?)))
    }

    fn create_direct(&self, name: &str) -> io::Result<(Arc<dyn LogFile>, bool)> {
        let cached = self.open_at(name, OFlags::CREATE | OFlags::EXCL)?;
        let same = |direct: &File| {
            let (one, other) = (cached.metadata()?, direct.metadata()?);
            io::Result::Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
        };
        Ok(match self.open_at(name, OFlags::DIRECT) {
            Ok(direct) if same(&direct)? => (Arc::new(DirectFile::new(Stored::new(cached), direct)), true),
            // No direct I/O here, or the file was replaced: the first descriptor is ours.
            _ => (Arc::new(Stored::new(cached)), false),
        })
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(Arc::new(Stored::new(self.open_private(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder)? {
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.folder)?)
    }

    fn whole(&self) -> io::Result<Arc<dyn LogFile>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.folder, ".", flags, Mode::empty())?;
        Ok(Arc::new(Stored::new(folder.into())))
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.into())
}

/// An open file, and the id of the process that locked it, or 0.
#[derive(Debug)]
pub(super) struct Stored(File, AtomicU32);

impl Stored {
    fn new(file: File) -> Self {
        Self(file, AtomicU32::new(0))
    }
}

impl Drop for Stored {
    /// Unlocks explicitly: after a close alone, a forked child that inherited the descriptor would keep the lock. A child
    /// must not unlock it.
    fn drop(&mut self) {
        if self.1.load(Ordering::Acquire) == std::process::id() {
            let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
        }
    }
}

impl LogFile for Stored {
    fn write_at(&self, parts: &[IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        if let [part] = parts {
            return self.0.write_all_at(part, offset);
        }
        for parts in parts.chunks(MOST_PARTS) {
            let total: usize = parts.iter().map(|part| part.len()).sum();
            let mut done = match rustix::io::pwritev(&self.0, parts, offset) {
                Ok(done) => done,
                Err(Errno::INTR) => 0,
                Err(error) => return Err(error.into()),
            };
            if done < total {
                // Short write, rare: writes the rest part by part.
                let mut skip = done;
                for part in parts {
                    let left = part.get(skip..).unwrap_or_default();
                    skip = skip.saturating_sub(part.len());
                    self.0.write_all_at(left, offset + done as u64)?;
                    done += left.len();
                }
            }
            offset += total as u64;
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn read_parts_at(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        for parts in parts.chunks_mut(MOST_PARTS) {
            let total: usize = parts.iter().map(|part| part.len()).sum();
            match rustix::io::preadv(&self.0, parts, offset + done as u64) {
                Ok(read) if read == total => done += total,
                Ok(_) | Err(Errno::INTR) => {
                    // Short read, rare, or the end of the file: reads part by part.
                    for part in parts {
                        let read = self.read_at(part, offset + done as u64)?;
                        done += read;
                        if read < part.len() {
                            return Ok(done);
                        }
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(&self.0, FallocateFlags::KEEP_SIZE, offset, len)?)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|about| about.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        self.0.metadata()?.modified().map(Some)
    }

    fn inode(&self) -> io::Result<Option<(u64, u64)>> {
        self.0.metadata().map(|about| Some((about.dev(), about.ino())))
    }

    fn lock(&self) -> io::Result<Lock> {
        loop {
            return match rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    self.1.store(std::process::id(), Ordering::Release);
                    Ok(Lock::Taken)
                }
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => Ok(Lock::Busy),
                Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => Ok(Lock::Unsupported),
                Err(error) => Err(error.into()),
            };
        }
    }
}
