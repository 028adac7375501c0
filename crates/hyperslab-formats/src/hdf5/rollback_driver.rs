//! The file driver of recoveries: as libhdf5's `sec2`, with a rollback journal before its writes.
//!
//! libhdf5 changes metadata in place. A recovery that is killed while it stores what a log has would leave a file that nothing
//! opens, and the log could not be applied again. So the old bytes of metadata go into a [`Rollback`] first, durably, since logs may
//! promise to outlive a loss of power; every flush of the whole file commits, and the next recovery puts the file back to the last of them before it begins anew. Elements written around libhdf5
//! ([`ReplayedElements`]) stay through that: the log still has them.
//!
//! libhdf5 calls the functions with files that `open` has returned and that are not closed, one call at a time, under the lock;
//! that is the contract all functions here rely on.
#![expect(unsafe_op_in_unsafe_fn, reason = "the contract of the driver's functions is stated once, above")]

use super::library::{Id, done, hid_t};
use hdf5_metno_sys::h5fd::H5FDregister;
use hdf5_metno_sys::{h5, h5e, h5f, h5i, h5p};
use hyperslab_core::{Error, Result};
use hyperslab_h5direct::WriteGuard;
use hyperslab_rollback::Rollback;
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// As `sec2`: metadata and small data are aggregated, metadata accumulated, data sieved, the handle is a descriptor, readers may
/// follow a writer, and other drivers open its files.
const FEATURES: c_ulong = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x80 | 0x1000 | 0x8000;
const NAME: &CStr = c"hyperslab_recovery";

/// A file of the driver. libhdf5 has the pointer.
#[repr(C)]
struct RecoveredFile {
    /// What libhdf5 keeps in `H5FD_t`, 64 bytes, and room for more.
    library: [u64; 16],
    descriptor: c_int,
    file: File,
    identity: (u64, u64),
    /// End of the space that libhdf5 has allocated.
    eoa: u64,
    /// End of the file, as far as libhdf5 has written.
    eof: u64,
    rollback: Option<Arc<Rollback>>,
}

type GuardedFiles = Vec<((u64, u64), Weak<Rollback>)>;

/// The journals of files that are open.
static OPEN: Mutex<GuardedFiles> = Mutex::new(Vec::new());

fn journals() -> std::sync::MutexGuard<'static, GuardedFiles> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts the driver into an access list. libhdf5 before 1.14 has another table of functions, and keeps `sec2`. Call under the lock.
pub(super) fn put(list: &Id) -> Result<()> {
    static DRIVER: Mutex<hid_t> = Mutex::new(-1);
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the table lives as long as the program, the list is live, the numbers are variables.
    unsafe {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        done("open", h5::H5get_libversion(&raw mut major, &raw mut minor, &raw mut release))?;
        if (major, minor) < (1, 14) {
            return Ok(());
        }
        if *driver < 0 || h5i::H5Iis_valid(*driver) <= 0 {
            *driver = H5FDregister(table().as_ptr().cast());
        }
        done("open", if *driver < 0 { -1 } else { h5p::H5Pset_driver(list.raw(), *driver, null()) })
    }
}

/// What writes elements of a file around libhdf5 must go through, if this driver has the file open for writing.
pub(super) fn guard(file: &File) -> Option<Arc<dyn WriteGuard>> {
    let about = file.metadata().ok()?;
    let known = journals().iter().find(|(identity, _)| *identity == (about.dev(), about.ino()))?.1.clone();
    Some(Arc::new(ReplayedElements(known)))
}

/// Call after libhdf5 has flushed the whole file: makes that the state that a rollback restores. A flush of one dataset writes a part
/// of what belongs together. Call under the lock.
pub(super) fn commit(file: &Id) -> Result<()> {
    if journals().is_empty() {
        return Ok(());
    }
    let mut handle: *mut c_void = null_mut();
    // SAFETY: the file is live; while a file is recovered no other driver than ours and `sec2` is in use, and the handle of both is a
    // pointer to a descriptor.
    let descriptor = unsafe {
        done("flush", hdf5_metno_sys::h5f::H5Fget_vfd_handle(file.raw(), h5p::H5P_DEFAULT, &raw mut handle))?;
        std::os::fd::BorrowedFd::borrow_raw(*handle.cast::<c_int>())
    };
    let about = rustix::fs::fstat(descriptor).map_err(|error| Error::io("flush", error.into()))?;
    let known = journals().iter().find(|(identity, _)| *identity == (about.st_dev, about.st_ino)).cloned();
    match known.and_then(|(_, rollback)| rollback.upgrade()) {
        Some(rollback) => rollback.commit().map_err(|error| Error::io("commit", error)),
        None => Ok(()),
    }
}

