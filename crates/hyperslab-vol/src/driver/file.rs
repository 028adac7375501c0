//! The driver's functions: as those of libhdf5's `sec2`, and every change of the file through its rollback journal.
//!
//! libhdf5 calls them with files that `open` has returned and that are not closed, one call at a time for each; that is
//! the contract all functions here rely on.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of the driver's functions is stated once, above")]

use crate::accel::settle;
use crate::host::api::{Blame, HADDR_UNDEF, Herr, Hid, Ptr, Text};
use crate::host::{Host, of_slot, text};
use hyperslab_rollback::{Pending, Rollback, journal, pending};
use std::ffi::{c_int, c_uint, c_ulong};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

const WRITABLE: c_uint = 0x0001;
const TRUNCATE: c_uint = 0x0002;
const EXCLUSIVE: c_uint = 0x0004;
const CREATE: c_uint = 0x0010;
const SWMR: c_uint = 0x0020 | 0x0040;
/// What `sec2` says of itself: metadata and small data are aggregated, metadata accumulated, data sieved, the handle is a
/// descriptor, readers may follow a writer, and other drivers open its files.
const FEATURES: c_ulong = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x80 | 0x1000 | 0x8000;
/// A file of libhdf5's tool `h5repart`, whose driver block is to be ignored.
const IGNORE_DRIVER_BLOCK: c_ulong = 0x20;
const FAIL_IF_UNKNOWN: u64 = 0x0001;
/// The most bytes of one system call.
const MOST_BYTES: usize = 0x7fff_f000;

/// A file of the driver. libhdf5 has the pointer.
#[repr(C)]
pub(super) struct DriverFile {
    /// What libhdf5 keeps in `H5FD_t`, 80 bytes, and room for more.
    library: [u64; 16],
    descriptor: c_int,
    /// Zero: programs exist that read eight bytes where the library promises an `int`, as behind that of `sec2` there are zeros.
    _behind_descriptor: c_int,
    host: &'static Host,
    file: Arc<File>,
    name: String,
    identity: (u64, u64),
    /// End of the space that libhdf5 has allocated.
    eoa: u64,
    /// End of the file, as far as libhdf5 has written.
    eof: u64,
    ignores_missing_locks: bool,
    from_family: bool,
    rollback: Option<Arc<Rollback>>,
    process: u32,
}

/// Runs a function of the driver. A panic is a failure of this call, never of the program.
fn caught<T>(failed: T, body: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(failed)
}

unsafe fn of<'a>(file: Ptr) -> &'a mut DriverFile {
    &mut *file.cast::<DriverFile>()
}

impl DriverFile {
    /// The journal, in the process that it belongs to. A forked child goes without.
    fn rollback(&self) -> Option<&Arc<Rollback>> {
        self.rollback.as_ref().filter(|_| std::process::id() == self.process)
    }

    fn blame(&self, what: Blame, doing: &str, error: &io::Error) {
        let (name, descriptor) = (&self.name, self.descriptor);
        blame(self.host, what, &format!("{doing}: filename = '{name}', file descriptor = {descriptor}"), error);
    }

    /// Fails with the error on the library's stack.
    fn status(&self, result: io::Result<()>, what: Blame, doing: &str) -> Herr {
        match result {
            Ok(()) => 0,
            Err(error) => {
                self.blame(what, doing, &error);
                -1
            }
        }
    }

    fn note_saved(&self, rollback: &Rollback) {
        self.host.stats.rollback.fetch_add(rollback.take_saved_bytes(), Ordering::Relaxed);
        if let Some(why) = rollback.take_missing() {
            self.host.say_once(&format!("{}: {why}", self.name));
        }
    }
}

/// Puts an error on the library's stack, with the number that the system gave as the library itself writes it.
fn blame(host: &'static Host, what: Blame, text: &str, error: &io::Error) {
    let text = match error.raw_os_error() {
        Some(number) => {
            let meaning = error.to_string();
            let meaning = meaning.split(" (os error").next().unwrap_or_default();
            format!("{text}, errno = {number}, error message = '{meaning}'")
        }
        None => format!("{text}: {error}"),
    };
    host.push_driver_error(what, &text);
}

