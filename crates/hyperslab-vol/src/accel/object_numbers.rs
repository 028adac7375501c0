//! Which objects of a file are the same as before: the numbers that layers know them by.

use super::file::ObjectToken;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Objects whose numbers are remembered when nothing waits.
const MOST: usize = 1 << 16;
/// Two changes of a file that are not so far apart may have the same time.
const GRAIN: Duration = Duration::from_millis(100);

/// Never given twice in a process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The numbers of the objects of a file. libhdf5 gives the token of a deleted object to a new one; a number is never given
/// again.
#[derive(Debug, Default)]
pub(crate) struct ObjectNumbers(Mutex<HashMap<ObjectToken, u64>>);

impl ObjectNumbers {
    /// The number of an object, the same until `renew`.
    pub(crate) fn number(&self, token: ObjectToken) -> u64 {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *numbers.entry(token).or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// From now on every object has another number. Nothing may be waiting in layers.
    pub(crate) fn renew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Renews numbers that have become many. Nothing may be waiting in layers.
    pub(crate) fn bound(&self) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.len() > MOST {
            numbers.clear();
        }
    }
}

/// The state of a file that is only read, when something of it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Whether a later change will show.
    sure: bool,
}

impl FileStamp {
    /// As it is now; `None` if the system does not tell.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let about = file.metadata().ok()?;
        let (inode, size, modified) = (about.ino(), about.len(), (about.mtime(), about.mtime_nsec()));
        Some(Self { inode, size, modified, sure: is_old(&about) })
    }

    /// Whether nothing has changed since, for sure.
    pub(crate) fn is_still(self, now: Self) -> bool {
        self.sure && (self.inode, self.size, self.modified) == (now.inode, now.size, now.modified)
    }
}

/// Whether the last change is so long ago that the next one will have another time.
fn is_old(about: &Metadata) -> bool {
    let since = about.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    since.is_some_and(|since| since > GRAIN)
}
