//! Files: what is written, definitions after data, growth, and what a crash leaves.

use super::super::journal;
use crate::build;
use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Datatype, Durability, ErrorKind, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, Stack, TransferMode,
};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

fn open(stack: &str, path: &Path, how: OpenMode) -> Result<Arc<dyn Container>> {
    build(&stack.parse::<Stack>()?.format)?.open(path, how, &Solo::shared())
}

fn growing(dtype: &str, shape: &[u64]) -> ArraySpec {
    let max = std::iter::once(None).chain(shape[1..].iter().copied().map(Some)).collect();
    ArraySpec { max_shape: Some(max), ..ArraySpec::new(dtype.parse().unwrap(), shape) }
}

fn bytes(seed: u8, count: usize) -> Vec<u8> {
    (0..count).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn write(array: &dyn Array, start: &[u64], count: &[u64], data: &[u8]) {
    let selection = Selection::dense(start, count).unwrap();
    array.write(&selection, MemoryView::packed(data), TransferMode::Independent).unwrap();
}

fn read(array: &dyn Array) -> Result<Vec<u8>> {
    let spec = array.spec()?;
    let all = Selection::all(&spec.shape)?;
    let mut data = vec![0xEE; (all.len() * spec.dtype.size()) as usize];
    array.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent)?;
    Ok(data)
}

/// Creates an array and writes all of it.
fn full(container: &dyn Container, name: &str, spec: &ArraySpec, seed: u8) -> Vec<u8> {
    let array = container.create(name, spec).unwrap();
    let data = bytes(seed, (spec.shape.iter().product::<u64>() * spec.dtype.size()) as usize);
    write(&*array, &vec![0; spec.shape.len()], &spec.shape, &data);
    data
}

#[test]
fn records_of_three_bytes_make_a_file_of_102_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3(version=1,header_pad=0)", &path, OpenMode::Create).unwrap();
    let array = container.create("r", &growing("i1", &[0, 3])).unwrap();
    array.resize(&[2, 3]).unwrap();
    write(&*array, &[0, 0], &[2, 3], &[1, 2, 3, 4, 5, 6]);
    container.close().unwrap();
    let mut expected =
        b"CDF\x01\0\0\0\x02\0\0\0\x0a\0\0\0\x02\0\0\0\x03r_0\0\0\0\0\0\0\0\0\x02d3\0\0\0\0\0\x03".to_vec();
    expected.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\0\x0b\0\0\0\x01\0\0\0\x01r\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01");
    expected.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x04\0\0\0\x60\x01\x02\x03\x04\x05\x06");
    assert_eq!(fs::read(&path).unwrap(), expected);
    assert_eq!(expected.len(), 102);
}

#[test]
fn numbers_are_big_endian_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3(header_pad=0)", &path, OpenMode::Create).unwrap();
    let data: Vec<u8> = [1u32, 0x0203_0405].iter().flat_map(|n| n.to_le_bytes()).collect();
    write(&*container.create("little", &ArraySpec::new("<u4".parse().unwrap(), &[2])).unwrap(), &[0], &[2], &data);
    write(&*container.create("big", &ArraySpec::new(">u4".parse().unwrap(), &[2])).unwrap(), &[0], &[2], &data);
    container.close().unwrap();
    let file = fs::read(&path).unwrap();
    assert_eq!(file[file.len() - 16..], [0, 0, 0, 1, 2, 3, 4, 5, 1, 0, 0, 0, 5, 4, 3, 2]);
    let container = open("netcdf3", &path, OpenMode::Read).unwrap();
    for (name, dtype) in [("little", "<u4"), ("big", ">u4")] {
        let array = container.array(name).unwrap();
        assert_eq!(array.spec().unwrap().dtype, dtype.parse::<Datatype>().unwrap());
        assert_eq!(read(&*array).unwrap(), data);
    }
}