pub(super) unsafe extern "C" fn terminate<const SLOT: usize>() -> Herr {
    if let Some(host) = of_slot(SLOT) {
        host.driver.store(-1, Ordering::Relaxed);
    }
    0
}

pub(super) unsafe extern "C" fn open<const SLOT: usize>(name: Text, flags: c_uint, list: Hid, most: u64) -> Ptr {
    caught(null_mut(), || {
        let Some(host) = of_slot(SLOT) else { return null_mut() };
        if name.is_null() || *name == 0 || most == 0 || most == HADDR_UNDEF {
            host.push_driver_error(Blame::Open, "invalid file name or address range");
            return null_mut();
        }
        let mut system = if flags & WRITABLE != 0 { libc::O_RDWR } else { libc::O_RDONLY };
        for (asked, flag) in [(TRUNCATE, libc::O_TRUNC), (CREATE, libc::O_CREAT), (EXCLUSIVE, libc::O_EXCL)] {
            system |= if flags & asked != 0 { flag } else { 0 };
        }
        let descriptor = libc::open(name, system, 0o666);
        if descriptor < 0 {
            let error = io::Error::last_os_error();
            blame(host, Blame::Open, &format!("unable to open file: name = '{}'", text(name)), &error);
            return null_mut();
        }
        let file = Arc::new(File::from_raw_fd(descriptor));
        match begin(host, file, name, flags, list) {
            Ok(file) => Box::into_raw(Box::new(file)).cast(),
            Err(error) => {
                blame(host, Blame::Open, &format!("unable to open file: name = '{}'", text(name)), &error);
                null_mut()
            }
        }
    })
}

unsafe fn begin(host: &'static Host, file: Arc<File>, name: Text, flags: c_uint, list: Hid) -> io::Result<DriverFile> {
    use std::os::unix::ffi::OsStrExt;
    let metadata = file.metadata()?;
    let path = Path::new(std::ffi::OsStr::from_bytes(std::ffi::CStr::from_ptr(name).to_bytes()));
    let guarded = flags & WRITABLE != 0 && flags & SWMR == 0 && metadata.is_file();
    let rollback = if guarded { super::guard_new(&file, path)? } else { None };
    if let Some(rollback) = &rollback {
        host.rollbacks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(rollback));
    }
    Ok(DriverFile {
        library: [0; 16],
        descriptor: file.as_raw_fd(),
        _behind_descriptor: 0,
        host,
        name: text(name),
        identity: (metadata.dev(), metadata.ino()),
        eoa: 0,
        eof: metadata.len(),
        ignores_missing_locks: ignores_missing_locks(host, list),
        from_family: property(host, list, c"family_to_single"),
        rollback,
        process: std::process::id(),
        file,
    })
}

/// The variable of the environment counts before the property.
unsafe fn ignores_missing_locks(host: &'static Host, list: Hid) -> bool {
    match std::env::var("HDF5_USE_FILE_LOCKING").as_deref() {
        Ok("BEST_EFFORT") => true,
        Ok("TRUE" | "1" | "FALSE" | "0") => false,
        _ => property(host, list, c"ignore_disabled_file_locks"),
    }
}

/// A property that is true or false; false if the list does not have it.
unsafe fn property(host: &'static Host, list: Hid, name: &std::ffi::CStr) -> bool {
    let mut value = [0u8; 8];
    host.H5Pexist(list, name.as_ptr()) > 0
        && host.H5Pget(list, name.as_ptr(), value.as_mut_ptr().cast()) >= 0
        && value[0] != 0
}

