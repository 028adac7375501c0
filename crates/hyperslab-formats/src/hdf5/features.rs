//! What the libhdf5 of this build can do.

use super::{library, mpio};
use hdf5_metno_sys::h5::H5is_library_threadsafe;
use hdf5_metno_sys::h5z::{H5Z_FILTER_DEFLATE, H5Z_FILTER_SZIP, H5Zfilter_avail};

/// Features by name, and whether they are there.
pub fn features() -> Vec<(&'static str, bool)> {
    library::with(|| {
        let mut thread_safe = 0;
        // SAFETY: one place to write an answer to; filters are asked for by number.
        let [thread_safe, deflate, szip] = unsafe {
            H5is_library_threadsafe(&raw mut thread_safe);
            let filter = |number| H5Zfilter_avail(number) > 0;
            [thread_safe != 0, filter(H5Z_FILTER_DEFLATE), filter(H5Z_FILTER_SZIP)]
        };
        vec![
            ("MPI", cfg!(feature = "parallel-hdf5")),
            ("subfiling", mpio::has_subfiling()),
            ("deflate", deflate),
            ("szip", szip),
            ("thread safety", thread_safe),
        ]
    })
}