#[test]
fn definitions_after_data_move_it_only_where_they_must() {
    for (stack, moves) in
        [("netcdf3(header_pad=0)", true), ("netcdf3(header_pad=0,buffer=4KiB)", true), ("netcdf3", false)]
    {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.nc");
        // Files that were looked at stay open, so that none has the number of an earlier one.
        let mut seen = Vec::new();
        let mut inode = || {
            seen.push(fs::File::open(&path).unwrap());
            fs::metadata(&path).unwrap().ino()
        };
        let container = open(stack, &path, OpenMode::Create).unwrap();
        let mut all = vec![("one", full(&*container, "one", &ArraySpec::new(Datatype::F64, &[1000]), 1))];
        let first = inode();
        all.push(("two", full(&*container, "two", &ArraySpec::new("<i2".parse().unwrap(), &[7]), 2)));
        all.push(("r", full(&*container, "r", &growing("i1", &[5, 3]), 3)));
        container.set_attribute("", "long", &Attribute::text(&"text ".repeat(300))).unwrap();
        assert_eq!(inode() != first, moves, "{stack}");
        let before = inode();
        // Records are cut anew, some larger than a buffer.
        all.push(("s", full(&*container, "s", &growing("<f8", &[5, 1000]), 4)));
        assert_ne!(inode(), before);
        let before = inode();
        all.push(("three", full(&*container, "three", &ArraySpec::new(Datatype::U8, &[10_000]), 5)));
        assert_ne!(inode(), before, "records are where it begins");
        let compare = |container: &dyn Container| {
            for (name, data) in &all {
                assert_eq!(&read(&*container.array(name).unwrap()).unwrap(), data, "{stack}: {name}");
            }
            container.close().unwrap();
        };
        compare(&*container);
        compare(&*open("netcdf3", &path, OpenMode::Read).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn what_is_defined_before_data_moves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3(header_pad=0)", &path, OpenMode::Create).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    for i in 0..50 {
        let spec = if i % 2 == 0 { growing("<f4", &[0, 3]) } else { ArraySpec::new(Datatype::F32, &[4]) };
        container.create(&format!("group {i}/array"), &spec).unwrap();
        container.set_attribute(&format!("group {i}/array"), "units", &Attribute::text("m")).unwrap();
    }
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    container.close().unwrap();
    assert_eq!(open("netcdf3", &path, OpenMode::Read).unwrap().arrays().unwrap().len(), 50);
}

#[test]
fn ranks_define_and_move_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let format = build(&"netcdf3(header_pad=0)".parse::<Stack>().unwrap().format).unwrap();
    let results = Threads::run_each(3, |comm| {
        let rank = comm.rank() as u64;
        let container = format.open(&path, OpenMode::Create, &comm)?;
        let mut arrays = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let spec = if name == "b" || name == "d" {
                growing("<i4", &[3, 5])
            } else {
                ArraySpec::new(Datatype::I32, &[3, 5])
            };
            arrays.push(container.create(name, &spec)?);
            // Only one rank has written when the next array is defined.
            for array in arrays.iter().filter(|_| rank == 1) {
                write(&**array, &[1, 0], &[1, 5], &bytes(9, 20));
            }
            container.set_attribute(name, "about", &Attribute::text(&name.repeat(200)))?;
        }
        for array in &arrays {
            write(&**array, &[rank, 0], &[1, 5], &bytes(rank as u8, 20));
        }
        // The extent becomes the largest that any rank asks for, of all arrays that grow.
        arrays[1].resize(&[4 + rank, 5])?;
        container.flush(Durability::Durable)?;
        for (array, grows) in arrays.iter().zip([false, true, false, true]) {
            let mut expected = [bytes(0, 20), bytes(1, 20), bytes(2, 20)].concat();
            if grows {
                expected.resize(6 * 20, 0);
            }
            assert_eq!(read(&**array)?, expected);
        }
        container.close()
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn arrays_that_grow_grow_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3", &path, OpenMode::Create).unwrap();
    let one = container.create("one", &growing("<i2", &[2])).unwrap();
    let filled = ArraySpec { fill_value: Some(vec![7, 0]), ..growing("<i2", &[2, 2]) };
    let two = container.create("two", &filled).unwrap();
    write(&*one, &[0], &[2], &[1, 0, 2, 0]);
    write(&*two, &[1, 0], &[1, 1], &[5, 0]);
    let refused = container.create("three", &growing("<i2", &[3])).unwrap_err();
    assert!(refused.kind() == ErrorKind::Unsupported && refused.to_string().contains("of 2 records now, not 3"));
    one.resize(&[4]).unwrap();
    assert_eq!(two.spec().unwrap().shape.as_slice(), [4, 2]);
    assert_eq!(read(&*one).unwrap(), [1, 0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(read(&*two).unwrap(), [7, 0, 7, 0, 5, 0, 7, 0, 7, 0, 7, 0, 7, 0, 7, 0]);
    let refused = two.resize(&[3, 2]).unwrap_err();
    assert!(refused.kind() == ErrorKind::Unsupported && refused.to_string().contains("share their records"));
    let three = container.create("three", &ArraySpec { fill_value: Some(vec![9]), ..growing("i1", &[4]) }).unwrap();
    assert_eq!(read(&*three).unwrap(), [9; 4]);
    assert_eq!(read(&*one).unwrap(), [1, 0, 2, 0, 0, 0, 0, 0]);
    container.close().unwrap();
}

#[test]
fn what_the_format_lacks_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let container = open("netcdf3(version=2)", &directory.path().join("a.nc"), OpenMode::Create).unwrap();
    let plain = |dtype: &str| ArraySpec::new(dtype.parse().unwrap(), &[4]);
    let chunked = ArraySpec { chunk: Some([2].as_slice().into()), ..plain("<f4") };
    let second = ArraySpec { max_shape: Some(vec![Some(4), None]), ..ArraySpec::new(Datatype::F32, &[4, 4]) };
    let bounded = ArraySpec { max_shape: Some(vec![Some(9)]), ..plain("<f4") };
    let text = ArraySpec { fill_value: Some(b"ab".to_vec()), ..plain("|S2") };
    for (spec, said) in [
        (plain("|u1"), "CDF-2 has no type for |u1"),
        (plain("<i8"), "CDF-2 has no type for <i8"),
        (plain("<f2"), "no type for <f2"),
        (plain("|V3"), "no type for |V3"),
        (chunked, "neither chunks nor filters"),
        (second, "only the slowest dimension"),
        (bounded, "no largest number"),
        (ArraySpec::new(Datatype::F32, &[3, 0]), "length 0"),
        (text, "cannot be a fill value"),
    ] {
        let error = container.create("array", &spec).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains(said), "{error} / {said}");
    }
    let error = container.set_attribute("", "n", &Attribute::integer(1)).unwrap_err();
    assert!(
        error.to_string().contains("CDF-2 has no type for <i8") && error.to_string().contains("version=5"),
        "{error}"
    );
    assert!(container.arrays().unwrap().is_empty());
}

#[test]
fn an_interrupted_header_is_found_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3", &path, OpenMode::Create).unwrap();
    let data = full(&*container, "array", &ArraySpec::new(Datatype::F64, &[100]), 6);
    container.close().unwrap();
    let old = fs::read(&path).unwrap();
    let container = open("netcdf3", &path, OpenMode::Update).unwrap();
    container.set_attribute("", "long", &Attribute::text(&"long ".repeat(400))).unwrap();
    full(&*container, "more", &ArraySpec::new(Datatype::U8, &[9]), 7);
    container.close().unwrap();
    let new = fs::read(&path).unwrap();
    let (old_head, new_head) = (&old[..4096], &new[..4096]);
    let put = |sectors: usize| {
        let mut torn = new.clone();
        torn[..4096].copy_from_slice(old_head);
        torn[..512 * sectors].copy_from_slice(&new[..512 * sectors]);
        fs::write(&path, &torn).unwrap();
        journal::put(&path, old_head, new_head, false).unwrap();
    };
    let names = |how: OpenMode| {
        let container = open("netcdf3", &path, how).unwrap();
        assert_eq!(read(&*container.array("array").unwrap()).unwrap(), data);
        let names = container.arrays().unwrap();
        container.close().unwrap();
        names
    };
    for (sectors, expected) in
        [(0, &["array"][..]), (1, &["array", "more"]), (3, &["array", "more"]), (8, &["array", "more"])]
    {
        put(sectors);
        for (how, stays) in [(OpenMode::Read, true), (OpenMode::Update, false), (OpenMode::Read, false)] {
            assert_eq!(names(how), expected, "{sectors} sectors, {how:?}");
            assert_eq!(journal::beside(&path).exists(), stays);
        }
        assert_eq!(fs::read(&path).unwrap()[..4096], *(if sectors == 0 { old_head } else { new_head }));
    }
    // A header that somebody else wrote since is neither, and stays.
    put(0);
    let mut other = old.clone();
    let at = other.windows(5).position(|name| name == b"array").unwrap();
    other[at] = b'A';
    other[600] = 1;
    fs::write(&path, &other).unwrap();
    assert_eq!(open("netcdf3", &path, OpenMode::Update).unwrap().arrays().unwrap(), ["Array"]);
    assert!(!journal::beside(&path).exists());
    // A journal that is not whole means nothing: the header was not touched yet.
    put(0);
    let torn = fs::read(journal::beside(&path)).unwrap();
    fs::write(journal::beside(&path), &torn[..torn.len() - 1]).unwrap();
    assert_eq!(names(OpenMode::Update), ["array"]);
}

