//! A node file and its lock.

use super::super::directory::Directory;
use super::block::{self, BLOCK, HEAD};
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open node file. Writers hold a shared lock; the last one removes the file if it is empty.
#[derive(Debug)]
pub struct NodeFile {
    pub file: File,
    name: String,
    directory: Arc<Directory>,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    rank: u64,
    ranks: u64,
    /// Number of blocks allocated by this rank.
    taken: AtomicU64,
    process: u32,
}

impl NodeFile {
    pub fn join(directory: Arc<Directory>, file: File, name: &str, rank: usize, ranks: usize) -> io::Result<Self> {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            // Without locks the file stays if a rank dies, and must be removed by hand.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(cause) => return Err(cause.into()),
        }
        let writer = Writer {
            rank: rank as u64,
            ranks: ranks.max(1) as u64,
            taken: AtomicU64::new(0),
            process: std::process::id(),
        };
        Ok(Self { file, name: name.to_owned(), directory, writer: Some(writer) })
    }

    /// Opens the node file of another process for reading.
    pub fn look_into(directory: Arc<Directory>, file: File, name: &str) -> Self {
        Self { file, name: name.to_owned(), directory, writer: None }
    }

    /// Whether the caller is a forked child of the owner.
    pub fn is_a_copy(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.process != std::process::id())
    }

    /// Allocates the next block of this rank.
    pub fn take(&self) -> io::Result<u64> {
        let writer = self.writer.as_ref().ok_or_else(|| io::Error::other("it is open for reading only"))?;
        Ok(writer.taken.fetch_add(1, Ordering::AcqRel) * writer.ranks + writer.rank)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Frees a byte range, which reads as zeros from then on.
    pub fn clear(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let zeros = [0; 1 << 16];
                let mut at = 0;
                while at < len {
                    let now = (len - at).min(zeros.len() as u64);
                    self.file.write_all_at(&zeros[..now as usize], offset + at)?;
                    at += now;
                }
                Ok(())
            }
            done => Ok(done?),
        }
    }

    /// The segments in the file, with their blocks up to the first missing one.
    pub fn scan(&self) -> io::Result<BTreeMap<String, Vec<u64>>> {
        let mut found: HashMap<String, BTreeMap<u64, u64>> = HashMap::new();
        let len = self.file.metadata()?.len();
        let mut number: u64 = 0;
        while number.saturating_mul(BLOCK) < len {
            // Skips holes; scans block by block if the file system does not report them.
            match rustix::fs::seek(&self.file, SeekFrom::Data(number * BLOCK)) {
                Ok(data) => number = number.max(data / BLOCK),
                Err(Errno::NXIO) => break,
                Err(_) => {}
            }
            let mut head = [0; HEAD];
            if self.file.read_exact_at(&mut head, number * BLOCK).is_ok()
                && let Some((name, index)) = block::decode(&head)
            {
                found.entry(name.to_owned()).or_default().entry(index).or_insert(number);
            }
            number += 1;
        }
        let whole = |blocks: BTreeMap<u64, u64>| -> Vec<u64> {
            (0..)
                .zip(blocks)
                .take_while(|(expected, (index, _))| expected == index)
                .map(|(_, (_, number))| number)
                .collect()
        };
        let named = found.into_iter().map(|(name, blocks)| (name, whole(blocks)));
        Ok(named.filter(|(_, numbers)| !numbers.is_empty()).collect())
    }

    /// Removes the file if it has no writers and is empty.
    pub fn remove_if_empty(&self) {
        let alone = rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if alone && self.scan().is_ok_and(|found| found.is_empty()) {
            // Best effort: an empty file that stays does no harm.
            let _ = super::JournalStorage::remove(&*self.directory, &self.name);
        }
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl Drop for NodeFile {
    fn drop(&mut self) {
        if self.writer.is_some() && !self.is_a_copy() {
            // Release the shared lock before trying the exclusive one: of several ranks that leave at once, the last
            // succeeds.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
            self.remove_if_empty();
        }
    }
}
