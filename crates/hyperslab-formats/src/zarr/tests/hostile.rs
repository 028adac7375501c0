//! Damaged and malicious stores: an error, never a panic, a hang or an allocation that was not asked for.

use super::*;
use hyperslab_core::ErrorKind;
use serde_json::{Value, json};
use std::fs;

fn document() -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {},
    })
}

fn store_with(dir: &Path, text: &str, chunk: &[u8]) -> Arc<dyn Container> {
    let path = dir.join("s.zarr");
    let _ = fs::remove_dir_all(&path);
    create("zarr", &path).create_group("g").unwrap();
    fs::create_dir_all(path.join("g/a/c")).unwrap();
    fs::write(path.join("g/a/zarr.json"), text).unwrap();
    fs::write(path.join("g/a/c/0"), chunk).unwrap();
    open(&path, OpenMode::Update)
}

#[test]
fn bad_metadata_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    store_with(dir.path(), &document().to_string(), &[1; 8]).array("g/a").unwrap();
    let blosc = json!({"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5}});
    for (key, value) in [
        ("shape", json!([u64::MAX, 8])),
        ("shape", json!([1u64 << 63])),
        ("shape", json!([-1])),
        ("shape", json!(8)),
        ("shape", json!(vec![1; 33])),
        ("data_type", json!("float99")),
        ("data_type", json!({"name": "raw_bytes", "configuration": {"length_bytes": 1u64 << 60}})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [1u64 << 60]}})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [0]}})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [8, 8]}})),
        ("chunk_grid", json!({"name": "rectangular"})),
        ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "../"}})),
        ("fill_value", json!("x")),
        ("fill_value", json!(300)),
        ("fill_value", Value::Null),
        ("codecs", json!([])),
        ("codecs", json!([{"name": "vlen-utf8"}])),
        ("codecs", json!([{"name": "bytes"}, {"name": "lzma"}])),
        ("codecs", json!([{"name": "bytes"}, blosc, blosc])),
        ("codecs", json!([{"name": "sharding_indexed"}])),
        ("attributes", json!([])),
        ("attributes", json!({"_hyperslab_max_shape": [1, 2, 3]})),
        ("attributes", json!({"_hyperslab_dtype": {"size": 9, "fields": []}})),
        ("attributes", json!({"_hyperslab_dtype": "<f8"})),
        ("storage_transformers", json!([{"name": "x"}])),
        ("extension", json!({"name": "x"})),
        ("zarr_format", json!(4)),
        ("node_type", json!("tree")),
    ] {
        let mut document = document();
        document[key] = value.clone();
        let error = store_with(dir.path(), &document.to_string(), &[1; 8]).array("g/a").unwrap_err();
        assert!(!error.to_string().is_empty(), "{key} {value}");
    }
    for text in ["", "{", "[]", "null", "{\"zarr_format\":3}", "\u{0}", &"[".repeat(100_000)] {
        let store = store_with(dir.path(), text, &[]);
        assert!(store.array("g/a").is_err());
        assert!(store.arrays().is_err());
    }
}

#[test]
fn damaged_chunks_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let chains = [
        json!([{"name": "bytes"}]),
        json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]),
        json!([{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1, "checksum": true}}]),
        json!([{"name": "bytes"}, {"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 1, "blocksize": 0}}]),
        json!([{"name": "bytes"}, {"name": "crc32c"}]),
        json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2],
            "codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1, "checksum": true}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]),
    ];
    for codecs in chains {
        let mut document = document();
        document["codecs"] = codecs.clone();
        let all = Selection::all(&[8]).unwrap();
        let good = {
            let store = store_with(dir.path(), &document.to_string(), &[]);
            write(&store.array("g/a").unwrap(), &all, &pattern(8, 1)).unwrap();
            fs::read(dir.path().join("s.zarr/g/a/c/0")).unwrap()
        };
        let summed = ["gzip", "checksum", "crc32c"].iter().any(|sum| codecs.to_string().contains(sum));
        let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|n| good[..n].to_vec()).collect();
        damaged.extend((0..good.len()).map(|at| {
            let mut bytes = good.clone();
            bytes[at] ^= 0x55;
            bytes
        }));
        damaged.push([good.as_slice(), &[0; 200_000]].concat());
        // Frames that announce far more than there is.
        damaged.push([&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &[0xff; 8], &[1, 0, 0]].concat());
        damaged.push(vec![0xff; 64]);
        for bytes in damaged {
            let array = store_with(dir.path(), &document.to_string(), &bytes).array("g/a").unwrap();
            let mut data = [0; 8];
            let result = array.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent);
            match result {
                Err(error) => assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io), "{error:?}"),
                Ok(()) if summed => assert_eq!(data.as_slice(), pattern(8, 1), "{codecs} {bytes:?}"),
                // Damage that no checksum covers may go unseen, but not a wrong length.
                Ok(()) => assert!(bytes.len() <= good.len()),
            }
        }
    }
}

#[test]
fn links_and_depth_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    let store = create("zarr", &path);
    store.create_group("g").unwrap();
    std::os::unix::fs::symlink(&path, path.join("g/loop")).unwrap();
    assert!(store.arrays().unwrap().is_empty());
    assert!(format("zarr").files(&path).unwrap().len() == 2);
    assert!(store.create_group(&vec!["d"; 65].join("/")).is_err());
    store.create_group(&vec!["d"; 64].join("/")).unwrap();
    assert!(store.arrays().unwrap().is_empty());
    let deeper = path.join(vec!["d"; 64].join("/")).join("d/d");
    fs::create_dir_all(&deeper).unwrap();
    for directory in [deeper.parent().unwrap(), &deeper] {
        fs::copy(path.join("zarr.json"), directory.join("zarr.json")).unwrap();
    }
    assert!(store.arrays().is_err());
}
