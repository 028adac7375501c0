//! Direct path of an open dataset: elements bypass libhdf5, which keeps the metadata.
//!
//! All handles of a dataset in this process share one [`DirectDataset`], found by libhdf5's file number and object
//! token.

use super::dataset_filters;
use super::dataspace;
use super::datatype::Stored;
use super::errors;
use super::library::{self, Id, count, done, hid_t, truth};
use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, hsize_t};
use hdf5_metno_sys::h5d::{self, H5D_fill_value_t, H5D_layout_t, H5D_space_status_t};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5f, h5i, h5o, h5p, h5t};
use hyperslab_core::{Datatype, Dims, Error, ErrorKind, MAX_RANK, Result, Selection};
use hyperslab_h5direct::{ChunkAddress, DatasetInfo, DirectDataset, Layout, Limits, MetadataBackend, WriteGuard};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError, Weak};

const DOING: &str = "open array";

unsafe extern "C" {
    /// Exists since HDF5 1.10.2; missing in the bindings.
    fn H5Dget_chunk_storage_size(dataset: hid_t, offset: *const hsize_t, bytes: *mut hsize_t) -> c_int;
}

/// Chunk index "extensible array", of datasets with one unlimited dimension; missing in the bindings.
const EXTENSIBLE: h5d::H5D_chunk_index_t = 4;

/// File number and object token.
type Key = (u64, [u8; 16]);

static DATASETS: Mutex<Option<HashMap<Key, Weak<DirectDataset>>>> = Mutex::new(None);

/// Number of library-only handles of each dataset.
static LIBRARY_ONLY: Mutex<BTreeMap<Key, u64>> = Mutex::new(BTreeMap::new());

/// Registration of a handle that uses libhdf5 without coherence. While one exists, its dataset gets no direct path.
#[derive(Debug)]
pub(super) struct LibraryOnly(Key);

impl LibraryOnly {
    /// Call under libhdf5's lock, in the same critical section as the lookup that found no direct path.
    pub(super) fn new(dataset: &Id) -> Result<Self> {
        let key = key(dataset)?;
        *LIBRARY_ONLY.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
        Ok(Self(key))
    }

    fn has(key: &Key) -> bool {
        LIBRARY_ONLY.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }
}

impl Drop for LibraryOnly {
    fn drop(&mut self) {
        let mut handles = LIBRARY_ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut handles) = handles.entry(self.0) {
            *handles.get_mut() -= 1;
            if *handles.get() == 0 {
                handles.remove();
            }
        }
    }
}

/// What the direct path of a file's datasets needs.
#[derive(Debug, Clone)]
pub(super) struct DirectAccess {
    /// The file, by a descriptor of its own.
    pub(super) file: Arc<File>,
    pub(super) limits: Limits,
    /// What writes go through, if the file is being recovered.
    pub(super) guard: Option<Arc<dyn WriteGuard>>,
    /// Whether no other process writes the file while it is open here.
    pub(super) single_writer: bool,
    /// Whether the file is open by the MPI-IO driver. libhdf5 has neither sieve nor page buffer then, and querying the
    /// file access list would be collective: it duplicates the communicator.
    pub(super) by_mpi: bool,
}

/// Result of [`attach`].
#[derive(Debug)]
pub(super) enum Attach {
    /// The dataset uses the direct path.
    Direct(Arc<DirectDataset>),
    /// libhdf5 transfers its elements, for this reason.
    Library(String),
}

/// The direct path that another handle of this process uses, if any. Call under libhdf5's lock.
pub(super) fn find(dataset: &Id) -> Result<Option<Arc<DirectDataset>>> {
    let datasets = DATASETS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(datasets) = datasets.as_ref().filter(|datasets| !datasets.is_empty()) else { return Ok(None) };
    Ok(datasets.get(&key(dataset)?).and_then(Weak::upgrade))
}

