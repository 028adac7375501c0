//! Records every call that changes a file, in one order for all threads and processes.
//!
//! `HYPERSLAB_RECORD=path=/dev/shm/x/data,to=/dev/shm/x/trace` appends one record for each call that succeeded on a file
//! whose path begins so. Calls are serialised by a lock in shared memory (`to` with `.lock` appended), so that the order
//! of records is the order in which the calls took effect, also across `fork` and `exec`.
//!
//! A record, little-endian: magic `HSR1`, kind (u32), time of the file's modification after the call in ns since 1970
//! (i64; 0 if it has gone), three numbers (i64), lengths of path, second name and data (u32, u32, u64), then those three. `crates/hyperslab-crashlab/src/trace.rs` reads it.

use crate::config::{Text, variable};
use crate::path::Buffer;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// What was done. The numbers are those of the records.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Kind {
    /// `a`: flags, `b`: permissions of the file. Only opens that may create or truncate.
    Open = 1,
    /// `a`: offset.
    Write,
    /// `a`: new length.
    Truncate,
    /// `a`: offset, `b`: length, `c`: mode.
    Allocate,
    /// `a`: 0 `fsync`, 1 `fdatasync`, 2 `syncfs`.
    Sync,
    /// The second name is the new path.
    Rename,
    Unlink,
    Mkdir,
    Rmdir,
    /// The second name is the new path.
    Link,
    /// The second name is that of the attribute, the data its value.
    SetAttribute,
    /// The second name is that of the attribute.
    RemoveAttribute,
    /// `a`: time of modification in ns since 1970.
    Times,
}

static ACTIVE: AtomicBool = AtomicBool::new(false);
static PATH: Text = Text::new();
static TO: Text = Text::new();
static TRACE: AtomicI32 = AtomicI32::new(-1);
static LOCK: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// The descriptor of the trace is high, so that programs that count on low numbers get them.
const TRACE_DESCRIPTOR: c_int = 900;
const MAGIC: &[u8; 4] = b"HSR1";
const HEAD: usize = 56;

/// Reads `HYPERSLAB_RECORD`.
pub(crate) fn start() {
    if variable(c"HYPERSLAB_RECORD").is_some_and(parse) && open_trace() {
        ACTIVE.store(true, Ordering::Release);
    }
}

fn parse(text: &[u8]) -> bool {
    text.split(|byte| *byte == b',').all(|part| {
        let Some(equals) = part.iter().position(|byte| *byte == b'=') else { return false };
        match &part[..equals] {
            b"path" => PATH.set(&part[equals + 1..]),
            b"to" => TO.set(&part[equals + 1..]),
            _ => false,
        }
    })
}

/// Opens trace and lock by system calls alone.
fn open_trace() -> bool {
    let mut path = [0; crate::config::LONGEST];
    let len = TO.copy_to(&mut path);
    if len == 0 || len + 6 > path.len() {
        return false;
    }
    // SAFETY: the paths are C strings, the descriptors are those just opened, the mapping has the length of the file.
    unsafe {
        let append = libc::O_CREAT | libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
        let opened = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), append, 0o644) as c_int;
        let trace = libc::syscall(libc::SYS_dup3, opened, TRACE_DESCRIPTOR, libc::O_CLOEXEC) as c_int;
        libc::syscall(libc::SYS_close, opened);
        path[len..len + 6].copy_from_slice(b".lock\0");
        let shared = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC;
        let lock = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), shared, 0o644) as c_int;
        libc::syscall(libc::SYS_ftruncate, lock, 4096);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, lock, 0);
        libc::syscall(libc::SYS_close, lock);
        if trace < 0 || page == libc::MAP_FAILED {
            return false;
        }
        TRACE.store(trace, Ordering::Relaxed);
        LOCK.store(page.cast(), Ordering::Relaxed);
    }
    true
}

/// A call on a file that is recorded. The lock is held from here on.
pub(crate) struct Recording {
    path: Buffer,
    /// The file, or none for calls that name a path.
    file: Option<c_int>,
    _held: Held,
}

struct Held;

impl Held {
    fn new() -> Self {
        while lock().compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // SAFETY: the call takes nothing.
            unsafe { libc::sched_yield() };
        }
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock().store(0, Ordering::Release);
    }
}

fn lock() -> &'static AtomicU32 {
    // SAFETY: the page is mapped before anything is recorded, and never unmapped.
    unsafe { &*LOCK.load(Ordering::Relaxed) }
}

/// Begins recording a call on a descriptor, if its file is one of those that matter.
pub(crate) fn on_descriptor(file: c_int) -> Option<Recording> {
    if !ACTIVE.load(Ordering::Acquire) {
        return None;
    }
    let mut path = Buffer::new();
    path.set_descriptor(file);
    PATH.begins(path.bytes()).then(|| {
        let held = Held::new();
        // Another thread may have renamed the file before the lock was held.
        path.set_descriptor(file);
        Recording { path, file: Some(file), _held: held }
    })
}