/// Commits what was written if nothing failed since the last commit, and removes the journal then. A journal that stays
/// brings the file back to its last commit when it is opened next, or recovered.
pub(super) unsafe extern "C" fn close(pointer: Ptr) -> Herr {
    caught(-1, || {
        let mut file = Box::from_raw(pointer.cast::<DriverFile>());
        let mut status = 0;
        if let Some(rollback) = file.rollback() {
            if !rollback.is_failed() {
                status = file.status(rollback.finish(), Blame::Write, "unable to commit file");
            }
            file.note_saved(rollback);
        }
        if let Some(rollback) = file.rollback.take()
            && std::process::id() != file.process
        {
            // Locks of its parts may have been held by threads that the child does not have.
            std::mem::forget(rollback);
        }
        let DriverFile { file: closing, host, name, .. } = *file;
        // The journal's guards share the descriptor for the time of a write; none is under way.
        if let Some(closing) = Arc::into_inner(closing)
            && libc::close(closing.into_raw_fd()) < 0
        {
            blame(
                host,
                Blame::Write,
                &format!("unable to close file: filename = '{name}'"),
                &io::Error::last_os_error(),
            );
            status = -1;
        }
        status
    })
}

pub(super) unsafe extern "C" fn compare(one: Ptr, other: Ptr) -> c_int {
    of(one).identity.cmp(&of(other).identity) as c_int
}

pub(super) unsafe extern "C" fn query(file: Ptr, flags: *mut c_ulong) -> Herr {
    if !flags.is_null() {
        *flags = FEATURES | if !file.is_null() && of(file).from_family { IGNORE_DRIVER_BLOCK } else { 0 };
    }
    0
}

pub(super) unsafe extern "C" fn get_eoa(file: Ptr, _kind: c_int) -> u64 {
    of(file).eoa
}

pub(super) unsafe extern "C" fn set_eoa(file: Ptr, _kind: c_int, address: u64) -> Herr {
    of(file).eoa = address;
    0
}

pub(super) unsafe extern "C" fn get_eof(file: Ptr, _kind: c_int) -> u64 {
    of(file).eof
}

pub(super) unsafe extern "C" fn get_handle(file: Ptr, _list: Hid, handle: *mut Ptr) -> Herr {
    if handle.is_null() {
        return -1;
    }
    *handle = (&raw mut of(file).descriptor).cast();
    0
}

/// Whether a range can be addressed.
fn is_range(at: u64, size: usize) -> bool {
    at != HADDR_UNDEF && at.checked_add(size as u64).is_some_and(|end| i64::try_from(end).is_ok())
}

pub(super) unsafe extern "C" fn read(
    pointer: Ptr,
    _kind: c_int,
    _list: Hid,
    at: u64,
    size: usize,
    buffer: Ptr,
) -> Herr {
    caught(-1, || {
        let file = of(pointer);
        if !is_range(at, size) {
            file.host.push_driver_error(Blame::Read, &format!("addr overflow, addr = {at}, size = {size}"));
            return -1;
        }
        // What lies behind a shortened end is still there, and nobody may see it.
        let end = file.rollback().and_then(|rollback| rollback.shortened()).unwrap_or(u64::MAX);
        let there = end.saturating_sub(at).min(size as u64) as usize;
        let bytes = buffer.cast::<u8>();
        let mut done = 0;
        while done < there {
            let count = (there - done).min(MOST_BYTES);
            let read = libc::pread(file.descriptor, bytes.add(done).cast(), count, (at + done as u64) as i64);
            match read {
                0 => break,
                1.. => done += read as usize,
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        file.blame(Blame::Read, "file read failed", &error);
                        return -1;
                    }
                }
            }
        }
        // Beyond the end of the file there are zeros.
        bytes.add(done).write_bytes(0, size - done);
        0
    })
}

