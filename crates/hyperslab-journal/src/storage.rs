//! Storage traits of a journal: [`JournalStorage`], a directory, and [`LogFile`], an open file. Tests substitute faulty ones.

use std::fmt::Debug;
use std::io::{IoSlice, IoSliceMut, Result};
use std::sync::Arc;
use std::time::SystemTime;

/// A directory that holds the files of journals.
pub trait JournalStorage: Send + Sync + Debug {
    /// Creates a file that must not exist, accessible to this user only.
    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>>;
    /// Creates such a file with direct I/O, if supported: the second value says whether it is. With direct I/O a write zeroes
    /// the bytes after it, up to the next block of 4096 bytes.
    fn create_direct(&self, name: &str) -> Result<(Arc<dyn LogFile>, bool)> {
        self.create(name).map(|file| (file, false))
    }
    /// Opens a file of this user; refuses links and files of other users.
    fn open(&self, name: &str) -> Result<Arc<dyn LogFile>>;
    /// Renames a file atomically.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> Result<()>;
    /// The names of all files, in any order.
    fn list(&self) -> Result<Vec<String>>;
    /// Makes earlier creations, renames and removals durable.
    fn sync_directory(&self) -> Result<()>;
    /// Opens the directory itself, which a recovery locks.
    fn whole(&self) -> Result<Arc<dyn LogFile>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    /// The path of the directory, for messages.
    fn place(&self) -> String;
}

/// Result of an attempt to lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Locked until the file is closed.
    Taken,
    /// Another process holds the lock.
    Busy,
    /// The file system has no locks.
    Unsupported,
}

/// An open file of a journal.
pub trait LogFile: Send + Sync + Debug {
    /// Writes all parts contiguously from `offset`.
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()>;
    /// Reads until `into` is full or the file ends; returns the number of bytes read.
    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize>;
    /// Reads contiguous bytes into `parts` until they are full or the file ends; returns the number of bytes read.
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
    /// Preallocates storage for a byte range without changing the length of the file, which makes writing it faster.
    /// Optional.
    fn reserve(&self, _offset: u64, _len: u64) -> Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    /// Sets the length of the file, and frees storage preallocated beyond it.
    fn truncate(&self, len: u64) -> Result<()>;
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> Result<bool> {
        self.len().map(|len| len == 0)
    }
    /// Makes the data and length of the file durable.
    fn sync(&self) -> Result<()>;
    /// Time of the last modification, if known.
    fn modified(&self) -> Result<Option<SystemTime>> {
        Ok(None)
    }
    /// Device and inode number, if there are any.
    fn inode(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }
    /// Tries to lock the file exclusively; never blocks.
    fn lock(&self) -> Result<Lock>;
}