#[test]
fn the_number_of_records_follows_from_the_size_where_it_is_left_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3(version=1)", &path, OpenMode::Create).unwrap();
    let data = full(&*container, "r", &growing("<i2", &[4, 3]), 8);
    container.close().unwrap();
    let mut file = fs::read(&path).unwrap();
    file[4..8].fill(0xFF);
    fs::write(&path, &file).unwrap();
    for how in [OpenMode::Read, OpenMode::Update, OpenMode::Read] {
        let container = open("netcdf3", &path, how).unwrap();
        assert_eq!(read(&*container.array("r").unwrap()).unwrap(), data);
        container.close().unwrap();
    }
    assert_eq!(fs::read(&path).unwrap()[4..8], [0, 0, 0, 4]);
}

#[test]
fn bytes_behind_the_last_array_belong_to_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3", &path, OpenMode::Create).unwrap();
    let data = full(&*container, "one", &ArraySpec::new(Datatype::U8, &[100]), 1);
    container.close().unwrap();
    let whole = [fs::read(&path).unwrap(), vec![0xAA; 1000]].concat();
    for spec in [ArraySpec::new(Datatype::U8, &[50]), growing("u1", &[3, 9])] {
        fs::write(&path, &whole).unwrap();
        let container = open("netcdf3", &path, OpenMode::Update).unwrap();
        let array = container.create("two", &spec).unwrap();
        assert!(read(&*array).unwrap().iter().all(|byte| *byte == 0));
        assert_eq!(read(&*container.array("one").unwrap()).unwrap(), data);
        container.close().unwrap();
    }
}

