//! Positioned I/O.

use crate::write_guard::WriteGuard;
use hyperslab_core::{Error, ErrorKind, Result};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate, fstatfs};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

/// The kind of file systems in memory (statfs(2)).
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Fills the buffer from a place in the file. Beyond the end of the file there are zeros, as the library would read: space
/// that was allocated and never written.
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

/// Writes the whole buffer to a place in the file, through the guard if there is one.
pub(crate) fn write(file: &File, guard: Option<&dyn WriteGuard>, buffer: &[u8], at: u64) -> Result<()> {
    let mut write = || file.write_all_at(buffer, at);
    match guard {
        Some(guard) => guard.guarded(at, buffer.len() as u64, &mut write),
        None => write(),
    }
    .map_err(|e| Error::io("write", e))
}

/// Fills the buffer from a place in the file if all of it is in the page cache, so that nothing waits for a device. Whether it
/// did; `None` where the system cannot tell.
pub(crate) fn read_cached(file: &File, buffer: &mut [u8], at: u64) -> Option<bool> {
    let bytes = buffer.len();
    match preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT) {
        Ok(read) => Some(read == bytes),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// Asks the system to read something that will be wanted soon. Only a hint.
pub(crate) fn will_need(file: &File, at: u64, bytes: u64) {
    let _ = fadvise(file, at, std::num::NonZeroU64::new(bytes), Advice::WillNeed);
}

/// Whether the file is kept in memory alone, where finding pages is most of the work of a write.
pub(crate) fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|system| system.f_type == TMPFS)
}

/// Takes room for some bytes of the file, which stay what they are. Whether that was done.
pub(crate) fn reserve_blocks(file: &File, at: u64, bytes: u64) -> bool {
    fallocate(file, FallocateFlags::KEEP_SIZE, at, bytes).is_ok()
}

/// A buffer whose size comes from a file or a caller.
pub(crate) fn buffer(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = reserved(bytes)?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// An empty buffer with room for so many bytes.
pub(crate) fn reserved(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer
        .try_reserve_exact(bytes)
        .map_err(|e| Error::new(ErrorKind::Io, "allocate buffer", format!("{bytes} bytes: {e}")))?;
    Ok(buffer)
}
