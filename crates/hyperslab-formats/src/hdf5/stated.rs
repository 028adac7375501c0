//! The filters of a dataset, in the words of its file.

use super::library::{Id, count, done};
use hdf5_metno_sys::h5p;
use hdf5_metno_sys::h5z::H5Z_FLAG_OPTIONAL;
use hyperslab_core::{Error, Result};
use hyperslab_plane::Stated;

/// The most parameters that a filter may have here.
const MOST_PARAMETERS: usize = 256;

/// Every filter of a creation list, in the order of writing. Call under the lock.
pub(super) fn filters(list: &Id) -> Result<Vec<Stated>> {
    const DOING: &str = "describe array";
    // SAFETY: the list is live.
    let number = count(DOING, unsafe { h5p::H5Pget_nfilters(list.raw()) })?;
    let mut filters = Vec::with_capacity(number.min(32));
    for at in 0..number as u32 {
        let (mut flags, mut config, mut values, mut used) = (0, 0, [0u32; MOST_PARAMETERS], MOST_PARAMETERS);
        // SAFETY: the list is live, the index in range, `values` has the room that `used` states, no name is wanted.
        let id = unsafe {
            h5p::H5Pget_filter2(
                list.raw(),
                at,
                &raw mut flags,
                &raw mut used,
                values.as_mut_ptr(),
                0,
                std::ptr::null_mut(),
                &raw mut config,
            )
        };
        done(DOING, id)?;
        if used > MOST_PARAMETERS {
            return Err(Error::unsupported(DOING, format!("HDF5 filter {id} has {used} parameters")));
        }
        let optional = flags & H5Z_FLAG_OPTIONAL != 0;
        filters.push(Stated { id: id as u32, optional, parameters: values[..used].to_vec() });
    }
    Ok(filters)
}
