//! Temporary files in memory.

use std::path::Path;

/// Puts temporary files into memory, if the system has a folder for that which can do what a disk can: suites of many small
/// files then do not wait for a journal. Call before any thread is started.
pub fn temporary_files_in_memory() {
    let folder = Path::new("/dev/shm");
    let tried = tempfile::NamedTempFile::new_in(folder).and_then(|file| {
        use std::os::unix::fs::OpenOptionsExt;
        std::fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(file.path())
    });
    if tried.is_ok() && std::env::var_os("TMPDIR").is_none() {
        // SAFETY: no other thread is there yet, as the caller promises.
        unsafe { std::env::set_var("TMPDIR", folder) };
    }
}
