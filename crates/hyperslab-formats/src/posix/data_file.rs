//! A file of raw elements: complete transfers at offsets, through the page cache or by `O_DIRECT`.

use super::buffer_pool::BufferPool;
use hyperslab_core::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How to open a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Write access; created if missing.
    Make,
}

/// An open data file. Offsets are those of the array's bytes.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    /// The same file with `O_DIRECT`.
    direct: Option<File>,
    staging: Arc<BufferPool>,
    path: PathBuf,
    dirty: AtomicBool,
}

impl DataFile {
    /// Opens the file; never follows a symbolic link. With `direct`, fails on file systems without `O_DIRECT`.
    pub fn open(path: &Path, access: Access, direct: bool, staging: &Arc<BufferPool>) -> Result<Self> {
        let open = |flags: i32| {
            let mut options = OpenOptions::new();
            options.read(true).write(access != Access::Read).create(access == Access::Make);
            options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | flags).open(path)
        };
        let fail = |cause| Error::io("open data file", cause).target(path.display());
        let file = open(0).map_err(fail)?;
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(
                Error::new(ErrorKind::Corrupt, "open data file", "it is no regular file").target(path.display())
            );
        }
        let direct = direct.then(|| open(libc::O_DIRECT)).transpose().map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL) => no_direct(path),
            _ => fail(cause),
        })?;
        Ok(Self { file, direct, staging: staging.clone(), path: path.into(), dirty: AtomicBool::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor for I/O through the page cache.
    pub fn buffered(&self) -> &File {
        &self.file
    }

    pub fn len(&self) -> Result<u64> {
        self.file.metadata().map(|about| about.len()).map_err(|cause| self.fail("read size", cause))
    }

    /// Truncates the file, or extends it with zeros.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.dirty.store(true, Ordering::Relaxed);
        self.file.set_len(len).map_err(|cause| self.fail("set size", cause))
    }

    /// Allocates space for the first `len` bytes.
    pub fn reserve(&self, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), 0, len) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::OPNOTSUPP) => {
                    return Err(Error::unsupported("reserve space", "this file system cannot reserve space")
                        .target(self.path.display())
                        .hint("leave out preallocate=yes"));
                }
                other => return other.map_err(|cause| self.fail("reserve space", cause.into())),
            }
        }
    }

    /// Writes all of `bytes` at `offset`.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let result = match &self.direct {
            None => self.write_all(&self.file, bytes, offset).map_err(|cause| self.fail("write", cause)),
            Some(direct) => self.write_around_cache(direct, bytes, offset),
        };
        // After the write, so that a concurrent flush cannot clear the flag for bytes it has not synced.
        self.dirty.store(true, Ordering::Release);
        result
    }

    /// Writes through the page cache even if the file is open for `O_DIRECT`. For partly changed blocks.
    pub fn write_cached(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let result = self.write_all(&self.file, bytes, offset).map_err(|cause| self.fail("write", cause));
        self.dirty.store(true, Ordering::Release);
        result
    }

    /// Fills `bytes` from `offset`. The file must be long enough.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        match &self.direct {
            None => self.read_cached(bytes, offset),
            Some(direct) => self.read_around_cache(direct, bytes, offset),
        }
    }

    /// Reads through the page cache even if the file is open for `O_DIRECT`.
    pub fn read_cached(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let got = self.read_up_to(&self.file, bytes, offset, 1).map_err(|cause| self.fail("read", cause))?;
        if got < bytes.len() { Err(self.too_short(offset + got as u64)) } else { Ok(()) }
    }

    /// Makes writes since the last call durable.
    pub fn sync(&self) -> Result<()> {
        if !self.dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.file.sync_data().map_err(|cause| {
            self.dirty.store(true, Ordering::Relaxed);
            self.fail("flush", cause)
        })
    }

    /// Whether there are writes that [`DataFile::sync`] has not made durable.
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Complete blocks are written by `O_DIRECT`. Partly covered blocks go through the page cache, where the kernel
    /// merges concurrent writers; it writes such pages back before a direct transfer of the same blocks.
    fn write_around_cache(&self, direct: &File, bytes: &[u8], offset: u64) -> Result<()> {
        let align = self.staging.align();
        let head = (offset.next_multiple_of(align as u64) - offset).min(bytes.len() as u64) as usize;
        let whole = (bytes.len() - head) / align * align;
        let (head, rest) = bytes.split_at(head);
        let (whole, tail) = rest.split_at(whole);
        let whole_at = offset + head.len() as u64;
        let fail = |cause: io::Error| self.fail_direct("write", cause);
        self.write_all(&self.file, head, offset).map_err(fail)?;
        if (whole.as_ptr() as usize).is_multiple_of(align) {
            self.write_all(direct, whole, whole_at).map_err(fail)?;
        } else {
            let mut buffer = self.staging.take(self.block_buffer(whole.len()));
            let mut at = whole_at;
            for part in whole.chunks(buffer.len().max(1)) {
                buffer[..part.len()].copy_from_slice(part);
                self.write_all(direct, &buffer[..part.len()], at).map_err(fail)?;
                at += part.len() as u64;
            }
        }
        self.write_all(&self.file, tail, whole_at + whole.len() as u64).map_err(fail)
    }

    fn read_around_cache(&self, direct: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
        let align = self.staging.align() as u64;
        let fail = |cause: io::Error| self.fail_direct("read", cause);
        let fits = |n: u64| n.is_multiple_of(align);
        if fits(offset) && fits(bytes.len() as u64) && fits(bytes.as_ptr() as u64) {
            let got = self.read_up_to(direct, bytes, offset, align as usize).map_err(fail)?;
            return if got < bytes.len() { Err(self.too_short(offset + got as u64)) } else { Ok(()) };
        }
        let end = offset + bytes.len() as u64;
        let first = offset / align * align;
        let mut buffer = self.staging.take(self.block_buffer((end.next_multiple_of(align) - first) as usize));
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let block = at / align * align;
            let skip = (at - block) as usize;
            let want = (skip + bytes.len() - done).next_multiple_of(align as usize).min(buffer.len());
            let got = self.read_up_to(direct, &mut buffer[..want], block, align as usize).map_err(fail)?;
            let useful = got.saturating_sub(skip).min(bytes.len() - done);
            if useful == 0 {
                return Err(self.too_short(block + got as u64));
            }
            bytes[done..done + useful].copy_from_slice(&buffer[skip..skip + useful]);
            done += useful;
        }
        Ok(())
    }

    fn write_all(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        let by_ring = self.staging.ring().and_then(|ring| ring.write(file, bytes, offset));
        by_ring.unwrap_or_else(|| write_all_at(file, bytes, offset))
    }

    fn read_up_to(&self, file: &File, bytes: &mut [u8], offset: u64, unit: usize) -> io::Result<usize> {
        let by_ring = self.staging.ring().and_then(|ring| ring.read(file, bytes, offset, unit));
        by_ring.unwrap_or_else(|| read_up_to(file, bytes, offset, unit))
    }

    /// Buffer length for `len` bytes: complete blocks, no more than needed.
    fn block_buffer(&self, len: usize) -> usize {
        let align = self.staging.align();
        let largest = (self.staging.size() / align * align).max(align);
        len.next_multiple_of(align).clamp(align, largest)
    }

    fn too_short(&self, end: u64) -> Error {
        Error::new(ErrorKind::Corrupt, "read", format!("the data file ends at byte {end}, before the array does"))
            .target(self.path.display())
    }

    pub fn fail(&self, operation: &'static str, cause: io::Error) -> Error {
        Error::io(operation, cause).target(self.path.display())
    }

    fn fail_direct(&self, operation: &'static str, cause: io::Error) -> Error {
        match cause.raw_os_error() {
            Some(libc::EINVAL) => no_direct(&self.path),
            _ => self.fail(operation, cause),
        }
    }
}

fn no_direct(path: &Path) -> Error {
    Error::unsupported("open data file", "this file system cannot go around the page cache (O_DIRECT)")
        .target(path.display())
        .hint("use direct=no, or a directory on another file system")
}

/// Writes all bytes; continues after short writes and interruptions.
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// Reads until `bytes` is full or the file ends; continues after short reads and interruptions. Returns the bytes read.
/// A read that is not a multiple of `unit` bytes means the end of the file.
fn read_up_to(file: &File, bytes: &mut [u8], offset: u64, unit: usize) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                if !n.is_multiple_of(unit) {
                    break;
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(done)
}
