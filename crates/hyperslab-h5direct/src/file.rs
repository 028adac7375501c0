//! Positioned I/O.

use crate::write_guard::WriteGuard;
use hyperslab_core::{Error, ErrorKind, Result};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

/// File system type of tmpfs, see statfs(2).
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Fills the buffer from offset `at`. Bytes beyond the end of the file are zeros, as libhdf5 reads space that was
/// allocated and never written.
pub(crate) fn read(file: &File, mut buffer: &mut [u8], mut at: u64) -> Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, at) {
            Ok(0) => {
                buffer.fill(0);
                return Ok(());
            }
            Ok(n) => {
                buffer = &mut buffer[n..];
                at += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", e)),
        }
    }
    Ok(())
}

/// Writes the whole buffer at offset `at`, through the guard if there is one.
pub(crate) fn write(file: &File, guard: Option<&dyn WriteGuard>, buffer: &[u8], at: u64) -> Result<()> {
    let mut write = || file.write_all_at(buffer, at);
    match guard {
        Some(guard) => guard.guarded(at, buffer.len() as u64, &mut write),
        None => write(),
    }
    .map_err(|e| Error::io("write", e))
}

/// Fills the buffer from offset `at` if all of it is in the page cache, without blocking. Returns whether it did;
/// `None` if the file system does not support that.
pub(crate) fn read_cached(file: &File, buffer: &mut [u8], at: u64) -> Option<bool> {
    let bytes = buffer.len();
    match preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT) {
        Ok(read) => Some(read == bytes),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// Asks the kernel to prefetch a range. Only a hint.
pub(crate) fn will_need(file: &File, at: u64, bytes: u64) {
    let _ = fadvise(file, at, std::num::NonZeroU64::new(bytes), Advice::WillNeed);
}

/// Whether the file is on tmpfs, where allocating pages dominates the cost of a write.
pub(crate) fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| system.f_type == TMPFS)
}

/// Allocates space for a range of the file without changing its content; returns whether it succeeded.
pub(crate) fn reserve_blocks(file: &File, at: u64, bytes: u64) -> bool {
    fallocate(file, FallocateFlags::KEEP_SIZE, at, bytes).is_ok()
}

/// A zeroed buffer; fails instead of aborting if memory is short, since the size may come from a file.
pub(crate) fn buffer(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = reserved(bytes)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// An empty buffer with this capacity; fails instead of aborting if memory is short.
pub(crate) fn reserved(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer
        .try_reserve_exact(bytes)
        .map_err(|e| Error::new(ErrorKind::Io, "allocate buffer", format!("{bytes} bytes: {e}")))?;
    Ok(buffer)
}
