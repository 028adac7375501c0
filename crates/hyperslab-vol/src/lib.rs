//! The HDF5 VOL connector: unmodified programs read and write by Hyperslab.
//!
//! A program with libhdf5 1.14 or newer loads it through two environment variables (docs/connector.md). From then on
//! every HDF5 call on a file passes through `callbacks`, which forward it to the connector below; only dataset elements
//! may bypass libhdf5 (`accel`), by the direct path and the layers above it. Whatever is not known to be safe falls
//! back to libhdf5, after buffered data were written back.
//!
//! **Invariant:** no second libhdf5. All its functions are resolved in the library that loaded the connector (`host`).
//! **Invariant:** only threads inside a callback call libhdf5. Background threads only transfer bytes.
//! **Invariant:** no panic reaches the program, and errors reach it only on libhdf5's error stack.

mod accel;
mod callbacks;
mod class;
mod driver;
mod fork;
mod host;
mod info;
mod object;
mod overrides;
mod settings;
mod static_link;
mod stats;
mod terminate;
mod trace;

pub use hyperslab_layers::connector_settings::STRING_VERSION;

use host::api::Const;
use std::ffi::c_int;

/// Plugin entry point of HDF5: the plugin type, a VOL connector.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    1
}

/// Plugin entry point of HDF5: the connector class for the calling libhdf5, identified by the return address, since a
/// process may contain several under any name.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> Const {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym host::class_for);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x0, x30", "b {}", sym host::class_for);
}

/// Registers the connector with a libhdf5 whose functions and variables `find` finds by name, and returns its
/// identifier for `H5Pset_vol`. For the libhdf5 that a program is linked with use [`register!`].
///
/// # Safety
/// `find` returns addresses of that libhdf5's symbols of the name, or null; the calling thread may use it; it stays
/// loaded.
pub unsafe fn register_with(find: &dyn Fn(&str) -> *mut std::ffi::c_void) -> hyperslab_core::Result<i64> {
    host::register(find)
}
