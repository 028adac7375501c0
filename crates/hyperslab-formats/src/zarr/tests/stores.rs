//! Creating, opening, listing and removing.

use super::*;
use hyperslab_core::{Attribute, Durability, ErrorKind};
use std::fs;

#[test]
fn open_modes_keep_their_word() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    let (zarr, comm) = (format("zarr"), Solo::shared());
    assert_eq!(zarr.open(&path, OpenMode::Read, &comm).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!zarr.exists(&path).unwrap());
    let store = create("zarr", &path);
    store.create("a", &spec("<f4", &[3], &[2])).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(store.arrays().is_err());
    assert!(zarr.exists(&path).unwrap());
    assert_eq!(zarr.open(&path, OpenMode::Create, &comm).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let reading = open(&path, OpenMode::Read);
    assert_eq!(reading.arrays().unwrap(), ["a"]);
    let array = reading.array("a").unwrap();
    assert!(write(&array, &Selection::all(&[3]).unwrap(), &[1; 12]).is_err());
    assert!(array.resize(&[4]).is_err());
    assert!(reading.create_group("g").is_err());
    assert!(reading.set_attribute("", "x", &Attribute::integer(1)).is_err());
    let again = zarr.open(&path, OpenMode::Truncate, &comm).unwrap();
    assert!(again.arrays().unwrap().is_empty());
    again.flush(Durability::Durable).unwrap();
    zarr.remove(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn what_is_no_store_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (zarr, comm) = (format("zarr"), Solo::shared());
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("thesis.txt"), "years").unwrap();
    let mixed = dir.path().join("mixed.zarr");
    create("zarr", &mixed).create_group("g").unwrap();
    fs::write(mixed.join("g/thesis.txt"), "years").unwrap();
    let link = dir.path().join("link.zarr");
    let store = dir.path().join("store.zarr");
    create("zarr", &store);
    std::os::unix::fs::symlink(&store, &link).unwrap();
    let linked = dir.path().join("linked.zarr");
    create("zarr", &linked);
    std::os::unix::fs::symlink(&folder, linked.join("away")).unwrap();
    for path in [&file, &folder, &mixed, &link, &linked] {
        assert!(zarr.open(path, OpenMode::Truncate, &comm).is_err(), "{path:?}");
        assert!(zarr.remove(path).is_err(), "{path:?}");
    }
    for path in [&file, &folder] {
        assert!(zarr.open(path, OpenMode::Update, &comm).is_err(), "{path:?}");
        assert!(zarr.files(path).is_err(), "{path:?}");
    }
    assert_eq!(fs::read_to_string(folder.join("thesis.txt")).unwrap(), "years");
    assert_eq!(fs::read_to_string(mixed.join("g/thesis.txt")).unwrap(), "years");
    assert!(store.join("zarr.json").exists());
    // A store is read through a link; it is only not removed through one.
    assert!(zarr.open(&link, OpenMode::Read, &comm).is_ok());
}

