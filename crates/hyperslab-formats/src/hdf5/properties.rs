//! Property lists: all settings passed to libhdf5.

use super::alignment;
use super::dataset_filters;
use super::driver::Driver;
use super::library::{Id, done, hid_t};
use super::mpio;
use super::options::{Locking, Options};
use super::ranks::Ranks;
use super::strings::Pointers;
use hdf5_metno_sys::h5d::{
    H5D_CHUNK_CACHE_NBYTES_DEFAULT, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, H5D_CHUNK_CACHE_W0_DEFAULT, H5D_alloc_time_t,
    H5D_fill_time_t, H5D_layout_t,
};
use hdf5_metno_sys::h5f::H5F_LIBVER_LATEST;
use hdf5_metno_sys::h5p;
use hdf5_metno_sys::h5t::H5T_cset_t;
use hdf5_metno_sys::h5z::H5Z_FLAG_OPTIONAL;
use hyperslab_core::storage::{AllocationTime, FillTime, StoredArray, StoredLayout};
use hyperslab_core::{ArraySpec, Datatype, Filter, Result};
use hyperslab_h5direct::FilterSpec;

/// Kept, and found by it.
const CREATION_ORDER: u32 = h5p::H5P_CRT_ORDER_TRACKED | h5p::H5P_CRT_ORDER_INDEXED;

/// An empty list of a class. Call under the lock, as everything here.
pub(super) fn new(operation: &'static str, class: hid_t) -> Result<Id> {
    // SAFETY: `class` is one of libhdf5's own property classes.
    Id::take(operation, unsafe { h5p::H5Pcreate(class) })
}

/// How files are opened and created.
pub(super) fn file_access(options: &Options, driver: Driver) -> Result<Id> {
    let list = new("open", *h5p::H5P_CLS_FILE_ACCESS)?;
    match driver {
        Driver::Default => {}
        Driver::Mpio(handle) => mpio::use_mpio(&list, handle, options)?,
        Driver::Subfiling(handle) => mpio::use_subfiling(&list, handle, options)?,
    }
    if driver != Driver::Default && options.collective_metadata {
        mpio::collective_metadata_writes(&list)?;
    }
    let set = |status: i32| done("open", status);
    // SAFETY: `list` is a live file access list; the calls only store values in it.
    unsafe {
        if let Some(align) = options.rules.align {
            set(h5p::H5Pset_alignment(list.raw(), alignment::threshold(options, align), align))?;
        }
        if let Some(low) = options.libver {
            set(h5p::H5Pset_libver_bounds(list.raw(), low, H5F_LIBVER_LATEST))?;
        }
        if let Some(size) = options.meta_block.or(options.rules.aligns().then_some(alignment::META_BLOCK)) {
            set(h5p::H5Pset_meta_block_size(list.raw(), size))?;
        }
        if let Some(size) = options.sieve.or(options.plane.then_some(0)) {
            set(h5p::H5Pset_sieve_buf_size(list.raw(), size as usize))?;
        }
        if options.abandoned {
            let mut clear = true;
            set(h5p::H5Pset(list.raw(), c"clear_status_flags".as_ptr(), (&raw mut clear).cast()))?;
        }
        if let Some(locking) = options.locking {
            let (lock, ignore) = match locking {
                Locking::Yes => (true, false),
                Locking::No => (false, false),
                Locking::BestEffort => (true, true),
            };
            set(h5p::H5Pset_file_locking(list.raw(), lock.into(), ignore.into()))?;
        }
    }
    Ok(list)
}

/// How groups and arrays are linked: groups above are made, names are UTF-8.
pub(super) fn link_creation() -> Result<Id> {
    let list = new("open", *h5p::H5P_CLS_LINK_CREATE)?;
    // SAFETY: `list` is a live link creation list.
    unsafe {
        done("open", h5p::H5Pset_create_intermediate_group(list.raw(), 1))?;
        done("open", h5p::H5Pset_char_encoding(list.raw(), H5T_cset_t::H5T_CSET_UTF8))?;
    }
    Ok(list)
}

