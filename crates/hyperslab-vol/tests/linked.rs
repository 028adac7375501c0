//! A Rust program that is linked with libhdf5 and with the connector, and loads no plugin.
#![allow(clippy::unwrap_used)]

use hdf5_metno_sys::h5::{H5open, hsize_t};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5t::{H5T_NATIVE_INT32, H5T_STD_I32LE};
use hdf5_metno_sys::{h5d, h5f, h5p, h5s};
use std::ffi::CString;

unsafe extern "C" {
    fn H5Pset_vol(list: hid_t, connector: hid_t, info: *const std::ffi::c_void) -> i32;
}

#[test]
fn a_linked_program_registers_the_connector_and_gets_an_ordinary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("linked.h5");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let numbers: Vec<i32> = (0..40_000).collect();
    // SAFETY: one thread uses libhdf5; identifiers are live when used; buffers have all selected elements.
    unsafe {
        assert!(H5open() >= 0);
        let connector = hyperslab_vol::register!().unwrap();
        let access = h5p::H5Pcreate(*h5p::H5P_CLS_FILE_ACCESS);
        assert!(H5Pset_vol(access, connector, std::ptr::null()) >= 0);
        let file = h5f::H5Fcreate(name.as_ptr(), h5f::H5F_ACC_TRUNC, H5P_DEFAULT, access);
        assert!(file >= 0);
        let extents: [hsize_t; 1] = [numbers.len() as hsize_t];
        let space = h5s::H5Screate_simple(1, extents.as_ptr(), std::ptr::null());
        let creation = h5p::H5Pcreate(*h5p::H5P_CLS_DATASET_CREATE);
        let chunk: [hsize_t; 1] = [1000];
        assert!(h5p::H5Pset_chunk(creation, 1, chunk.as_ptr()) >= 0 && h5p::H5Pset_shuffle(creation) >= 0);
        let kind = *H5T_STD_I32LE;
        let dataset = h5d::H5Dcreate2(file, c"x".as_ptr(), kind, space, H5P_DEFAULT, creation, H5P_DEFAULT);
        let data = numbers.as_ptr().cast();
        assert!(h5d::H5Dwrite(dataset, *H5T_NATIVE_INT32, 0, 0, H5P_DEFAULT, data) >= 0);
        assert!(h5d::H5Dclose(dataset) >= 0 && h5f::H5Fclose(file) >= 0);

        // Without the connector.
        let file = h5f::H5Fopen(name.as_ptr(), h5f::H5F_ACC_RDONLY, H5P_DEFAULT);
        let dataset = h5d::H5Dopen2(file, c"x".as_ptr(), H5P_DEFAULT);
        let mut read = vec![0i32; numbers.len()];
        assert!(h5d::H5Dread(dataset, *H5T_NATIVE_INT32, 0, 0, H5P_DEFAULT, read.as_mut_ptr().cast()) >= 0);
        assert_eq!(read, numbers);
        assert!(h5d::H5Dclose(dataset) >= 0 && h5f::H5Fclose(file) >= 0);
    }
}