/// Finds or creates the direct path of a dataset. Call under libhdf5's lock.
pub(super) fn attach(
    name: &str,
    dataset: &Id,
    stored: &Stored,
    shape: &[u64],
    access: &DirectAccess,
) -> Result<Attach> {
    let key = key(dataset)?;
    let mut datasets = DATASETS.lock().unwrap_or_else(PoisonError::into_inner);
    let datasets = datasets.get_or_insert_default();
    datasets.retain(|_, direct| direct.strong_count() > 0);
    if let Some(direct) = datasets.get(&key).and_then(Weak::upgrade) {
        return Ok(Attach::Direct(direct));
    }
    if let Some(reason) = fallback_reason(dataset, stored, access.by_mpi)? {
        return Ok(Attach::Library(reason));
    }
    if LibraryOnly::has(&key) {
        return Ok(Attach::Library("it is open elsewhere in this process without the data plane".into()));
    }
    // SAFETY: the dataset is live; the list is closed by `Id`.
    let list = Id::take(DOING, unsafe { h5d::H5Dget_create_plist(dataset.raw()) })?;
    let info = DatasetInfo {
        name: name.into(),
        file: access.file.clone(),
        dtype: stored.dtype.clone(),
        // SAFETY: the list is live.
        layout: match unsafe { h5p::H5Pget_layout(list.raw()) } {
            H5D_layout_t::H5D_CHUNKED => Layout::Chunked(super::array::chunk(&list)?),
            _ => Layout::Contiguous,
        },
        filters: dataset_filters::filters(&list)?,
        fill: super::array::fill_value(&list, stored)?,
        single_writer: access.single_writer,
        guard: access.guard.clone(),
        grows_unallocated: false,
    };
    match DirectDataset::new(info, shape, access.limits)? {
        Ok(direct) => {
            let direct = Arc::new(direct);
            datasets.insert(key, Arc::downgrade(&direct));
            Ok(Attach::Direct(direct))
        }
        Err(reason) => Ok(Attach::Library(reason.to_string())),
    }
}

fn key(dataset: &Id) -> Result<Key> {
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut info: h5o::H5O_info2_t = unsafe { std::mem::zeroed() };
    // SAFETY: the dataset is live, and there is room for what is asked for.
    done(DOING, unsafe { h5o::H5Oget_info3(dataset.raw(), &raw mut info, h5o::H5O_INFO_BASIC) })?;
    // SAFETY: a token is 16 bytes.
    let token = unsafe { std::mem::transmute_copy::<h5o::H5O_token_t, [u8; 16]>(&info.token) };
    Ok((info.fileno, token))
}

/// Why a dataset cannot use the direct path, as far as its property lists say; `None` if it can. Independent.
fn fallback_reason(dataset: &Id, stored: &Stored, by_mpi: bool) -> Result<Option<String>> {
    let because = |text: &str| Ok(Some(text.to_owned()));
    if stored.dtype == Datatype::VariableString {
        return because("its strings have variable length");
    }
    // SAFETY: the dataset is live; identifiers made here are closed by `Id`; places to write to are variables.
    unsafe {
        let list = Id::take(DOING, h5d::H5Dget_create_plist(dataset.raw()))?;
        let layout = h5p::H5Pget_layout(list.raw());
        match layout {
            H5D_layout_t::H5D_CONTIGUOUS if count(DOING, h5p::H5Pget_external_count(list.raw()))? > 0 => {
                return because("its elements are in external files");
            }
            H5D_layout_t::H5D_CONTIGUOUS | H5D_layout_t::H5D_CHUNKED => {}
            H5D_layout_t::H5D_COMPACT => return because("compact arrays are part of the metadata"),
            _ => return because("it is a virtual dataset or of an unknown layout"),
        }
        let element = Id::take(DOING, h5d::H5Dget_type(dataset.raw()))?;
        if !truth(DOING, h5t::H5Tequal(element.raw(), stored.memory.raw()))? {
            return because("its elements are not stored as they are in memory");
        }
        if layout == H5D_layout_t::H5D_CHUNKED {
            let mut options = 0;
            done(DOING, h5p::H5Pget_chunk_opts(list.raw(), &raw mut options))?;
            if options != 0 {
                return because("chunks at its edge are stored without filters");
            }
            if allocates_with_filters(&list)? {
                return because("all its chunks are filtered and stored at the first write");
            }
            if lists_chunks_wrongly(dataset)? {
                return because(
                    "libhdf5 does not tell the places of chunks that grow along another dimension than the first",
                );
            }
            let access = Id::take(DOING, h5d::H5Dget_access_plist(dataset.raw()))?;
            let (mut slots, mut bytes, mut w0) = (0, 0, 0.0);
            done(DOING, h5p::H5Pget_chunk_cache(access.raw(), &raw mut slots, &raw mut bytes, &raw mut w0))?;
            if bytes > 0 {
                return because("it is open elsewhere in this process with a chunk cache of libhdf5");
            }
        }
        if by_mpi {
            return Ok(None);
        }
        let file = Id::take(DOING, h5i::H5Iget_file_id(dataset.raw()))?;
        let access = Id::take(DOING, h5f::H5Fget_access_plist(file.raw()))?;
        let (mut sieve, mut pages, mut metadata, mut raw) = (0, 0, 0, 0);
        done(DOING, h5p::H5Pget_sieve_buf_size(access.raw(), &raw mut sieve))?;
        let status = h5p::H5Pget_page_buffer_size(access.raw(), &raw mut pages, &raw mut metadata, &raw mut raw);
        done(DOING, status)?;
        if sieve > 0 && layout == H5D_layout_t::H5D_CONTIGUOUS {
            return because("the file is open elsewhere in this process with a sieve buffer of libhdf5");
        }
        if pages > 0 {
            return because("the file has a page buffer");
        }
    }
    Ok(None)
}

