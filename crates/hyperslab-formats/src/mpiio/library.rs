//! The MPI library as a whole: whether it runs, and whose turn it is.

use hyperslab_core::{Error, Result};
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn flag(ask: unsafe extern "C" fn(*mut c_int) -> c_int) -> bool {
    let mut answer = 0;
    // SAFETY: the two functions passed here may be called at any time, and write one integer.
    unsafe { ask(&raw mut answer) };
    answer != 0
}

/// Whether MPI has been started and not yet ended.
pub(super) fn running() -> bool {
    flag(mpi_sys::MPI_Initialized) && !flag(mpi_sys::MPI_Finalized)
}

/// Refuses to go on when MPI does not run.
pub(super) fn check_running(operation: &'static str) -> Result<()> {
    if running() {
        return Ok(());
    }
    Err(Error::unsupported(operation, "MPI does not run in this process")
        .backend("mpiio")
        .hint("run under mpirun with --launcher mpi, or use posix, which stores the same files"))
}

/// Held during calls of MPI where the library allows only one at a time; nothing where threads may call as they like.
pub(super) fn turn() -> Option<MutexGuard<'static, ()>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let mut level = 0;
    // SAFETY: MPI runs, as callers check first; one integer is written.
    let free = unsafe {
        mpi_sys::MPI_Query_thread(&raw mut level);
        level >= mpi_sys::RSMPI_THREAD_MULTIPLE
    };
    (!free).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The name and version that the MPI library gives itself.
pub fn library_version() -> String {
    let mut text = vec![0 as c_char; mpi_sys::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the function may be called at any time; the buffer has the length it asks for, and one more.
    unsafe { mpi_sys::MPI_Get_library_version(text.as_mut_ptr(), &raw mut len) };
    let bytes: Vec<u8> = text.iter().take(usize::try_from(len).unwrap_or(0)).map(|c| *c as u8).collect();
    // One line: MPICH adds how it was configured.
    let text = String::from_utf8_lossy(&bytes);
    text.lines().next().unwrap_or_default().trim_end_matches('\0').split_whitespace().collect::<Vec<_>>().join(" ")
}
