//! Filters that libhdf5 does not have of its own, lent to it: what the data plane leaves to libhdf5, it then can code too.

use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory};
use hdf5_metno_sys::h5z::{H5Z_CLASS_T_VERS, H5Z_FLAG_REVERSE, H5Z_class2_t, H5Zfilter_avail, H5Zregister};
use hyperslab_core::Result;
use hyperslab_filters::{Filter, FilterSpec, Workspace};
use std::cell::RefCell;
use std::ffi::{CStr, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What HDF5 1.x allows a chunk to have; larger ones are the data plane's alone.
const MOST_BYTES: usize = u32::MAX as usize;

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

type Function = unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize;

/// Offers the filters to libhdf5, unless it has them already. Call under the lock, once.
pub(super) fn register() {
    let filters: [(i32, &CStr, Function); 6] = [
        (32000, c"lzf", code::<32000>),
        (32001, c"blosc", code::<32001>),
        (32004, c"lz4", code::<32004>),
        (32008, c"bitshuffle", code::<32008>),
        (32015, c"zstd", code::<32015>),
        (32026, c"blosc2", code::<32026>),
    ];
    for (id, name, function) in filters {
        let class = H5Z_class2_t {
            version: H5Z_CLASS_T_VERS as i32,
            id,
            encoder_present: 1,
            decoder_present: 1,
            name: name.as_ptr(),
            can_apply: None,
            set_local: None,
            filter: Some(function),
        };
        // SAFETY: libhdf5 copies the structure; its name and function live for ever. What fails leaves the filter out.
        unsafe {
            if H5Zfilter_avail(id) == 0 {
                H5Zregister((&raw const class).cast());
            }
        }
    }
}

/// What libhdf5 calls to code the bytes at `buffer`; returns their new number, or 0 if that failed.
unsafe extern "C" fn code<const ID: u32>(
    flags: c_uint,
    number: usize,
    values: *const c_uint,
    bytes: usize,
    room: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    // SAFETY: libhdf5 passes `number` parameters, and a buffer with `bytes` bytes in use; no pointer is null but that of
    // no parameters.
    let (parameters, given, expected) = unsafe {
        let parameters = if number == 0 { &[] } else { std::slice::from_raw_parts(values, number) };
        (parameters.to_vec(), std::slice::from_raw_parts((*buffer).cast::<u8>(), bytes), *room)
    };
    // Used even where it makes a chunk larger: when a chunk changes its mask but not its size, libhdf5 (2.2,
    // `H5D__chunk_file_alloc`) does not note the new mask, and the chunk cannot be decoded any more.
    let stated = FilterSpec { id: ID, optional: false, parameters };
    let coded = catch_unwind(AssertUnwindSafe(|| run(&stated, flags & H5Z_FLAG_REVERSE != 0, given, expected)));
    let Ok(Ok(Some(coded))) = coded else { return 0 };
    // SAFETY: libhdf5 frees a filter's buffer by the same allocator, and takes the new one over.
    unsafe {
        let new = H5allocate_memory(coded.len(), 0);
        if new.is_null() {
            return 0;
        }
        std::ptr::copy_nonoverlapping(coded.as_ptr(), new.cast::<u8>(), coded.len());
        H5free_memory(*buffer);
        *buffer = new;
        *room = coded.len();
    }
    coded.len()
}

/// `None` where the filter must be left out.
fn run(stated: &FilterSpec, decode: bool, given: &[u8], expected: usize) -> Result<Option<Vec<u8>>> {
    let filter = Filter::new(stated)?;
    WORKSPACE.with_borrow_mut(|workspace| {
        let mut out = Vec::new();
        if decode {
            filter.decode(given, expected, MOST_BYTES, &mut out, workspace)?;
            return Ok(Some(out));
        }
        Ok(filter.encode(given, &mut out, workspace)?.then_some(out))
    })
}