/// Whether the first write makes libhdf5 allocate and filter all chunks: their filter masks would be unknown here, and
/// a written chunk would keep the mask of the one allocated in its place.
fn allocates_with_filters(list: &Id) -> Result<bool> {
    let mut time = h5d::H5D_alloc_time_t::H5D_ALLOC_TIME_DEFAULT;
    // SAFETY: the list is live and the time a variable.
    let filters = unsafe {
        done(DOING, h5p::H5Pget_alloc_time(list.raw(), &raw mut time))?;
        h5p::H5Pget_nfilters(list.raw())
    };
    Ok(time == h5d::H5D_alloc_time_t::H5D_ALLOC_TIME_LATE && count(DOING, filters)? > 0)
}

/// Whether `H5Dchunk_iter` reports wrong coordinates (libhdf5 2.2, `H5D__earray_idx_iterate_cb`): an extensible array
/// numbers its chunks with the unlimited dimension first, which the iteration ignores.
pub(super) fn lists_chunks_wrongly(dataset: &Id) -> Result<bool> {
    let mut index = 0;
    // SAFETY: the dataset is live and the place to write to is a variable; the space is closed by `Id`.
    let space = unsafe {
        done(DOING, h5d::H5Dget_chunk_index_type(dataset.raw(), &raw mut index))?;
        Id::take(DOING, h5d::H5Dget_space(dataset.raw()))?
    };
    let grows = dataspace::extents(&space)?.and_then(|extents| extents.max.iter().position(Option::is_none));
    Ok(index == EXTENSIBLE && grows.is_some_and(|dimension| dimension > 0))
}

/// libhdf5 as the metadata backend of one dataset.
pub(super) struct LibraryMetadata<'a> {
    pub(super) dataset: &'a Id,
    pub(super) stored: &'a Stored,
}

impl LibraryMetadata<'_> {
    fn status(&self) -> Result<H5D_space_status_t> {
        let mut status = H5D_space_status_t::H5D_SPACE_STATUS_NOT_ALLOCATED;
        // SAFETY: the dataset is live and the status is a variable of our own.
        done("transfer", unsafe { h5d::H5Dget_space_status(self.dataset.raw(), &raw mut status) })?;
        Ok(status)
    }

    /// Whether allocating the dataset writes fill values.
    fn allocation_fills(&self) -> Result<bool> {
        let mut defined = H5D_fill_value_t::H5D_FILL_VALUE_UNDEFINED;
        let mut time = h5d::H5D_fill_time_t::H5D_FILL_TIME_IFSET;
        // SAFETY: the dataset is live, the list is closed by `Id`, the rest are variables.
        unsafe {
            let list = Id::take("write", h5d::H5Dget_create_plist(self.dataset.raw()))?;
            done("write", h5p::H5Pfill_value_defined(list.raw(), &raw mut defined))?;
            done("write", h5p::H5Pget_fill_time(list.raw(), &raw mut time))?;
        }
        Ok(match time {
            h5d::H5D_fill_time_t::H5D_FILL_TIME_NEVER => false,
            h5d::H5D_fill_time_t::H5D_FILL_TIME_IFSET => defined == H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED,
            _ => true,
        })
    }

    /// Allocates the dataset by writing zeros to its first element, which is zero or undefined anyway.
    fn allocate(&self) -> Result<()> {
        // SAFETY: the dataset is live; both spaces are closed by `Id`, and have one element selected, for which the
        // buffer has room.
        unsafe {
            let space = Id::take("write", h5d::H5Dget_space(self.dataset.raw()))?;
            let Some(extents) = dataspace::extents(&space)? else { return Ok(()) };
            let rank = extents.shape.len();
            let first = Selection::dense(&Dims::from_elem(0, rank), &Dims::from_elem(1, rank))?;
            let space = dataspace::select(Arc::new(space), &extents.shape, &first)?;
            let memory = dataspace::simple(&Dims::from_elem(1, rank), None)?;
            let element = vec![0u8; self.stored.dtype.size() as usize];
            let kind = self.stored.memory.raw();
            let from = element.as_ptr().cast();
            let status = h5d::H5Dwrite(self.dataset.raw(), kind, memory.raw(), space.raw(), H5P_DEFAULT, from);
            done("write", status)
        }
    }

    fn stored_size(&self, origin: &[u64]) -> Result<u64> {
        let mut bytes: hsize_t = 0;
        // SAFETY: the dataset is live and has as many dimensions as `origin`.
        let status = unsafe { H5Dget_chunk_storage_size(self.dataset.raw(), origin.as_ptr(), &raw mut bytes) };
        done("find chunk", status)?;
        Ok(bytes)
    }
}