#[test]
fn two_variables_that_claim_one_name_are_both_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3(header_pad=0)", &path, OpenMode::Create).unwrap();
    for (name, seed) in [("g/x", 1), ("h/x", 2), ("h.y", 3)] {
        full(&*container, name, &ArraySpec::new(Datatype::U8, &[4]), seed);
    }
    container.close().unwrap();
    let mut file = fs::read(&path).unwrap();
    let at = file.windows(3).position(|bytes| bytes == b"h/x").unwrap();
    file[at] = b'g';
    fs::write(&path, &file).unwrap();
    let container = open("netcdf3", &path, OpenMode::Read).unwrap();
    assert_eq!(container.arrays().unwrap(), ["g/x", "h.x", "h.y"]);
    assert_eq!(read(&*container.array("h.x").unwrap()).unwrap(), bytes(2, 4));
}

#[test]
fn a_file_cut_short_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let container = open("netcdf3", &path, OpenMode::Create).unwrap();
    let data = full(&*container, "one", &ArraySpec::new(Datatype::U8, &[100]), 1);
    full(&*container, "two", &ArraySpec::new(Datatype::U8, &[100]), 2);
    container.close().unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len((64 << 10) + 150).unwrap();
    let container = open("netcdf3", &path, OpenMode::Read).unwrap();
    assert_eq!(read(&*container.array("one").unwrap()).unwrap(), data);
    assert_eq!(read(&*container.array("two").unwrap()).unwrap_err().kind(), ErrorKind::Corrupt);
    let error = open("netcdf3", &path, OpenMode::Update).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("its arrays end at"), "{error}");
}

