//! A libhdf5 that looks for connectors, but for those of another kind: 1.12. It is told in one line.

use super::api::Ptr;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicPtr, Ordering};

type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
type GetAuto = unsafe extern "C" fn(i64, *mut Ptr, *mut Ptr) -> c_int;
type SetAuto = unsafe extern "C" fn(i64, Ptr, Ptr) -> c_int;

/// The version of the library, if it is one that came before the connectors of today.
pub(super) fn version(find: &dyn Fn(&str) -> Ptr) -> Option<(u32, u32, u32)> {
    let function = find("H5get_libversion");
    if function.is_null() {
        return None;
    }
    // SAFETY: the library's function of this name has this type since its first version.
    let ask: GetVersion = unsafe { std::mem::transmute::<Ptr, GetVersion>(function) };
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: the pointers are to variables.
    let asked = unsafe { ask(&raw mut major, &raw mut minor, &raw mut release) } >= 0;
    (asked && major == 1 && minor < 14).then_some((major, minor, release))
}

/// What printed errors before, and its data; how that is set.
static FUNCTION: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
static DATA: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
static SET: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Has the library print nothing about the connector that it does not get, and everything after that.
pub(super) fn print_no_stack(find: &dyn Fn(&str) -> Ptr) {
    let (get, set) = (find("H5Eget_auto2"), find("H5Eset_auto2"));
    if get.is_null() || set.is_null() {
        return;
    }
    // SAFETY: the library's functions of these names have these types in 1.8 to 1.12, and this thread is in a call of it.
    unsafe {
        let get = std::mem::transmute::<Ptr, GetAuto>(get);
        let (mut function, mut data): (Ptr, Ptr) = (std::ptr::null_mut(), std::ptr::null_mut());
        if get(0, &raw mut function, &raw mut data) < 0 || function.is_null() {
            return;
        }
        FUNCTION.store(function, Ordering::SeqCst);
        DATA.store(data, Ordering::SeqCst);
        SET.store(set, Ordering::SeqCst);
        std::mem::transmute::<Ptr, SetAuto>(set)(0, swallow as *mut std::ffi::c_void, std::ptr::null_mut());
    }
}

/// Stands in for what prints errors, once.
unsafe extern "C" fn swallow(_stack: i64, _: Ptr) -> c_int {
    let set = SET.load(Ordering::SeqCst);
    if !set.is_null() {
        // SAFETY: the library's own function with what it had before.
        unsafe {
            let set = std::mem::transmute::<Ptr, SetAuto>(set);
            set(0, FUNCTION.load(Ordering::SeqCst), DATA.load(Ordering::SeqCst));
        }
    }
    0
}