/// How files and their roots are created.
pub(super) fn file_creation(options: &Options) -> Result<Id> {
    let list = new("create", *h5p::H5P_CLS_FILE_CREATE)?;
    if options.netcdf {
        track_links(&list)?;
    }
    Ok(list)
}

/// How groups are created.
pub(super) fn group_creation(options: &Options) -> Result<Id> {
    let list = new("create group", *h5p::H5P_CLS_GROUP_CREATE)?;
    if options.netcdf {
        track_links(&list)?;
    }
    Ok(list)
}

/// Keeps the order in which links and attributes are made, without which netcdf-c changes no file.
fn track_links(list: &Id) -> Result<()> {
    const DOING: &str = "create group";
    // SAFETY: `list` is a live creation list of files or groups.
    done(DOING, unsafe { h5p::H5Pset_link_creation_order(list.raw(), CREATION_ORDER) })?;
    track_order(DOING, list)
}

/// Keeps the order in which attributes are made, and no times.
pub(super) fn track_order(operation: &'static str, list: &Id) -> Result<()> {
    // SAFETY: `list` is a live creation list of objects.
    unsafe {
        done(operation, h5p::H5Pset_attr_creation_order(list.raw(), CREATION_ORDER))?;
        done(operation, h5p::H5Pset_obj_track_times(list.raw(), 0))
    }
}

/// How attributes are named: in UTF-8.
pub(super) fn attribute_creation() -> Result<Id> {
    let list = new("set attribute", *h5p::H5P_CLS_ATTRIBUTE_CREATE)?;
    // SAFETY: `list` is a live attribute creation list.
    unsafe { done("set attribute", h5p::H5Pset_char_encoding(list.raw(), H5T_cset_t::H5T_CSET_UTF8))? };
    Ok(list)
}

/// How objects are opened in calls that all ranks make. Reading metadata together is a matter of these lists and not of
/// the file's, because some calls of the format are of one rank alone.
pub(super) fn object_access(options: &Options, ranks: &Ranks) -> Result<Id> {
    access(*h5p::H5P_CLS_LINK_ACCESS, options, ranks)
}

fn access(class: hid_t, options: &Options, ranks: &Ranks) -> Result<Id> {
    let list = new("open", class)?;
    if ranks.are_processes() && options.collective_metadata {
        mpio::collective_metadata_reads(&list)?;
    }
    Ok(list)
}

/// How arrays are opened: as other objects, and the chunk cache.
pub(super) fn array_access(options: &Options, ranks: &Ranks, writable: bool) -> Result<Id> {
    let list = access(*h5p::H5P_CLS_DATASET_ACCESS, options, ranks)?;
    if options.plane || ranks.are_processes() && writable {
        // No chunk cache: it would hide direct writes. And libhdf5 2.2 does not invalidate cached filtered chunks after
        // collective writes of other processes.
        // SAFETY: `list` is a live dataset access list.
        unsafe { done("open", h5p::H5Pset_chunk_cache(list.raw(), 0, 0, 0.0))? };
    } else if options.cache.is_some() || options.cache_slots.is_some() || options.cache_w0.is_some() {
        let slots = options.cache_slots.map_or(H5D_CHUNK_CACHE_NSLOTS_DEFAULT, |n| n as usize);
        let bytes = options.cache.map_or(H5D_CHUNK_CACHE_NBYTES_DEFAULT, |n| n as usize);
        let w0 = options.cache_w0.map_or(f64::from(H5D_CHUNK_CACHE_W0_DEFAULT), |percent| percent as f64 / 100.0);
        // SAFETY: `list` is a live dataset access list.
        unsafe { done("open", h5p::H5Pset_chunk_cache(list.raw(), slots, bytes, w0))? };
    }
    Ok(list)
}