/// Writes of elements, which stay through a rollback.
#[derive(Debug)]
struct ReplayedElements(Weak<Rollback>);

impl WriteGuard for ReplayedElements {
    fn guarded(&self, at: u64, bytes: u64, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        match self.0.upgrade() {
            Some(rollback) => rollback.overwrite_for_good(at, bytes, write),
            None => write(),
        }
    }

    fn relocated(&self) {}
}

/// Version 1 of `H5FD_class_t`, the same in 1.14 and 2.x, as the eight-byte fields that it has on 64-bit machines.
fn table() -> &'static [usize; 42] {
    static TABLE: OnceLock<[usize; 42]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [0; 42];
        // From the range that HDF5 leaves for drivers without a registered number.
        table[0] = 1 | 438 << 32;
        table[1] = NAME.as_ptr() as usize;
        table[2] = i64::MAX as usize;
        table[3] = 1; // objects keep a file open
        table[15] = open as *const () as usize;
        table[16] = close as *const () as usize;
        table[17] = compare as *const () as usize;
        table[18] = query as *const () as usize;
        table[22] = get_eoa as *const () as usize;
        table[23] = set_eoa as *const () as usize;
        table[24] = get_eof as *const () as usize;
        table[25] = get_handle as *const () as usize;
        table[26] = read as *const () as usize;
        table[27] = write as *const () as usize;
        table[33] = truncate as *const () as usize;
        table[34] = lock as *const () as usize;
        table[35] = unlock as *const () as usize;
        // One list of free space for metadata (1) and one for elements (3), for each of seven kinds of memory.
        table[38..].copy_from_slice(&[1 | 1 << 32, 1 | 3 << 32, 3 | 1 << 32, 1]);
        table
    })
}

/// Puts a failure on libhdf5's stack, with the number of the system's error as `sec2` writes it. The status of a call.
fn status(doing: &str, result: io::Result<()>) -> c_int {
    let Err(error) = result else { return 0 };
    let number = error.raw_os_error().unwrap_or(libc::EIO);
    let Ok(text) = std::ffi::CString::new(format!("{doing}: errno = {number}, error message = '{error}'")) else {
        return -1;
    };
    // SAFETY: the identifiers are the library's own, all text ends in NUL, and the format takes one text.
    unsafe {
        let (major, minor) = (*h5e::H5E_IO, *h5e::H5E_WRITEERROR);
        let file = c"rollback_driver".as_ptr();
        h5e::H5Epush2(
            h5e::H5E_DEFAULT,
            file,
            NAME.as_ptr(),
            0,
            *h5e::H5E_ERR_CLS,
            major,
            minor,
            c"%s".as_ptr(),
            text.as_ptr(),
        );
    }
    -1
}

/// Runs a function of the driver. A panic is a failure of this call and does not reach C.
fn caught<T>(failed: T, body: impl FnOnce() -> T) -> T {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(failed)
}

unsafe fn of<'a>(file: *mut c_void) -> &'a mut RecoveredFile {
    &mut *file.cast::<RecoveredFile>()
}

