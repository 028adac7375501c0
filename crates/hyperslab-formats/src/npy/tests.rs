//! Headers of all kinds, and files that numpy wrote.

use super::header::{Header, MAGIC, decode, encode};
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, ErrorKind, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack,
    TransferMode,
};
use proptest::prelude::*;
use std::fs;
use std::sync::Arc;

fn npy() -> Arc<dyn Format> {
    crate::build(&"npy".parse::<Stack>().unwrap().format).unwrap()
}

/// A file of version 1.0 with this dictionary and so many bytes of elements.
fn file(dictionary: &str, elements: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.as_bytes());
    bytes.extend(vec![7; elements]);
    bytes
}

fn read(bytes: &[u8]) -> Result<Header> {
    decode(bytes, bytes.len() as u64)
}

#[test]
fn headers_round_trip_and_are_aligned() {
    for shape in [&[][..], &[0], &[5], &[3, 4], &[1; 32], &[u32::MAX.into(), 0]] {
        for dtype in ["<f8", ">f4", "<f2", "|i1", "|u1", "<i8", ">u2", "|b1", "|S7", "|V3"] {
            let spec = ArraySpec::new(dtype.parse().unwrap(), shape);
            let mut bytes = encode(&spec);
            assert!(bytes.len().is_multiple_of(64) && bytes.ends_with(b"\n"), "{spec:?}");
            let begin = bytes.len() as u64;
            bytes.resize(bytes.len() + (shape.iter().product::<u64>() * spec.dtype.size()) as usize, 0);
            assert_eq!(read(&bytes).unwrap(), Header { spec, begin });
        }
    }
}

#[test]
fn other_spellings_are_read() {
    for dictionary in [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f8\"}",
        "{'shape': (2L, 3L), 'descr': '<f8', 'fortran_order': False}",
    ] {
        assert_eq!(read(&file(dictionary, 48)).unwrap().spec, ArraySpec::new(Datatype::F64, &[2, 3]), "{dictionary}");
    }
    let reversed = "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 3), }";
    assert_eq!(read(&file(reversed, 24)).unwrap().spec.shape.as_slice(), [1, 3], "one order is as good as the other");
}

#[test]
fn hostile_headers_are_refused() {
    let good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    assert!(read(&file(good, 48)).is_ok());
    let kind = |bytes: &[u8]| read(bytes).unwrap_err().kind();
    assert_eq!(kind(&file(good, 47)), ErrorKind::Corrupt, "too short");
    for (from, to, expected) in [
        ("(2, 3)", "(2, -3)", ErrorKind::Corrupt),
        ("(2, 3)", "(18446744073709551615, 9)", ErrorKind::Corrupt),
        ("(2, 3)", "(99999999999999999999,)", ErrorKind::Corrupt),
        ("(2, 3)", "(2, 3", ErrorKind::Corrupt),
        ("(2, 3)", "2", ErrorKind::Corrupt),
        ("False", "False or True", ErrorKind::Corrupt),
        ("False", "True", ErrorKind::Unsupported),
        ("'<f8'", "'<c16'", ErrorKind::Unsupported),
        ("'<f8'", "'|O'", ErrorKind::Unsupported),
        ("'<f8'", "'<U4'", ErrorKind::Unsupported),
        ("'<f8'", "'|V0'", ErrorKind::Unsupported),
        ("'<f8'", "[('a', '<f8')]", ErrorKind::Unsupported),
        ("'<f8'", "'<f8", ErrorKind::Corrupt),
        ("'descr': '<f8', ", "", ErrorKind::Corrupt),
        ("'shape'", "'descr': '<f8', 'shape'", ErrorKind::Corrupt),
        ("'shape'", "'more': 1, 'shape'", ErrorKind::Corrupt),
        ("}", "", ErrorKind::Corrupt),
        ("{", "__import__('os').system('x') or {", ErrorKind::Corrupt),
    ] {
        assert_eq!(kind(&file(&good.replace(from, to), 48)), expected, "{to}");
    }
    let many = format!("({})", "1, ".repeat(33));
    assert_eq!(kind(&file(&good.replace("(2, 3)", &many), 48)), ErrorKind::Unsupported);
    let mut long = file(good, 48);
    long[6] = 2;
    long.splice(8..10, u32::MAX.to_le_bytes());
    assert_eq!(kind(&long), ErrorKind::Corrupt, "a header of 4 GiB");
    let mut version = file(good, 48);
    version[6] = 9;
    assert_eq!(kind(&version), ErrorKind::Unsupported);
    for length in 0..file(good, 0).len() {
        assert!(read(&file(good, 0)[..length]).is_err(), "{length}");
    }
}

proptest! {
    #[test]
    fn no_header_panics(text in "[{}'\":, ()0-9a-zL<>|\\[]{0,80}", change in 0..200usize, byte: u8) {
        let _ = read(&file(&text, 8));
        let mut bytes = file("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48);
        let at = change % bytes.len();
        bytes[at] = byte;
        let _ = read(&bytes);
    }
}

#[test]
fn a_single_file_is_a_container_of_one_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my data.npy");
    fs::write(&path, file("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 4)).unwrap();
    let container = npy().open(&path, OpenMode::Update, &Solo::shared()).unwrap();
    assert_eq!(container.arrays().unwrap(), ["my data"]);
    let (array, some) = (container.array("my data").unwrap(), Selection::dense(&[1], &[2]).unwrap());
    array.write(&some, MemoryView::packed(&[1, 2]), TransferMode::Independent).unwrap();
    let refused = |result: Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Unsupported);
    refused(container.create("more", &ArraySpec::new(Datatype::U8, &[1])).map(drop));
    refused(container.set_attribute("", "a", &Attribute::integer(1)));
    container.close().unwrap();
    assert!(fs::read(&path).unwrap().ends_with(&[7, 1, 2, 7]));
    npy().remove(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn directories_of_others_are_read_and_what_is_not_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("theirs");
    fs::create_dir_all(root.join("a b")).unwrap();
    let bytes = file("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", 4);
    fs::write(root.join("a b/x y.npy"), &bytes).unwrap();
    fs::write(root.join("readme.txt"), "mine").unwrap();
    fs::write(root.join("broken.npy"), "nothing").unwrap();
    let container = npy().open(&root, OpenMode::Read, &Solo::shared()).unwrap();
    assert_eq!(container.arrays().unwrap(), ["a b/x y", "broken"]);
    let mut found = [0; 4];
    let array = container.array("a b/x y").unwrap();
    array.read(&Selection::all(&[4]).unwrap(), MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
    assert_eq!(found, [7; 4]);
    assert_eq!(container.array("broken").unwrap_err().kind(), ErrorKind::Corrupt);
    for name in ["../theirs/a b/x y", "a b/../broken", "/etc/passwd"] {
        assert!(container.array(name).is_err(), "{name}");
    }
    container.close().unwrap();
    let error = npy().remove(&root).unwrap_err();
    assert!(error.to_string().contains("readme.txt") && root.join("broken.npy").exists(), "{error}");
    std::os::unix::fs::symlink(&root, folder.path().join("link")).unwrap();
    assert!(npy().remove(&folder.path().join("link")).is_err());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(npy().open(&empty, OpenMode::Read, &Solo::shared()).is_err());
}