/// User data of the chunk iteration.
struct Visit<'a> {
    each: &'a mut dyn FnMut(&[u64], ChunkAddress),
    rank: usize,
}

extern "C" fn visit(
    origin: *const hsize_t,
    mask: c_uint,
    address: haddr_t,
    bytes: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the `Visit` that the walk was started with, whose rank is that of the dataset.
    let (visit, origin) = unsafe {
        let visit = &mut *data.cast::<Visit<'_>>();
        let origin = std::slice::from_raw_parts(origin, visit.rank);
        (visit, origin)
    };
    if address != HADDR_UNDEF {
        (visit.each)(origin, ChunkAddress { address, bytes, mask });
    }
    0
}

/// Calls `each` with the first element and the place of every chunk that is stored. Call under libhdf5's lock.
pub(super) fn for_each_chunk(dataset: &Id, each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
    // SAFETY: the dataset is live; the space is closed by `Id`.
    let space = Id::take("find chunks", unsafe { h5d::H5Dget_space(dataset.raw()) })?;
    let rank = dataspace::extents(&space)?.map_or(0, |extents| extents.shape.len());
    let mut data = Visit { each, rank: rank.min(MAX_RANK) };
    // SAFETY: the dataset is live; the function gets a pointer to `data`, which outlives the call.
    let status = unsafe { h5d::H5Dchunk_iter(dataset.raw(), H5P_DEFAULT, Some(visit), (&raw mut data).cast()) };
    done("find chunks", status)
}

impl MetadataBackend for LibraryMetadata<'_> {
    fn dataset_address(&self, allocate: bool) -> Result<Option<u64>> {
        library::with(|| {
            if self.status()? != H5D_space_status_t::H5D_SPACE_STATUS_ALLOCATED {
                if !allocate || self.allocation_fills()? {
                    return Ok(None);
                }
                self.allocate()?;
            }
            // SAFETY: the dataset is live.
            let offset = unsafe { h5d::H5Dget_offset(self.dataset.raw()) };
            Ok((offset != HADDR_UNDEF).then_some(offset))
        })
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
        library::with(|| for_each_chunk(self.dataset, each))
    }

    fn read_chunk(&self, origin: &[u64], limit: usize, stored: &mut Vec<u8>) -> Result<u32> {
        library::with(|| {
            let bytes = self.stored_size(origin)?;
            if bytes > limit as u64 {
                let message = format!("it is said to have {bytes} bytes, more than its filters can make of it");
                return Err(Error::new(ErrorKind::Corrupt, "read chunk", message));
            }
            stored.resize(bytes as usize, 0);
            let (mut mask, mut room) = (0, stored.len());
            // SAFETY: the dataset is live, `origin` has its dimensions, the buffer as many bytes as stated.
            let status = unsafe {
                h5d::H5Dread_chunk2(
                    self.dataset.raw(),
                    H5P_DEFAULT,
                    origin.as_ptr(),
                    &raw mut mask,
                    stored.as_mut_ptr().cast(),
                    &raw mut room,
                )
            };
            done("read chunk", status).map(|()| mask)
        })
    }

    fn write_chunk(&self, origin: &[u64], stored: &[u8], mask: u32) -> Result<()> {
        let (dataset, from) = (self.dataset.raw(), stored.as_ptr().cast());
        library::with(|| {
            // SAFETY: the dataset is live, `origin` has its dimensions, the buffer as many bytes as stated.
            let status =
                unsafe { h5d::H5Dwrite_chunk(dataset, H5P_DEFAULT, mask, origin.as_ptr(), stored.len(), from) };
            done("write chunk", status)
        })
    }
}

/// Opens a second descriptor of the open file; a duplicate would keep libhdf5's file lock. Call under libhdf5's lock.
///
/// Writable if libhdf5's own descriptor is, since writable handles may share the direct path that uses it.
pub(super) fn reopen(file: &Id) -> Result<File> {
    let mut handle: *mut c_void = std::ptr::null_mut();
    // SAFETY: the file is live and uses the default driver, whose handle is a pointer to its descriptor.
    let (descriptor, mode) = unsafe {
        done("open", h5f::H5Fget_vfd_handle(file.raw(), H5P_DEFAULT, &raw mut handle))?;
        if handle.is_null() {
            return Err(errors::last("open"));
        }
        let descriptor = *handle.cast::<c_int>();
        (descriptor, libc::fcntl(descriptor, libc::F_GETFL))
    };
    let writable = mode >= 0 && mode & libc::O_ACCMODE == libc::O_RDWR;
    let path = format!("/proc/self/fd/{descriptor}");
    File::options().read(true).write(writable).open(path).map_err(|e| Error::io("open", e))
}