/// How an array is created. `memory_type` describes the bytes of the fill value, `shared` says whether processes share
/// the file.
pub(super) fn array_creation(
    spec: &ArraySpec,
    storage: &StoredArray,
    options: &Options,
    memory_type: hid_t,
    shared: bool,
) -> Result<Id> {
    const DOING: &str = "create array";
    let list = new(DOING, *h5p::H5P_CLS_DATASET_CREATE)?;
    if options.netcdf {
        track_order(DOING, &list)?;
    }
    let set = |status: i32| done(DOING, status);
    // SAFETY: `list` is a live dataset creation list; the fill value has the size of its type (`ArraySpec::check`),
    // the chunk as many extents as stated.
    unsafe {
        match &storage.layout {
            StoredLayout::Contiguous => set(h5p::H5Pset_layout(list.raw(), H5D_layout_t::H5D_CONTIGUOUS))?,
            StoredLayout::Compact => set(h5p::H5Pset_layout(list.raw(), H5D_layout_t::H5D_COMPACT))?,
            StoredLayout::Chunks(chunk) | StoredLayout::Shards { chunk, .. } => {
                set(h5p::H5Pset_chunk(list.raw(), chunk.len() as i32, chunk.as_ptr()))?;
            }
        }
        for filter in &storage.filters {
            match filter {
                Filter::Deflate(level) => set(h5p::H5Pset_deflate(list.raw(), u32::from(*level)))?,
                Filter::Shuffle => set(h5p::H5Pset_shuffle(list.raw()))?,
                Filter::Fletcher32 => set(h5p::H5Pset_fletcher32(list.raw()))?,
                registered => {
                    let chunk = storage.layout.chunk().map_or(&[][..], |chunk| chunk.as_slice());
                    let FilterSpec { id, optional, parameters } =
                        dataset_filters::from_filter(*registered, &spec.dtype, chunk)?;
                    let flags = if optional { H5Z_FLAG_OPTIONAL } else { 0 };
                    let (number, values) = (parameters.len(), parameters.as_ptr());
                    set(h5p::H5Pset_filter(list.raw(), id as i32, flags, number, values))?;
                }
            }
        }
        if spec.dtype == Datatype::VariableString {
            // libhdf5 makes no such dataset without fill values, which are null.
            set(h5p::H5Pset_fill_time(list.raw(), H5D_fill_time_t::H5D_FILL_TIME_IFSET))?;
            if let Some(text) = &spec.fill_value {
                let pointer = Pointers::new([text.as_slice()]);
                set(h5p::H5Pset_fill_value(list.raw(), memory_type, pointer.as_ptr().cast()))?;
            }
        } else if let Some(fill) = &spec.fill_value {
            set(h5p::H5Pset_fill_value(list.raw(), memory_type, fill.as_ptr().cast()))?;
        }
        if let Some(time) = options.rules.fill.filter(|_| spec.dtype != Datatype::VariableString) {
            set(h5p::H5Pset_fill_time(list.raw(), fill_time(time)))?;
        }
        // libhdf5 does so anyway among processes, but the list of an array made in this process would not say so.
        let early = shared && storage.filters.is_empty();
        let time = if early { Some(AllocationTime::Early) } else { storage.allocation };
        if let Some(time) = time {
            set(h5p::H5Pset_alloc_time(list.raw(), allocation_time(time)))?;
        }
    }
    Ok(list)
}

fn fill_time(time: FillTime) -> H5D_fill_time_t {
    match time {
        FillTime::IfSet => H5D_fill_time_t::H5D_FILL_TIME_IFSET,
        FillTime::Allocation => H5D_fill_time_t::H5D_FILL_TIME_ALLOC,
        FillTime::Never => H5D_fill_time_t::H5D_FILL_TIME_NEVER,
    }
}

fn allocation_time(time: AllocationTime) -> H5D_alloc_time_t {
    match time {
        AllocationTime::Default => H5D_alloc_time_t::H5D_ALLOC_TIME_DEFAULT,
        AllocationTime::Early => H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY,
        AllocationTime::Late => H5D_alloc_time_t::H5D_ALLOC_TIME_LATE,
        AllocationTime::Incremental => H5D_alloc_time_t::H5D_ALLOC_TIME_INCR,
    }
}
