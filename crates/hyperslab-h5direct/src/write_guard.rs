//! Who stands before the plane's own writes to the file.

use std::fmt::Debug;
use std::io;

/// Makes the plane's writes, for instance after saving the bytes that are overwritten. Called by several threads.
pub trait WriteGuard: Debug + Send + Sync {
    /// Makes a write of `bytes` bytes at `at`. Calls `write` at most once, and fails if that fails.
    fn guarded(&self, at: u64, bytes: u64, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// Elements may lie elsewhere in the file from now on.
    fn relocated(&self);
}
