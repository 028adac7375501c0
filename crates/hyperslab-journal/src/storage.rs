//! What a journal needs of the storage it lies on. Tests put other things in its place.

use std::fmt::Debug;
use std::io::{IoSlice, IoSliceMut, Result};
use std::sync::Arc;
use std::time::SystemTime;

/// A directory of files.
pub trait JournalStorage: Send + Sync + Debug {
    /// Creates a file that must not exist, for this user alone.
    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>>;
    /// Creates such a file for writes past the cache of the kernel, if that can be had: the second value says so. Then what
    /// is behind a write, up to the next block of 4096 bytes, becomes zero.
    fn create_direct(&self, name: &str) -> Result<(Arc<dyn LogFile>, bool)> {
        self.create(name).map(|file| (file, false))
    }
    /// Opens a file that this user created; refuses links and files of others.
    fn open(&self, name: &str) -> Result<Arc<dyn LogFile>>;
    /// Gives a file another name, at once and completely.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;
    /// The names of all files, in any order.
    fn list(&self) -> Result<Vec<String>>;
    /// Returns when creating, renaming and removing survive the loss of power.
    fn sync_directory(&self) -> Result<()>;
    /// The directory itself, to be locked by whoever recovers.
    fn whole(&self) -> Result<Arc<dyn LogFile>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    /// Where it is, for people.
    fn place(&self) -> String;
}

/// What became of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It is locked until it is closed.
    Taken,
    /// Someone else has it.
    Busy,
    /// Files cannot be locked there.
    Unsupported,
}

/// An open file.
pub trait LogFile: Send + Sync + Debug {
    /// Writes all of the parts, one behind the other.
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()>;
    /// Reads until `into` is full or the file ends; returns the bytes read.
    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize>;
    /// Reads until all parts are full, one behind the other, or the file ends; returns the bytes read.
    fn read_parts_at(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let mut done = 0;
        for part in parts {
            let read = self.read_at(part, offset + done as u64)?;
            done += read;
            if read < part.len() {
                break;
            }
        }
        Ok(done)
    }
    /// Has the storage keep room for bytes, whether or not the file reaches so far; its length stays. Writing them is
    /// faster then. Not all storage can.
    fn reserve(&self, _offset: u64, _len: u64) -> Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    /// Cuts the file off, and gives room behind its end back.
    fn truncate(&self, len: u64) -> Result<()>;
    /// Its length.
    fn len(&self) -> Result<u64>;
    /// Whether it has no bytes.
    fn is_empty(&self) -> Result<bool> {
        self.len().map(|len| len == 0)
    }
    /// Returns when its bytes survive the loss of power.
    fn sync(&self) -> Result<()>;
    /// When its bytes were changed last; `None` where nobody knows.
    fn modified(&self) -> Result<Option<SystemTime>> {
        Ok(None)
    }
    /// Its device and inode; `None` where there are none.
    fn inode(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }
    /// Locks it for this process, without waiting.
    fn lock(&self) -> Result<Lock>;
}