pub(super) unsafe extern "C" fn write(pointer: Ptr, _kind: c_int, _list: Hid, at: u64, size: usize, data: Ptr) -> Herr {
    caught(-1, || {
        let file = of(pointer);
        if !is_range(at, size) {
            file.host.push_driver_error(Blame::Write, &format!("addr overflow, addr = {at}, size = {size}"));
            return -1;
        }
        let write = || write_all(file.descriptor, data.cast(), size, at);
        let written = match file.rollback() {
            Some(rollback) => rollback.overwrite(at, size as u64, write),
            None => write(),
        };
        if written.is_ok() {
            file.eof = file.eof.max(at + size as u64);
        }
        if let Some(rollback) = file.rollback() {
            file.note_saved(rollback);
            settle(rollback);
        }
        file.status(written, Blame::Write, "file write failed")
    })
}

fn write_all(descriptor: c_int, data: *const u8, size: usize, at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < size {
        let count = (size - done).min(MOST_BYTES);
        // SAFETY: libhdf5 hands over so many bytes; the descriptor is open.
        let written = unsafe { libc::pwrite(descriptor, data.add(done).cast(), count, (at + done as u64) as i64) };
        match written {
            1.. => done += written as usize,
            0 => return Err(io::ErrorKind::WriteZero.into()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// libhdf5 has handed over all it holds.
pub(super) unsafe extern "C" fn flush(pointer: Ptr, _list: Hid, _closing: bool) -> Herr {
    caught(-1, || {
        if let Some(rollback) = of(pointer).rollback() {
            rollback.note_flushed();
        }
        0
    })
}

/// Makes the file as long as the space that libhdf5 has allocated. It is shortened at the next commit only.
pub(super) unsafe extern "C" fn truncate(pointer: Ptr, _list: Hid, _closing: bool) -> Herr {
    caught(-1, || {
        let file = of(pointer);
        if file.eoa == file.eof {
            return 0;
        }
        let set = match file.rollback() {
            Some(rollback) => {
                settle(rollback);
                rollback.set_length(file.eoa)
            }
            None => file.file.set_len(file.eoa),
        };
        if set.is_ok() {
            file.eof = file.eoa;
        }
        file.status(set, Blame::Write, "unable to extend file properly")
    })
}

unsafe fn flock(file: &DriverFile, operation: c_int, doing: &str) -> Herr {
    if libc::flock(file.descriptor, operation) == 0 {
        return 0;
    }
    let error = io::Error::last_os_error();
    if file.ignores_missing_locks && error.raw_os_error() == Some(libc::ENOSYS) {
        return 0;
    }
    file.status(Err(error), Blame::Lock, doing)
}

pub(super) unsafe extern "C" fn lock(pointer: Ptr, alone: bool) -> Herr {
    caught(-1, || {
        let operation = if alone { libc::LOCK_EX } else { libc::LOCK_SH } | libc::LOCK_NB;
        flock(of(pointer), operation, "unable to lock file")
    })
}

pub(super) unsafe extern "C" fn unlock(pointer: Ptr) -> Herr {
    caught(-1, || flock(of(pointer), libc::LOCK_UN, "unable to unlock file"))
}

/// Removes a file, and a journal that nobody writes.
pub(super) unsafe extern "C" fn delete<const SLOT: usize>(name: Text, _list: Hid) -> Herr {
    caught(-1, || {
        let Some(host) = of_slot(SLOT) else { return -1 };
        let name_text = text(name);
        let journal = journal::path_of(Path::new(&name_text));
        let orphaned = matches!(pending(Path::new(&name_text)), Ok(Pending::Orphaned));
        if libc::remove(name) < 0 {
            let error = io::Error::last_os_error();
            blame(host, Blame::Write, &format!("unable to delete file: name = '{name_text}'"), &error);
            return -1;
        }
        if orphaned {
            let _ = std::fs::remove_file(journal);
        }
        0
    })
}

/// No operation is known.
pub(super) unsafe extern "C" fn control(_file: Ptr, _code: u64, flags: u64, _input: Ptr, _output: *mut Ptr) -> Herr {
    if flags & FAIL_IF_UNKNOWN != 0 { -1 } else { 0 }
}
