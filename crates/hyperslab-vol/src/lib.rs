//! The HDF5 connector: unmodified programs read and write through Hyperslab.
//!
//! A program whose libhdf5 is 1.14 or newer loads it because two variables of its environment say so
//! (docs/connector.md). From then on every call of HDF5 that concerns a file comes through `callbacks`, which pass on what
//! they get; only elements of datasets may go another way (`data`): by the data plane, through the layers, around libhdf5.
//! Whatever is not known to be safe is left to libhdf5, after everything that waits has been written.
//!
//! **Invariant:** no second libhdf5. All its functions are found in the library that loaded the connector (`host`).
//! **Invariant:** only a thread that libhdf5 has called calls it back. Threads of ours move bytes.
//! **Invariant:** no panic, and nothing but errors of its own error stack, reaches the program.

mod accel;
mod callbacks;
mod class;
mod driver;
mod fork;
mod host;
mod info;
mod object;
mod settings;
mod static_link;
mod stats;
mod terminate;
mod trace;

pub use settings::STRING_VERSION;

use host::api::Const;
use std::ffi::c_int;

/// What kind of plugin this is, for HDF5: a connector.
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_type() -> c_int {
    1
}

/// The connector, for the libhdf5 that calls. Which one that is shows the address it is called from: a process may have
/// several, under any name.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn H5PLget_plugin_info() -> Const {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym host::class_for);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x0, x30", "b {}", sym host::class_for);
}

/// Registers the connector with a libhdf5 whose functions and variables `find` finds by name, and returns its identifier for
/// `H5Pset_vol`. For the libhdf5 that a program is linked with use [`register!`].
///
/// # Safety
/// `find` returns addresses of that libhdf5's symbols of the name, or null; the calling thread may use it; it stays loaded.
pub unsafe fn register_with(find: &dyn Fn(&str) -> *mut std::ffi::c_void) -> hyperslab_core::Result<i64> {
    host::register(find)
}
