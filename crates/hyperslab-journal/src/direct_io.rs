//! Direct I/O: writes that bypass the page cache.

use super::directory::Stored;
use super::storage::{Lock, LogFile};
use memmap2::MmapMut;
use rustix::io::Errno;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Result};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Alignment of offsets, lengths and memory.
pub(super) const BLOCK: u64 = 4096;
/// Bytes written at a time.
const BUFFER: usize = 1 << 20;

/// A file written with direct I/O and read through the page cache.
#[derive(Debug)]
pub(super) struct DirectFile {
    cached: Stored,
    direct: File,
    /// Page-aligned; allocated by the first write.
    buffer: Mutex<Option<MmapMut>>,
    /// The device requires another alignment: direct I/O is off.
    refused: AtomicBool,
}

impl DirectFile {
    /// Two descriptors of one file, the second with `O_DIRECT`.
    pub fn new(cached: Stored, direct: File) -> Self {
        let (buffer, refused) = Default::default();
        Self { cached, direct, buffer, refused }
    }

    /// Writes whole blocks.
    fn write_blocks(&self, blocks: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < blocks.len() && !self.refused.load(Ordering::Acquire) {
            match self.direct.write_at(&blocks[done..], offset + done as u64) {
                // An incomplete block is written again.
                Ok(written) if written >= BLOCK as usize => done += written / BLOCK as usize * BLOCK as usize,
                Ok(_) => self.refused.store(true, Ordering::Release),
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) if Errno::from_io_error(&cause) == Some(Errno::INVAL) => {
                    self.refused.store(true, Ordering::Release);
                }
                Err(cause) => return Err(cause),
            }
        }
        match done < blocks.len() {
            true => self.cached.write_at(&[IoSlice::new(&blocks[done..])], offset + done as u64),
            false => Ok(()),
        }
    }
}

impl LogFile for DirectFile {
    /// Zeroes the bytes up to the next block.
    fn write_at(&self, parts: &[IoSlice<'_>], mut offset: u64) -> Result<()> {
        if !offset.is_multiple_of(BLOCK) {
            return self.cached.write_at(parts, offset);
        }
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let buffer = match &mut *buffer {
            Some(buffer) => buffer,
            none => none.insert(MmapMut::map_anon(BUFFER)?),
        };
        let mut held = 0;
        for part in parts {
            let mut part = &**part;
            while !part.is_empty() {
                let (now, later) = part.split_at(part.len().min(BUFFER - held));
                buffer[held..held + now.len()].copy_from_slice(now);
                (held, part) = (held + now.len(), later);
                if held == BUFFER {
                    self.write_blocks(buffer, offset)?;
                    (held, offset) = (0, offset + BUFFER as u64);
                }
            }
        }
        let end = held.next_multiple_of(BLOCK as usize);
        buffer[held..end].fill(0);
        self.write_blocks(&buffer[..end], offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        self.cached.read_at(into, offset)
    }

    fn read_parts_at(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        self.cached.read_parts_at(parts, offset)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.cached.reserve(offset, len)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.cached.truncate(len)
    }

    fn len(&self) -> Result<u64> {
        self.cached.len()
    }

    fn sync(&self) -> Result<()> {
        self.cached.sync()
    }

    fn lock(&self) -> Result<Lock> {
        self.cached.lock()
    }
}
