//! The data plane and libhdf5 on the same arrays.

use super::*;
use crate::hdf5::library::{self, Id};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5d, h5f};
use hyperslab_core::{ArraySpec, Datatype, Dims, Filter};

fn compressed() -> ArraySpec {
    let mut spec = ArraySpec::new(Datatype::U8, &[4, 64]);
    spec.chunk = Some(Dims::from_slice(&[1, 64]));
    spec.filters = vec![Filter::Deflate(1)];
    spec
}

/// Stores chunk 0 as it is, without its filter.
fn store_unfiltered(bench: &Bench, chunk: &[u8]) {
    let path = std::ffi::CString::new(bench.path().to_str().unwrap()).unwrap();
    library::with(|| {
        let offset = [0u64, 0];
        // SAFETY: the file was closed; identifiers are closed by `Id`; the chunk has the bytes stated.
        unsafe {
            let file = Id::take("open", h5f::H5Fopen(path.as_ptr(), h5f::H5F_ACC_RDWR, H5P_DEFAULT)).unwrap();
            let array = Id::take("open", h5d::H5Dopen2(file.raw(), c"a".as_ptr(), H5P_DEFAULT)).unwrap();
            let from = chunk.as_ptr().cast();
            let status = h5d::H5Dwrite_chunk(array.raw(), H5P_DEFAULT, 1, offset.as_ptr(), chunk.len(), from);
            assert!(status >= 0);
        }
    });
}

#[test]
fn a_chunk_keeps_its_mask() {
    let (plain, bench) = (Bench::new("hdf5"), Bench::new("hdf5(plane=on)"));
    bench.open(OpenMode::Create).create("a", &compressed()).unwrap();
    let chunk = pattern(64);
    store_unfiltered(&bench, &chunk);
    let file = bench.open(OpenMode::Update);
    let array = file.array("a").unwrap();
    let row = Selection::dense(&[0, 0], &[1, 64]).unwrap();
    assert_eq!(get(&*array, &row), chunk);
    // Part of the chunk, then all of it, by the plane; libhdf5 reads it in between, while it is open here.
    let beside = plain.format.open(&bench.path(), OpenMode::Update, &Solo::shared()).unwrap();
    let other = beside.array("a").unwrap();
    for width in [7, 64] {
        let part = Selection::dense(&[0, 0], &[1, width]).unwrap();
        put(&*array, &part, &vec![5; width as usize]);
        assert_eq!(get(&*other, &part), vec![5; width as usize]);
        assert_eq!(get(&*array, &part), vec![5; width as usize]);
    }
    put(&*other, &row, &chunk);
    assert_eq!(get(&*array, &row), chunk);
    drop((other, array));
    beside.close().unwrap();
    file.close().unwrap();
    assert_eq!(
        get(&*plain.format.open(&bench.path(), OpenMode::Read, &Solo::shared()).unwrap().array("a").unwrap(), &row),
        chunk
    );
}

#[test]
fn what_waits_is_stored_when_an_array_is_dropped() {
    let bench = Bench::new("hdf5(plane=on)");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &compressed()).unwrap();
    let part = Selection::dense(&[1, 3], &[2, 5]).unwrap();
    put(&*array, &part, &[7; 10]);
    drop(array);
    let again = file.array("a").unwrap();
    assert_eq!(get(&*again, &part), [7; 10]);
    drop((again, file));
    let plain = Bench::new("hdf5");
    let file = plain.format.open(&bench.path(), OpenMode::Read, &Solo::shared()).unwrap();
    assert_eq!(get(&*file.array("a").unwrap(), &part), [7; 10]);
}

#[test]
fn a_flush_shows_everything_to_another_program() {
    let bench = Bench::new("hdf5(plane=on,locking=no)");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &compressed()).unwrap();
    let part = Selection::dense(&[1, 3], &[2, 5]).unwrap();
    put(&*array, &part, &[7; 10]);
    file.flush(hyperslab_core::Durability::Visible).unwrap();
    let copy = bench.dir.path().join("copy.h5");
    std::fs::copy(bench.path(), &copy).unwrap();
    let seen = Bench::new("hdf5").format.open(&copy, OpenMode::Read, &Solo::shared()).unwrap();
    assert_eq!(get(&*seen.array("a").unwrap(), &part), [7; 10]);
}
