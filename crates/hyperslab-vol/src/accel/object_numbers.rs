//! Identity of a file's objects: the numbers by which layers know them.

use super::file::ObjectToken;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Number of objects remembered when nothing is buffered.
const MOST: usize = 1 << 16;
/// Granularity of modification times: closer changes may have equal times.
const GRAIN: Duration = Duration::from_millis(100);

/// The next number, unique in the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Numbers of a file's objects. libhdf5 reuses the token of a deleted object; numbers are never reused.
#[derive(Debug, Default)]
pub(crate) struct ObjectNumbers(Mutex<HashMap<ObjectToken, u64>>);

impl ObjectNumbers {
    /// The number of an object, the same until `renew`.
    pub(crate) fn number(&self, token: ObjectToken) -> u64 {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *numbers.entry(token).or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Assigns new numbers to all objects. Requires that nothing is buffered in layers.
    pub(crate) fn renew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Renews the numbers if there are many. Requires that nothing is buffered in layers.
    pub(crate) fn bound(&self) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.len() > MOST {
            numbers.clear();
        }
    }
}

/// Stamp of a read-only file at the time when data were cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Whether any later change has a different stamp.
    sure: bool,
}

impl FileStamp {
    /// The current stamp; `None` if it cannot be queried.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let about = file.metadata().ok()?;
        let (inode, size, modified) = (about.ino(), about.len(), (about.mtime(), about.mtime_nsec()));
        Some(Self { inode, size, modified, sure: is_old(&about) })
    }

    /// Whether the file has certainly not changed since.
    pub(crate) fn is_still(self, now: Self) -> bool {
        self.sure && (self.inode, self.size, self.modified) == (now.inode, now.size, now.modified)
    }
}

/// Whether the last change is long enough ago that the next one will have a different time.
fn is_old(about: &Metadata) -> bool {
    let since = about.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    since.is_some_and(|since| since > GRAIN)
}