#[test]
fn groups_arrays_and_attributes() {
    for version in ["zarr", "zarr(version=2)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(version, &path);
        store.create_group("g/h").unwrap();
        store.create_group("g").unwrap();
        store.create("g/h/a", &spec("<i4", &[2], &[2])).unwrap();
        store.create("p/q/b", &spec("<i4", &[2], &[2])).unwrap();
        assert_eq!(store.create("g", &spec("<i4", &[2], &[2])).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(store.create("g/h/a/c", &spec("<i4", &[2], &[2])).is_err());
        assert!(store.create_group("g/h/a").is_err());
        assert!(store.create("../x", &spec("<i4", &[2], &[2])).is_err());
        assert_eq!(store.array("g").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.array("none").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.arrays().unwrap(), ["g/h/a", "p/q/b"]);
        for object in ["", "p/q", "g/h/a"] {
            store.set_attribute(object, "text", &Attribute::text("a \"b\"")).unwrap();
            store.set_attribute(object, "number", &Attribute::integer(1)).unwrap();
            store.set_attribute(object, "number", &Attribute::float(0.1)).unwrap();
        }
        store.close().unwrap();
        let store = open(&path, OpenMode::Update);
        for object in ["", "p/q", "g/h/a"] {
            assert_eq!(store.attributes(object).unwrap(), ["number", "text"]);
            assert_eq!(store.attribute(object, "text").unwrap().as_text(), Some("a \"b\""));
            assert_eq!(store.attribute(object, "number").unwrap(), Attribute::float(0.1));
        }
        assert_eq!(store.attribute("", "none").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.attribute("none", "text").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(store.set_attribute("none", "text", &Attribute::integer(1)).is_err());
        format("zarr").remove(&path).unwrap();
        assert!(!path.exists());
    }
}

#[test]
fn specifications_survive() {
    let padded = hyperslab_core::Datatype::compound(
        16,
        vec![
            hyperslab_core::Field { name: "a".into(), offset: 0, dtype: ">f4".parse().unwrap() },
            hyperslab_core::Field { name: "b".into(), offset: 8, dtype: "<i8".parse().unwrap() },
        ],
    )
    .unwrap();
    let mut specs: Vec<ArraySpec> =
        ["|i1", ">u2", "<i8", "<f2", ">f4", "|b1", "|S5", "|V3"].iter().map(|t| spec(t, &[4, 5], &[2, 3])).collect();
    specs.push(ArraySpec { dtype: padded, ..specs[0].clone() });
    specs.push(ArraySpec { max_shape: Some(vec![None, Some(9)]), ..specs[0].clone() });
    specs.push(ArraySpec { max_shape: Some(vec![None, None]), ..specs[0].clone() });
    specs.push(ArraySpec { filters: vec![hyperslab_core::Filter::Zstd(7)], ..specs[0].clone() });
    for version in ["zarr", "zarr(version=2)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(version, &path);
        for (i, spec) in specs.iter().enumerate() {
            let fill = pattern(spec.dtype.size() as usize, i);
            let fill = if spec.dtype == hyperslab_core::Datatype::Bool { vec![1] } else { fill };
            let spec = ArraySpec { fill_value: Some(fill.clone()), ..spec.clone() };
            let made = store.create(&format!("a{i}"), &spec).unwrap();
            assert_eq!(made.spec().unwrap(), spec);
            let opened = open(&path, OpenMode::Update).array(&format!("a{i}")).unwrap();
            assert_eq!(opened.spec().unwrap(), spec);
            assert_eq!(read_all(&opened), fill.repeat(20));
            assert!(open(&path, OpenMode::Read).attributes(&format!("a{i}")).unwrap().is_empty());
        }
    }
}

#[test]
fn senseless_options_are_refused() {
    for text in [
        "zarr(version=4)",
        "zarr(version=2,shard=4)",
        "zarr(version=2,crc32c=yes)",
        "zarr(chunk=3,shard=4)",
        "zarr(chunk=3,shard=3x3)",
        "zarr(level=3)",
        "zarr(codec=gzip,level=10)",
        "zarr(codec=zstd,level=0)",
        "zarr(codec=lzma)",
        "zarr(codec=gzip,blosc_codec=lz4)",
        "zarr(codec=none,shuffle=yes)",
        "zarr(threads=0)",
        "zarr(chunks=3)",
    ] {
        assert!(crate::build(&text.parse::<Stack>().unwrap().format).is_err(), "{text}");
    }
    let dir = tempfile::tempdir().unwrap();
    let store = create("zarr(chunk=4x4)", &dir.path().join("s"));
    assert!(store.create("a", &ArraySpec::new(hyperslab_core::Datatype::F64, &[9])).is_err());
    let store = create("zarr(shard=4)", &dir.path().join("t"));
    assert!(store.create("a", &spec("<f8", &[9], &[3])).is_err());
    let fletcher = ArraySpec { filters: vec![hyperslab_core::Filter::Fletcher32], ..spec("<f8", &[9], &[3]) };
    let store = create("zarr", &dir.path().join("u"));
    assert_eq!(store.create("a", &fletcher).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(store.create("a", &spec("<f8", &[1 << 40], &[1 << 40])).is_err());
    assert!(store.arrays().unwrap().is_empty());
}

#[test]
fn changes_drop_consolidated_metadata() {
    let dir = tempfile::tempdir().unwrap();
    for (version, file) in [("zarr", "zarr.json"), ("zarr(version=2)", ".zmetadata")] {
        let path = dir.path().join(file.trim_matches('.'));
        let store = create(version, &path);
        store.create_group("g").unwrap();
        if file == "zarr.json" {
            let with = r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{"metadata":{}}}"#;
            fs::write(path.join(file), with).unwrap();
        } else {
            fs::write(path.join(file), "{}").unwrap();
        }
        store.set_attribute("g", "x", &Attribute::integer(1)).unwrap();
        let left = fs::read_to_string(path.join(file)).unwrap_or_default();
        assert!(!left.contains("metadata"), "{left}");
    }
}
