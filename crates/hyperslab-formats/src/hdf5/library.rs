//! Access to libhdf5: the process-wide lock, owned identifiers, error conversion.

use super::errors;
use super::filter_plugins;
use super::mpio;
use hdf5_metno_sys::{LOCK, h5, h5e, h5i};
use hyperslab_core::{Error, Result};
use std::cell::Cell;
use std::ffi::CString;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) use hdf5_metno_sys::h5i::hid_t;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static START: Once = Once::new();
static LEFT_OPEN: AtomicBool = AtomicBool::new(false);

/// Initialises the library, and closes it down at the end of the process ourselves: libhdf5's own handler would run
/// while other threads are inside, and would try again, and crash, on what could not be written. In an MPI job libhdf5
/// closes down when MPI ends, while processes can still work together; later it is too late.
fn start() {
    // SAFETY: called under the lock before anything else of libhdf5; the handler has no arguments and does not unwind.
    unsafe {
        h5::H5dont_atexit();
        h5::H5open();
        libc::atexit(end);
    }
    filter_plugins::register();
}

extern "C" fn end() {
    if let Some(_guard) = LOCK.try_lock()
        && !LEFT_OPEN.load(Ordering::Relaxed)
        && !mpio::started()
    {
        // SAFETY: the lock is held, so no other thread is inside.
        unsafe { h5::H5close() };
    }
}

/// Records that an object stays open because it could not be flushed, so that libhdf5 is not shut down at exit.
pub(super) fn leave_open() {
    LEFT_OPEN.store(true, Ordering::Relaxed);
}

/// Runs `body` under libhdf5's lock. Reentrant. Waiting for other ranks inside would deadlock.
pub(super) fn with<T>(body: impl FnOnce() -> T) -> T {
    let _guard = LOCK.lock();
    if !QUIET.get() {
        START.call_once(start);
        // SAFETY: the lock is held; the call may be made at any time.
        unsafe {
            h5e::H5Eset_auto2(h5e::H5E_DEFAULT, None, std::ptr::null_mut());
        }
        QUIET.set(true);
    }
    body()
}

/// The version of libhdf5 that is linked, such as `2.0.0`.
pub fn library_version() -> String {
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: three places to write numbers to; the call fails only for null pointers.
    with(|| unsafe { h5::H5get_libversion(&mut major, &mut minor, &mut release) });
    format!("{major}.{minor}.{release}")
}

/// An owned libhdf5 identifier, closed when dropped.
#[derive(Debug)]
pub(super) struct Id(hid_t);

impl Id {
    /// Takes over what a libhdf5 call returned; negative is its error. Call under [`with`].
    pub(super) fn take(operation: &'static str, raw: hid_t) -> Result<Self> {
        if raw < 0 { Err(errors::last(operation)) } else { Ok(Self(raw)) }
    }

    /// The identifier, valid while `self` lives.
    pub(super) fn raw(&self) -> hid_t {
        self.0
    }

    /// Gives it back and reports what libhdf5 says about that (closing may write).
    pub(super) fn close(self, operation: &'static str) -> Result<()> {
        if mpio::ended() {
            return Err(Error::invalid(operation, "MPI has ended, and libhdf5 with it").hint("close before MPI ends"));
        }
        let raw = self.0;
        std::mem::forget(self);
        // SAFETY: `raw` came from libhdf5, is owned here and never used again.
        with(|| done(operation, unsafe { h5i::H5Idec_ref(raw) }))
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        if mpio::ended() {
            return; // libhdf5 ended with MPI, and the identifier with it
        }
        with(|| {
            // SAFETY: the identifier is owned and never used again. Errors have no place to go in a drop.
            unsafe {
                if h5i::H5Idec_ref(self.0) < 0 {
                    h5e::H5Eclear2(h5e::H5E_DEFAULT);
                }
            }
        });
    }
}

/// The result of a call that returns nothing but success. Call under [`with`].
pub(super) fn done(operation: &'static str, status: i32) -> Result<()> {
    if status < 0 { Err(errors::last(operation)) } else { Ok(()) }
}

/// The result of a call that answers yes or no. Call under [`with`].
pub(super) fn truth(operation: &'static str, status: i32) -> Result<bool> {
    done(operation, status).map(|()| status > 0)
}

/// The result of a call that counts. Call under [`with`].
pub(super) fn count(operation: &'static str, number: i32) -> Result<usize> {
    done(operation, number).map(|()| number as usize)
}

/// Text as C wants it.
pub(super) fn c_text(operation: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid(operation, format!("{text:?} contains a NUL byte")))
}