unsafe extern "C" fn open(name: *const c_char, flags: c_uint, _list: hid_t, _most: u64) -> *mut c_void {
    caught(null_mut(), || {
        let path = Path::new(OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        match begin(path, flags & h5f::H5F_ACC_RDWR != 0) {
            Ok(file) => Box::into_raw(Box::new(file)).cast(),
            Err(error) => {
                status("unable to open file", Err(error));
                null_mut()
            }
        }
    })
}

fn begin(path: &Path, writable: bool) -> io::Result<RecoveredFile> {
    let file = File::options().read(true).write(writable).open(path)?;
    let about = file.metadata()?;
    let identity = (about.dev(), about.ino());
    let rollback = match writable && about.is_file() {
        // A recovery ends with a sync, before which the log stays: the journal is needed against a kill alone.
        true => Some(Arc::new(Rollback::begin(Arc::new(file.try_clone()?), path, true)?)),
        false => None,
    };
    let mut known = journals();
    known.retain(|(_, rollback)| rollback.strong_count() > 0);
    known.extend(rollback.as_ref().map(|rollback| (identity, Arc::downgrade(rollback))));
    let descriptor = file.as_raw_fd();
    Ok(RecoveredFile { library: [0; 16], descriptor, file, identity, eoa: 0, eof: about.len(), rollback })
}

/// Commits what was written if nothing failed since the last commit, and removes the journal then. A journal that stays has
/// the next recovery bring the file back to its last flush.
unsafe extern "C" fn close(pointer: *mut c_void) -> c_int {
    caught(-1, || {
        let file = Box::from_raw(pointer.cast::<RecoveredFile>());
        match file.rollback.as_ref().filter(|rollback| !rollback.is_failed()) {
            Some(rollback) => status("unable to commit file", rollback.finish()),
            None => 0,
        }
    })
}

unsafe extern "C" fn compare(one: *mut c_void, other: *mut c_void) -> c_int {
    of(one).identity.cmp(&of(other).identity) as c_int
}

unsafe extern "C" fn query(_file: *mut c_void, flags: *mut c_ulong) -> c_int {
    if !flags.is_null() {
        *flags = FEATURES;
    }
    0
}

unsafe extern "C" fn get_eoa(file: *mut c_void, _kind: c_int) -> u64 {
    of(file).eoa
}

unsafe extern "C" fn set_eoa(file: *mut c_void, _kind: c_int, address: u64) -> c_int {
    of(file).eoa = address;
    0
}

unsafe extern "C" fn get_eof(file: *mut c_void, _kind: c_int) -> u64 {
    of(file).eof
}

unsafe extern "C" fn get_handle(file: *mut c_void, _list: hid_t, handle: *mut *mut c_void) -> c_int {
    if handle.is_null() {
        return -1;
    }
    *handle = (&raw mut of(file).descriptor).cast();
    0
}

unsafe extern "C" fn read(
    pointer: *mut c_void,
    _kind: c_int,
    _list: hid_t,
    at: u64,
    size: usize,
    buffer: *mut c_void,
) -> c_int {
    caught(-1, || {
        let file = of(pointer);
        // libhdf5 does not promise that the buffer was ever written.
        buffer.cast::<u8>().write_bytes(0, size);
        // What lies behind a shortened end is still there, and nobody may see it; beyond the end there are zeros.
        let end = file.rollback.as_ref().and_then(|rollback| rollback.shortened()).unwrap_or(u64::MAX);
        let there = end.saturating_sub(at).min(size as u64) as usize;
        status("file read failed", read_up_to(&file.file, std::slice::from_raw_parts_mut(buffer.cast(), there), at))
    })
}

fn read_up_to(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, at) {
            Ok(0) => break,
            Ok(read) => {
                buffer = &mut buffer[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

unsafe extern "C" fn write(
    pointer: *mut c_void,
    _kind: c_int,
    _list: hid_t,
    at: u64,
    size: usize,
    data: *const c_void,
) -> c_int {
    caught(-1, || {
        let file = of(pointer);
        let write = || file.file.write_all_at(std::slice::from_raw_parts(data.cast(), size), at);
        let written = match &file.rollback {
            Some(rollback) => rollback.overwrite(at, size as u64, write),
            None => write(),
        };
        if written.is_ok() {
            file.eof = file.eof.max(at + size as u64);
        }
        status("file write failed", written)
    })
}

/// Makes the file as long as the space that libhdf5 has allocated. It is shortened at the next commit only.
unsafe extern "C" fn truncate(pointer: *mut c_void, _list: hid_t, _closing: bool) -> c_int {
    caught(-1, || {
        let file = of(pointer);
        if file.eoa == file.eof {
            return 0;
        }
        let set = match &file.rollback {
            Some(rollback) => rollback.set_length(file.eoa),
            None => file.file.set_len(file.eoa),
        };
        if set.is_ok() {
            file.eof = file.eoa;
        }
        status("unable to extend file properly", set)
    })
}

unsafe extern "C" fn lock(pointer: *mut c_void, alone: bool) -> c_int {
    use rustix::fs::FlockOperation::{NonBlockingLockExclusive, NonBlockingLockShared};
    let how = if alone { NonBlockingLockExclusive } else { NonBlockingLockShared };
    match rustix::fs::flock(&of(pointer).file, how) {
        // Where there are no locks nobody can be asked.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => 0,
        locked => status("unable to lock file", locked.map_err(io::Error::from)),
    }
}

unsafe extern "C" fn unlock(pointer: *mut c_void) -> c_int {
    let unlocked = rustix::fs::flock(&of(pointer).file, rustix::fs::FlockOperation::Unlock);
    status("unable to unlock file", unlocked.map_err(io::Error::from))
}
