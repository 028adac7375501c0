//! Advisory lock on a byte range of a file, against other ranks and programs.

use super::data_file::DataFile;
use hyperslab_core::{Error, Result};
use std::io;
use std::os::fd::AsRawFd;

/// Holds the lock until dropped. Bound to the open file description, so that thread ranks, each with its own
/// descriptor, exclude each other as processes do.
#[derive(Debug)]
pub(crate) struct RangeLock<'a> {
    file: &'a DataFile,
    offset: u64,
    len: u64,
}

impl<'a> RangeLock<'a> {
    /// Locks `len` bytes at `offset`; blocks while another holder overlaps.
    pub fn wait(file: &'a DataFile, offset: u64, len: u64) -> Result<Self> {
        loop {
            match set(file, libc::F_OFD_SETLKW, libc::F_WRLCK, offset, len) {
                Ok(()) => return Ok(Self { file, offset, len }),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::ENOLCK | libc::EOPNOTSUPP)) => {
                    return Err(Error::unsupported("lock", "this file system cannot lock ranges of a file")
                        .target(file.path().display())
                        .hint("write whole elements, or use another file system")
                        .source(cause));
                }
                Err(cause) => return Err(file.fail("lock", cause)),
            }
        }
    }
}

impl Drop for RangeLock<'_> {
    fn drop(&mut self) {
        // Unlocking what is held cannot fail; closing the file would release it too.
        let _ = set(self.file, libc::F_OFD_SETLK, libc::F_UNLCK, self.offset, self.len);
    }
}

fn set(file: &DataFile, command: libc::c_int, kind: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
    let too_far = |_| io::Error::from_raw_os_error(libc::EOVERFLOW);
    // SAFETY: `flock` is plain data for which all zeros is a valid value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = offset.try_into().map_err(too_far)?;
    range.l_len = len.try_into().map_err(too_far)?;
    // SAFETY: the descriptor is open while `file` lives, and `range` is a valid `flock` for the whole call.
    let answer = unsafe { libc::fcntl(file.buffered().as_raw_fd(), command, &raw const range) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
