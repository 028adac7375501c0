//! Where the bytes of an HDF5 file lie, as libhdf5 tells.

use super::array;
use super::dataset_filters;
use super::dataspace;
use super::datatype;
use super::dimension_scales::{self, Object};
use super::direct_access::{for_each_chunk, lists_chunks_wrongly};
use super::library::{Id, done, hid_t};
use crate::file_map::{FileMap, FilePiece, MappedArray};
use hdf5_metno_sys::h5::HADDR_UNDEF;
use hdf5_metno_sys::h5d::{self, H5D_layout_t};
use hdf5_metno_sys::{h5f, h5o, h5p};
use hyperslab_core::{Dims, Error, Result};
use std::path::Path;

const DOING: &str = "map file";
/// The header, and the sizes of indices and heaps.
const HEADER_AND_INDICES: u32 = 0x18;

/// `H5O_native_info_t`, whose fields the bindings hide.
#[repr(C)]
#[derive(Debug, Default)]
struct NativeInfo {
    version_and_counts: [u32; 4],
    header: u64,
    header_parts: [u64; 3],
    messages: [u64; 2],
    /// Index and heap of the object, then of its attributes.
    indices: [u64; 4],
}

/// The map of the file at `path`.
pub(crate) fn file_map(path: &Path) -> Result<FileMap> {
    let size = std::fs::metadata(path).map_err(|e| Error::io(DOING, e).target(path.display()))?.len();
    dimension_scales::look_at(path, |file| {
        let mut map = FileMap { size, ..FileMap::default() };
        let mut metadata = superblock(file.id())?;
        map.add(FilePiece { start: 0, len: metadata, array: None, origin: Dims::new() })?;
        for (path, address) in file.objects()? {
            let object = file.object(&path)?;
            let info = native_info(&object)?;
            metadata += info.header + info.indices.iter().sum::<u64>();
            map.add(FilePiece { start: address, len: info.header, array: None, origin: Dims::new() })?;
            if object.is_dataset() {
                elements(&mut map, path, &object).map_err(|error| error.target(path_of(&map)))?;
            }
        }
        map.metadata = Some(metadata);
        Ok(map.sorted())
    })
}

fn path_of(map: &FileMap) -> String {
    map.arrays.last().map(|array| array.name.clone()).unwrap_or_default()
}

fn superblock(file: &Id) -> Result<u64> {
    let mut info = h5f::H5F_info2_t::default();
    // SAFETY: the file is live and the structure a variable of our own.
    done(DOING, unsafe { h5f::H5Fget_info2(file.raw(), &raw mut info) })?;
    Ok(info.super_.super_size + info.super_.super_ext_size)
}

fn native_info(object: &Object) -> Result<NativeInfo> {
    let mut info = NativeInfo::default();
    let into = (&raw mut info).cast::<h5o::H5O_native_info_t>();
    const { assert!(size_of::<NativeInfo>() == size_of::<h5o::H5O_native_info_t>()) };
    // SAFETY: the object is live; the structure has the form that libhdf5 fills.
    done(DOING, unsafe { h5o::H5Oget_native_info(raw(object), into, HEADER_AND_INDICES) })?;
    Ok(info)
}

fn raw(object: &Object) -> hid_t {
    object.id().raw()
}

/// Adds the pieces of a dataset.
fn elements(map: &mut FileMap, path: String, object: &Object) -> Result<()> {
    let dataset = object.id();
    // SAFETY: the dataset is live; what is made is closed by `Id`.
    let (space, list, kind) = unsafe {
        let space = Id::take(DOING, h5d::H5Dget_space(dataset.raw()))?;
        let list = Id::take(DOING, h5d::H5Dget_create_plist(dataset.raw()))?;
        (space, list, Id::take(DOING, h5d::H5Dget_type(dataset.raw()))?)
    };
    let Some(extents) = dataspace::extents(&space)? else { return Ok(()) };
    let number = Some(map.arrays.len());
    let stored = datatype::read(&kind).ok();
    // SAFETY: the list and the dataset are live.
    let (layout, offset) = unsafe { (h5p::H5Pget_layout(list.raw()), h5d::H5Dget_offset(dataset.raw())) };
    let plain = stored.is_some() && dataset_filters::filters(&list).is_ok_and(|filters| filters.is_empty());
    let chunked = layout == H5D_layout_t::H5D_CHUNKED;
    let block = if chunked { array::chunk(&list)? } else { extents.shape.clone() };
    // Where libhdf5 tells other coordinates than those of the chunks, no element has a place.
    let plain = plain && !(chunked && lists_chunks_wrongly(dataset)?);
    map.arrays.push(MappedArray { name: path, block, plain });
    if chunked {
        let mut added = Ok(());
        for_each_chunk(dataset, &mut |origin, chunk| {
            let piece = FilePiece { start: chunk.address, len: chunk.bytes, array: number, origin: origin.into() };
            if added.is_ok() {
                added = map.add(piece);
            }
        })?;
        return added;
    }
    if offset == HADDR_UNDEF {
        return Ok(()); // compact, external or not written yet
    }
    // SAFETY: the dataset is live.
    let len = unsafe { h5d::H5Dget_storage_size(dataset.raw()) };
    let origin = Dims::from_elem(0, extents.shape.len());
    map.add(FilePiece { start: offset, len, array: number, origin })
}
