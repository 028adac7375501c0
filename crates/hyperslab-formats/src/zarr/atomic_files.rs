//! Files of a store: replaced atomically, read within bounds, synced by durable flushes.

use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as Os, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Suffix of temporary files. A crash may leave one behind; it is never read.
pub const PARTIAL: &str = ".partial";

/// A durable flush of more changed files than this syncs the whole store.
const MOST_REMEMBERED: usize = 1 << 16;

/// Writes files of a store for one rank, and tracks those that are not durable yet.
#[derive(Debug)]
pub struct AtomicFiles {
    root: PathBuf,
    write_empty: bool,
    changed: Mutex<Changed>,
}

#[derive(Debug, Default)]
struct Changed {
    files: BTreeSet<PathBuf>,
    everything: bool,
}

impl AtomicFiles {
    /// For the store at `root`. `write_empty`: chunks that hold only fill values get a file.
    pub fn new(root: PathBuf, write_empty: bool) -> Self {
        Self { root, write_empty, changed: Mutex::default() }
    }

    /// Whether chunks that hold only fill values get a file.
    pub fn write_empty(&self) -> bool {
        self.write_empty
    }

    /// The directory of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Atomically replaces the file by the concatenation of `parts`, creating directories. Readers see the old or the
    /// new file.
    pub fn replace(&self, path: &Path, parts: &[&[u8]]) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{:x}-{:x}{PARTIAL}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let temporary = PathBuf::from(temporary);
        let write = || -> std::io::Result<()> {
            let mut file = create_with_directories(&temporary)?;
            for part in parts {
                file.write_all(part)?;
            }
            drop(file);
            fs::rename(&temporary, path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            Error::io("write", error).target(path.display())
        })?;
        self.remember(path);
        Ok(())
    }

    /// Removes the file if it is there.
    pub fn remove(&self, path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Ok(()) => {
                self.remember(path);
                Ok(())
            }
            Err(error) if error.kind() == Os::NotFound => Ok(()),
            Err(error) => Err(Error::io("remove", error).target(path.display())),
        }
    }

    /// Adds the file to the next durable flush.
    pub fn remember(&self, path: &Path) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.everything {
            return;
        }
        changed.files.insert(path.to_owned());
        if changed.files.len() > MOST_REMEMBERED {
            changed.files.clear();
            changed.everything = true;
        }
    }

    /// Makes all changes of this rank durable. After an error a later call retries them.
    pub fn sync(&self) -> Result<()> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut directories = BTreeSet::new();
        if changed.everything {
            for path in super::store_dir::regular_files(&self.root)? {
                sync_file(&path)?;
                self.add_directories(&path, &mut directories);
            }
        } else {
            for path in &changed.files {
                sync_file(path)?;
                self.add_directories(path, &mut directories);
            }
        }
        for directory in directories {
            sync_file(&directory)?;
        }
        *changed = Changed::default();
        Ok(())
    }

    /// The directories from the file up to the one that holds the store.
    fn add_directories(&self, path: &Path, out: &mut BTreeSet<PathBuf>) {
        let mut directory = path.parent();
        while let Some(at) = directory {
            let known = !out.insert(at.to_owned());
            if known || !at.starts_with(&self.root) {
                break;
            }
            directory = at.parent();
        }
    }
}

fn create_with_directories(path: &Path) -> std::io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match (create(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == Os::NotFound => {
            fs::create_dir_all(parent)?;
            create()
        }
        (result, _) => result,
    }
}

/// Syncs a file or directory; what has been removed since needs no sync of its own.
fn sync_file(path: &Path) -> Result<()> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Err(error) if error.kind() != Os::NotFound => Err(Error::io("flush", error).target(path.display())),
        _ => Ok(()),
    }
}

/// Opens a file for reading and says how long it is; `None` when it is not there.
pub fn open(path: &Path) -> Result<Option<(File, u64)>> {
    let opened = File::open(path).and_then(|file| file.metadata().map(|meta| (file, meta)));
    match opened {
        Ok((file, meta)) if meta.is_file() => Ok(Some((file, meta.len()))),
        Ok(_) => Err(Error::new(ErrorKind::Corrupt, "read", "not a regular file").target(path.display())),
        // A file where a directory should be leaves nothing below it.
        Err(error) if matches!(error.kind(), Os::NotFound | Os::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("read", error).target(path.display())),
    }
}

/// The whole file, refused when it has more than `limit` bytes; `None` when it is not there.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    let Some((file, len)) = open(path)? else { return Ok(None) };
    let too_long = || {
        let message = format!("{len} bytes where at most {limit} make sense");
        Error::new(ErrorKind::Corrupt, "read", message).target(path.display())
    };
    if len > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(len as usize);
    // One more than the limit shows a file that grew meanwhile.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::io("read", e).target(path.display()))?;
    if bytes.len() as u64 > limit {
        return Err(too_long());
    }
    Ok(Some(bytes))
}
