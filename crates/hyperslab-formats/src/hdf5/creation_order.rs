//! In which order the objects and attributes of an HDF5 file were made, where the file keeps it.

use super::attribute;
use super::dimension_scales;
use super::errors;
use super::library::{Id, c_text};
use hdf5_metno_sys::h5l::{self, H5L_info2_t};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hyperslab_core::Result;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::path::Path;

const DOING: &str = "read creation order";

/// Groups and arrays, each with its attributes. What is not kept is sorted by name.
pub(crate) fn creation_order(path: &Path) -> Result<Vec<(String, Vec<String>)>> {
    dimension_scales::look_at(path, |file| {
        let objects: Vec<String> = file.objects()?.into_iter().map(|(path, _)| path).collect();
        let mut numbers = HashMap::new();
        for path in objects.iter().filter(|path| !path.is_empty()) {
            numbers.insert(path.as_str(), number(file.id(), path)?);
        }
        let key = |path: &String| -> Vec<(i64, String)> {
            let ends = path.match_indices('/').map(|(end, _)| end).chain((!path.is_empty()).then_some(path.len()));
            ends.map(|end| (numbers.get(&path[..end]).copied().flatten().unwrap_or(i64::MAX), path[..end].to_owned()))
                .collect()
        };
        let mut order = objects.clone();
        order.sort_by_cached_key(key);
        let with_attributes = |path: String| {
            let object = file.object(&path)?;
            attribute::names_in_order(object.id()).map(|names| (path, names))
        };
        order.into_iter().map(with_attributes).collect()
    })
}

/// The number of a link among those of its group, if the group keeps it.
fn number(file: &Id, path: &str) -> Result<Option<i64>> {
    let name = c_text(DOING, path)?;
    let mut info = MaybeUninit::<H5L_info2_t>::zeroed();
    // SAFETY: the file is live, the name ends in NUL, libhdf5 fills the structure when it succeeds.
    unsafe {
        if h5l::H5Lget_info2(file.raw(), name.as_ptr(), info.as_mut_ptr(), H5P_DEFAULT) < 0 {
            return Err(errors::last(DOING));
        }
        let info = info.assume_init_ref();
        Ok((u32::from(info.corder_valid) != 0).then_some(info.corder))
    }
}