/// Begins recording a call that names a path.
///
/// # Safety
/// `path` is null or a C string.
pub(crate) unsafe fn on_path(directory: c_int, path: *const c_char) -> Option<Recording> {
    if !ACTIVE.load(Ordering::Acquire) {
        return None;
    }
    let mut buffer = Buffer::new();
    // SAFETY: by contract of this function.
    unsafe { buffer.set_path(directory, path) };
    PATH.begins(buffer.bytes()).then(|| Recording { path: buffer, file: None, _held: Held::new() })
}

/// What a record says beside its kind and path.
#[derive(Default)]
pub(crate) struct Details<'a> {
    pub(crate) numbers: [i64; 3],
    pub(crate) second: &'a [u8],
    pub(crate) data: &'a [&'a [u8]],
}

impl Recording {
    /// Appends the record. The error number stays.
    pub(crate) fn done(self, kind: Kind, details: &Details<'_>) {
        // SAFETY: the C library hands out the address of this thread's error number.
        let error = unsafe { *libc::__errno_location() };
        let mut head = [0; HEAD];
        let bytes: usize = details.data.iter().map(|part| part.len()).sum();
        head[..4].copy_from_slice(MAGIC);
        head[4..8].copy_from_slice(&(kind as u32).to_le_bytes());
        let (modified, permissions) = self.state();
        head[8..16].copy_from_slice(&modified.to_le_bytes());
        let mut numbers = details.numbers;
        if matches!(kind, Kind::Open) {
            numbers[1] = permissions;
        }
        for (i, number) in numbers.iter().enumerate() {
            head[16 + 8 * i..24 + 8 * i].copy_from_slice(&number.to_le_bytes());
        }
        head[40..44].copy_from_slice(&(self.path.bytes().len() as u32).to_le_bytes());
        head[44..48].copy_from_slice(&(details.second.len() as u32).to_le_bytes());
        head[48..56].copy_from_slice(&(bytes as u64).to_le_bytes());
        append(&head);
        append(self.path.bytes());
        append(details.second);
        details.data.iter().for_each(|part| append(part));
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = error };
    }

    /// When the file was modified last, and its permissions, as the kernel says.
    fn state(&self) -> (i64, i64) {
        let mut state = std::mem::MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: the state has the kernel's layout. A path is followed by a zero, since its buffer began with zeros.
        let (done, state) = unsafe {
            let done = match self.file {
                Some(file) => libc::syscall(libc::SYS_fstat, file, state.as_mut_ptr()),
                None => {
                    let path = self.path.bytes().as_ptr();
                    libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, state.as_mut_ptr(), 0)
                }
            };
            (done, state.assume_init())
        };
        match done {
            0 => (state.st_mtime * 1_000_000_000 + state.st_mtime_nsec, i64::from(state.st_mode & 0o777)),
            _ => (0, 0),
        }
    }

    /// Appends a record of bytes that were written at an offset, or at the present place when none is given.
    ///
    /// # Safety
    /// `parts` hold at least `written` bytes.
    pub(crate) unsafe fn wrote(self, file: c_int, offset: Option<i64>, parts: &[libc::iovec], written: libc::ssize_t) {
        let Ok(mut rest) = usize::try_from(written) else { return };
        if rest == 0 {
            return;
        }
        // SAFETY: the call changes nothing.
        let end = unsafe { libc::syscall(libc::SYS_lseek, file, 0, libc::SEEK_CUR) };
        let mut at = offset.filter(|offset| *offset >= 0).unwrap_or(end - written as i64);
        let mut data = [&[][..]; 16];
        let mut recording = Some(self);
        for group in parts.chunks(data.len()) {
            let mut bytes = 0;
            for (slot, part) in data.iter_mut().zip(group) {
                let len = part.iov_len.min(rest);
                // SAFETY: the caller handed over these bytes, and they were written.
                *slot = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), len) };
                rest -= len;
                bytes += len;
            }
            // Only writes of more than 16 parts have a second record; the lock is free between the two.
            let Some(recording) = recording.take().or_else(|| on_descriptor(file)) else { return };
            recording.done(Kind::Write, &Details { numbers: [at, 0, 0], second: &[], data: &data[..group.len()] });
            at += bytes as i64;
            if rest == 0 {
                return;
            }
        }
    }
}

/// A part of a buffer as the kernel takes it.
pub(crate) fn part(data: *const c_void, len: usize) -> libc::iovec {
    libc::iovec { iov_base: data.cast_mut(), iov_len: len }
}

fn append(mut bytes: &[u8]) {
    let trace = TRACE.load(Ordering::Relaxed);
    while !bytes.is_empty() {
        // SAFETY: the bytes are a slice; the descriptor is the trace's.
        let done = unsafe { libc::syscall(libc::SYS_write, trace, bytes.as_ptr(), bytes.len()) };
        match usize::try_from(done) {
            Ok(done) if done > 0 => bytes = &bytes[done..],
            // A trace with a hole in it proves nothing: the reader finds the magic missing.
            _ => return,
        }
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a variable of this function; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    nanoseconds(&time)
}

/// A time as one number.
pub(crate) fn nanoseconds(time: &libc::timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
