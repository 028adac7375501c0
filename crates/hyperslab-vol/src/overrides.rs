//! Storage in the place of what the program asks for (`HYPERSLAB_OVERRIDES`): `hyperslab tune` tries a program with other
//! chunks by it. The lists of the program stay as they are; libhdf5 gets changed copies.

use crate::accel::object_name;
use crate::host::Host;
use crate::host::api::{Const, Herr, Hid, Text};
use crate::object::{FILE, Object};
use crate::settings::Settings;
use hyperslab_core::{DatasetOverride, Filter, LayoutOverride, StorageOverrides};
use std::ffi::{CStr, c_int};
use std::path::Path;
use std::sync::atomic::Ordering;

const GROUP: c_int = 2;
const CONTIGUOUS: c_int = 1;
const ALL_FILTERS: c_int = 0;
/// Objects that are smaller than this are not aligned.
const ALIGNED_FROM: u64 = 64 << 10;

/// Changed copies of a dataset's creation and access lists.
pub(crate) struct Lists {
    host: &'static Host,
    creation: Option<Hid>,
    access: Option<Hid>,
}

impl Lists {
    /// For a dataset that is to be created, or opened (`creation` is `None`); `None` if nothing of it is overridden, or it
    /// has no name yet. `place`: what HDF5 says of the parent.
    ///
    /// # Safety
    /// Inside a call of the library; the parent and the lists are open.
    pub(crate) unsafe fn of(
        parent: &Object,
        (place, path): (Const, Text),
        creation: Option<Hid>,
        access: Hid,
    ) -> Option<Self> {
        let file = parent.file.as_ref()?;
        let (_, overrides) = file.settings.overrides.as_ref()?;
        let host = parent.host;
        host.preserving_error_stack(|| {
            // SAFETY: the caller's.
            let wanted = unsafe { wanted(parent, overrides, &file.path, (place, path)) }?;
            let mut lists = Self { host, creation: None, access: None };
            // SAFETY: the lists are open, the copies this one's own.
            let done = unsafe { lists.change(wanted, creation, access) };
            done.then_some(lists)
        })
    }

    unsafe fn change(&mut self, wanted: &DatasetOverride, creation: Option<Hid>, access: Hid) -> bool {
        let host = self.host;
        // SAFETY: lists are open; 0 stands for the usual one.
        unsafe {
            if let Some(given) = creation.filter(|_| wanted.layout.is_some() || wanted.filters.is_some()) {
                let class = host.dataset_creation_class();
                let list = if given == 0 { host.H5Pcreate(class) } else { host.H5Pcopy(given) };
                if list < 0 {
                    return false;
                }
                self.creation = Some(list);
                if filter(host, list, wanted.filters.as_deref()) < 0 || lay_out(host, list, wanted.layout.as_ref()) < 0
                {
                    host.say_once(&format!("the storage of {} in {} cannot be overridden", wanted.name, wanted.file));
                    return false;
                }
                host.stats.overridden.fetch_add(1, Ordering::Relaxed);
            }
            if let Some(bytes) = wanted.cache {
                let class = host.dataset_access_class();
                let list = if access == 0 { host.H5Pcreate(class) } else { host.H5Pcopy(access) };
                if list < 0 {
                    return false;
                }
                self.access = Some(list);
                let (mut slots, mut known, mut w0) = (0, 0, 0.75);
                host.H5Pget_chunk_cache(list, &raw mut slots, &raw mut known, &raw mut w0);
                if host.H5Pset_chunk_cache(list, slots, bytes as usize, w0) < 0 {
                    return false;
                }
                host.stats.overridden.fetch_add(u64::from(self.creation.is_none()), Ordering::Relaxed);
            }
        }
        true
    }

    /// The lists to be used, in the place of these.
    pub(crate) fn or(&self, creation: Hid, access: Hid) -> (Hid, Hid) {
        (self.creation.unwrap_or(creation), self.access.unwrap_or(access))
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        // SAFETY: the copies are this one's own; it ends inside a call of the library.
        self.host.preserving_error_stack(|| unsafe {
            for list in self.creation.iter().chain(&self.access) {
                self.host.H5Pclose(*list);
            }
        });
    }
}

/// Changes a file access list as the overrides of the file say.
///
/// # Safety
/// Inside a call of the library; the list is open and not the program's.
pub(crate) unsafe fn of_file(host: &'static Host, settings: &Settings, path: &Path, list: Hid) {
    let Some((_, overrides)) = &settings.overrides else { return };
    let file = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let Some(wanted) = overrides.of_file(&file) else { return };
    // SAFETY: the list is open, places to write to are variables.
    host.preserving_error_stack(|| unsafe {
        let mut done = true;
        if let Some(bytes) = wanted.cache {
            let (mut metadata, mut slots, mut known, mut w0) = (0, 0, 0, 0.75);
            host.H5Pget_cache(list, &raw mut metadata, &raw mut slots, &raw mut known, &raw mut w0);
            done &= host.H5Pset_cache(list, metadata, slots, bytes as usize, w0) >= 0;
        }
        if let Some(bytes) = wanted.align {
            done &= host.H5Pset_alignment(list, bytes.min(ALIGNED_FROM), bytes) >= 0;
        }
        if done {
            host.stats.overridden.fetch_add(1, Ordering::Relaxed);
        } else {
            host.say_once(&format!("the storage of {} cannot be overridden", wanted.file));
        }
    });
}

unsafe fn wanted<'a>(
    parent: &Object,
    overrides: &'a StorageOverrides,
    file: &Path,
    (place, path): (Const, Text),
) -> Option<&'a DatasetOverride> {
    if path.is_null() || overrides.datasets.is_empty() {
        return None;
    }
    // SAFETY: the library passes a string that ends.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    let file = file.file_name()?.to_str()?;
    if path.starts_with('/') {
        return overrides.of_dataset(file, path);
    }
    // SAFETY: a place begins with the kind of the object that it is seen from.
    let above = match unsafe { *place.cast::<c_int>() } {
        FILE => String::new(),
        // SAFETY: the parent is open, and of this kind.
        GROUP => unsafe { object_name(parent.host, parent.handle(), GROUP) }.unwrap_or_default(),
        _ => return None,
    };
    overrides.of_dataset(file, &format!("{above}/{path}"))
}

unsafe fn filter(host: &Host, list: Hid, filters: Option<&[Filter]>) -> Herr {
    let Some(filters) = filters else { return 0 };
    // SAFETY: the list is open and ours.
    unsafe {
        if host.H5Pget_nfilters(list) > 0 && host.H5Premove_filter(list, ALL_FILTERS) < 0 {
            return -1;
        }
        for filter in filters {
            let status = match filter {
                Filter::Shuffle => host.H5Pset_shuffle(list),
                Filter::Deflate(level) => host.H5Pset_deflate(list, (*level).into()),
                Filter::Fletcher32 => host.H5Pset_fletcher32(list),
                _ => -1,
            };
            if status < 0 {
                return status;
            }
        }
    }
    0
}

unsafe fn lay_out(host: &Host, list: Hid, layout: Option<&LayoutOverride>) -> Herr {
    // SAFETY: the list is open and ours, and there are as many extents as dimensions.
    unsafe {
        match layout {
            None => 0,
            Some(LayoutOverride::Contiguous) => host.H5Pset_layout(list, CONTIGUOUS),
            Some(LayoutOverride::Chunked(chunk)) => host.H5Pset_chunk(list, chunk.len() as c_int, chunk.as_ptr()),
        }
    }
}
