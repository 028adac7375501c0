//! The functions of the C library that are stood in for.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function looked up once, by name, behind this library.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The address, or null when the C library has no such function.
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string; RTLD_NEXT is valid in a preloaded library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Relaxed);
        found
    }
}

/// Calls the real function behind a stand-in, or fails as the kernel does for calls it does not know.
macro_rules! real {
    ($name:literal as fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        static REAL: Real = Real::new($name);
        let address = REAL.address();
        if address.is_null() {
            return crate::fault::fail(libc::ENOSYS) as $result;
        }
        // SAFETY: the C library declares the function of this name with this type; the arguments are the caller's.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> $result = std::mem::transmute(address);
            function($($argument),*)
        }
    }};
}
pub(crate) use real;
