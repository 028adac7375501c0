//! A segment file stored in blocks of a node file.

use super::super::storage::{Lock, LogFile};
use super::block::{self, BLOCK, HEAD, PAYLOAD};
use super::node_file::NodeFile;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Its space is freed once it is removed and nobody has it open.
#[derive(Debug)]
pub struct Blocks {
    shared: Arc<NodeFile>,
    name: String,
    /// Block numbers, in the order of the segment file.
    numbers: Mutex<Vec<u64>>,
    forgotten: AtomicBool,
}

impl Blocks {
    /// Creates a segment file, visible from now on.
    pub fn create(shared: Arc<NodeFile>, name: &str) -> io::Result<Self> {
        let blocks =
            Self { shared, name: name.to_owned(), numbers: Mutex::default(), forgotten: AtomicBool::new(false) };
        blocks.number(0)?;
        Ok(blocks)
    }

    /// Opens an existing segment file.
    pub fn found(shared: Arc<NodeFile>, numbers: Vec<u64>) -> Self {
        Self { shared, name: String::new(), numbers: Mutex::new(numbers), forgotten: AtomicBool::new(false) }
    }

    fn numbers(&self) -> MutexGuard<'_, Vec<u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a block; allocates it and missing ones before it.
    fn number(&self, index: u64) -> io::Result<u64> {
        let mut numbers = self.numbers();
        while numbers.len() as u64 <= index {
            let head = block::encode(&self.name, numbers.len() as u64).ok_or(io::ErrorKind::InvalidFilename)?;
            let number = self.shared.take()?;
            self.shared.file.write_all_at(&head, number * BLOCK)?;
            numbers.push(number);
        }
        Ok(numbers[index as usize])
    }

    /// Removes the segment file. The first block goes first: without it the others are ignored.
    pub fn forget(&self) -> io::Result<()> {
        self.numbers().iter().try_for_each(|number| self.shared.file.write_all_at(&[0; HEAD], number * BLOCK))?;
        self.forgotten.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if self.forgotten.load(Ordering::Acquire) && !self.shared.is_a_copy() {
            // Space that cannot be freed now is freed with the node file.
            self.numbers().iter().for_each(|number| drop(self.shared.clear(number * BLOCK, BLOCK)));
        }
    }
}

/// Part of a transfer within one block: offset in the node file, and length.
fn place(number: u64, offset: u64, wanted: usize) -> (u64, usize) {
    let within = offset % PAYLOAD;
    (number * BLOCK + HEAD as u64 + within, wanted.min((PAYLOAD - within) as usize))
}

impl LogFile for Blocks {
    fn write_at(&self, parts: &[IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        for part in parts {
            let mut rest: &[u8] = part;
            while !rest.is_empty() {
                let (at, len) = place(self.number(offset / PAYLOAD)?, offset, rest.len());
                self.shared.file.write_all_at(&rest[..len], at)?;
                rest = &rest[len..];
                offset += len as u64;
            }
        }
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], mut offset: u64) -> io::Result<usize> {
        let (total, mut done) = (into.len(), 0);
        while done < total {
            let Some(number) = self.numbers().get((offset / PAYLOAD) as usize).copied() else { break };
            let (at, len) = place(number, offset, total - done);
            let part = &mut into[done..done + len];
            part.fill(0);
            let mut got = 0;
            while got < len {
                match self.shared.file.read_at(&mut part[got..], at + got as u64) {
                    // Never written, or the end of the file: zeros.
                    Ok(0) => break,
                    Ok(read) => got += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            done += len;
            offset += len as u64;
        }
        Ok(done)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut numbers = self.numbers();
        let kept = len.div_ceil(PAYLOAD).max(1) as usize;
        while numbers.len() > kept
            && let Some(last) = numbers.last()
        {
            self.shared.clear(last * BLOCK, BLOCK)?;
            numbers.pop();
        }
        if numbers.len() == kept
            && let Some(last) = numbers.last()
        {
            let used = len - (kept as u64 - 1) * PAYLOAD;
            if used < PAYLOAD {
                self.shared.clear(last * BLOCK + HEAD as u64 + used, PAYLOAD - used)?;
            }
        }
        Ok(())
    }

    /// The length is that of whole blocks; unwritten bytes are zero.
    fn len(&self) -> io::Result<u64> {
        Ok(self.numbers().len() as u64 * PAYLOAD)
    }

    fn sync(&self) -> io::Result<()> {
        self.shared.sync()
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        self.shared.file.metadata()?.modified().map(Some)
    }

    fn lock(&self) -> io::Result<Lock> {
        Ok(Lock::Unsupported)
    }
}
