//! libhdf5 itself, for what no format of ours does.

use hdf5_metno_sys::h5::{haddr_t, hsize_t};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{LOCK, h5, h5d, h5f, h5p};
use libtest_mimic::Failed;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A chunk that is stored: its first element, and where and how many its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub origin: Vec<u64>,
    pub address: u64,
    pub bytes: u64,
}

struct Found {
    rank: usize,
    chunks: Vec<Stored>,
}

extern "C" fn note(
    origin: *const hsize_t,
    _mask: c_uint,
    address: haddr_t,
    bytes: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the `Found` of the walk, whose rank is that of the dataset.
    let (found, origin) = unsafe {
        let found = &mut *data.cast::<Found>();
        (&mut *(data.cast::<Found>()), std::slice::from_raw_parts(origin, found.rank).to_vec())
    };
    found.chunks.push(Stored { origin, address, bytes });
    0
}

fn ok(what: &str, id: i64) -> Result<hid_t, Failed> {
    if id < 0 { Err(format!("libhdf5 refuses: {what}").into()) } else { Ok(id) }
}

fn text(path: &Path) -> Result<CString, Failed> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// The stored chunks of an array of a file that nobody has open.
pub fn chunks(path: &Path, name: &str, rank: usize) -> Result<Vec<Stored>, Failed> {
    let (path, name) = (text(path)?, CString::new(name)?);
    let mut found = Found { rank, chunks: Vec::new() };
    let _lock = LOCK.lock();
    // SAFETY: the lock is held; names end in NUL; identifiers are live until closed; `found` outlives the walk.
    unsafe {
        let file = ok("open the file", h5f::H5Fopen(path.as_ptr(), h5f::H5F_ACC_RDONLY, H5P_DEFAULT))?;
        let array = ok("open the array", h5d::H5Dopen2(file, name.as_ptr(), H5P_DEFAULT))?;
        let walked = h5d::H5Dchunk_iter(array, H5P_DEFAULT, Some(note), (&raw mut found).cast());
        ok("walk over chunks", i64::from(walked))?;
        h5d::H5Dclose(array);
        h5f::H5Fclose(file);
    }
    Ok(found.chunks)
}

/// A file open with a page buffer.
pub struct Paged(hid_t);

impl Paged {
    /// Creates a file whose space is handed out in pages, and leaves it open.
    pub fn create(path: &Path) -> Result<Self, Failed> {
        let path = text(path)?;
        let _lock = LOCK.lock();
        // SAFETY: the lock is held, the name ends in NUL, lists are live until closed.
        unsafe {
            h5::H5open();
            let creation = ok("make a list", h5p::H5Pcreate(*h5p::H5P_CLS_FILE_CREATE))?;
            let access = ok("make a list", h5p::H5Pcreate(*h5p::H5P_CLS_FILE_ACCESS))?;
            let paged = h5f::H5F_fspace_strategy_t::H5F_FSPACE_STRATEGY_PAGE;
            h5p::H5Pset_file_space_strategy(creation, paged, 0, 1);
            h5p::H5Pset_file_space_page_size(creation, 4096);
            let status = h5p::H5Pset_page_buffer_size(access, 64 << 10, 0, 0);
            ok("ask for a page buffer", i64::from(status))?;
            let file = h5f::H5Fcreate(path.as_ptr(), h5f::H5F_ACC_TRUNC, creation, access);
            h5p::H5Pclose(creation);
            h5p::H5Pclose(access);
            let file = ok("create the file", file)?;
            h5f::H5Fflush(file, h5f::H5F_scope_t::H5F_SCOPE_GLOBAL); // others see that it is one
            Ok(Self(file))
        }
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        let _lock = LOCK.lock();
        // SAFETY: the lock is held and the file open.
        unsafe { h5f::H5Fclose(self.0) };
    }
}