#[test]
fn a_symbolic_link_stays_one() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("a.nc"), directory.path().join("link.nc"));
    let container = open("netcdf3(header_pad=0)", &path, OpenMode::Create).unwrap();
    let data = full(&*container, "one", &ArraySpec::new(Datatype::U8, &[100]), 1);
    container.close().unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let container = open("netcdf3(header_pad=0)", &link, OpenMode::Update).unwrap();
    full(&*container, "two", &ArraySpec::new(Datatype::U8, &[100]), 2);
    container.close().unwrap();
    assert!(link.is_symlink() && !path.is_symlink());
    let container = open("netcdf3", &path, OpenMode::Read).unwrap();
    assert_eq!(container.arrays().unwrap(), ["one", "two"]);
    assert_eq!(read(&*container.array("one").unwrap()).unwrap(), data);
}

#[test]
fn files_of_others_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    fs::write(&path, b"\x89HDF\r\n\x1a\n and more").unwrap();
    let error = open("netcdf3", &path, OpenMode::Read).unwrap_err().to_string();
    assert!(error.contains("no classic NetCDF file") && error.contains("use hdf5"), "{error}");
    fs::write(&path, b"CDF\x02\0\0\0\0").unwrap();
    let error = open("netcdf3", &path, OpenMode::Update).unwrap_err().to_string();
    assert!(error.contains("it ends before byte"), "{error}");
    for wrong in [
        "netcdf3(version=3)",
        "netcdf3(var_align=6)",
        "netcdf3(record_align=8,nc_record_align_size=4)",
        "netcdf3(header_pad=1TiB)",
    ] {
        assert!(open(wrong, &path, OpenMode::Read).unwrap_err().kind() == ErrorKind::InvalidInput, "{wrong}");
    }
}

/// What lies beyond 2^32 bytes is found again; the file has holes where nothing was written.
#[test]
fn sparse_arrays_of_5_gib_reach_as_far_as_versions_allow() {
    let directory = tempfile::tempdir().unwrap();
    let row = 1u64 << 30;
    for version in [1, 2, 5] {
        let path = directory.path().join(format!("large{version}.nc"));
        let container = open(&format!("netcdf3(version={version})"), &path, OpenMode::Create).unwrap();
        let small = ArraySpec::new("i1".parse().unwrap(), &[7]);
        let before = full(&*container, "before", &small, 3);
        // The last array may be longer than the version has numbers for.
        let large = container.create("large", &ArraySpec::new("i1".parse().unwrap(), &[5, row])).unwrap();
        write(&*large, &[4, row - 4], &[1, 4], &[1, 2, 3, 4]);
        container.close().unwrap();
        let found = fs::metadata(&path).unwrap();
        assert!(found.len() > 5 * row && found.blocks() * 512 < 1 << 20, "{found:?}");
        let container = open("netcdf3", &path, OpenMode::Read).unwrap();
        assert_eq!(read(&*container.array("before").unwrap()).unwrap(), before);
        let end = Selection::dense(&[4, row - 6], &[1, 6]).unwrap();
        let mut data = [9; 6];
        let large = container.array("large").unwrap();
        large.read(&end, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
        assert_eq!(data, [0, 0, 1, 2, 3, 4]);
        container.close().unwrap();
        // Behind it nothing has a place that older versions could say.
        let container = open(&format!("netcdf3(version={version})"), &path, OpenMode::Truncate).unwrap();
        container.create("large", &ArraySpec::new("i1".parse().unwrap(), &[5, row])).unwrap();
        let after = container.create("after", &small);
        assert_eq!(after.is_ok(), version == 5, "CDF-{version}");
    }
}
