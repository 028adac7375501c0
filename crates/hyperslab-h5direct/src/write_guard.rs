//! Hook around every direct write to the file.

use std::fmt::Debug;
use std::io;

/// Executes direct writes, for instance after saving the overwritten bytes in a journal. Called by several threads.
pub trait WriteGuard: Debug + Send + Sync {
    /// Executes a write of `bytes` bytes at offset `at`. Calls `write` at most once, and fails if that fails.
    fn guarded(&self, at: u64, bytes: u64, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// Elements may have moved in the file.
    fn relocated(&self);
}
