//! `hyperslab ior`, as a user of IOR runs it, on every format; its files are read by h5py, zarr-python and numpy.
//!
//! With `HYPERSLAB_PYTHON` naming a Python that has them; without it that part is skipped.
#![allow(clippy::unwrap_used)]

use assert_cmd::Command;
use std::path::Path;

/// What the words of IOR are, worked out from offsets alone, against what the libraries find in the files.
const CHECK: &str = r#"
import sys, json, numpy
kind, path, ranks, block, transfer, segments, signature = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
words = numpy.arange(ranks * block * segments // 8, dtype=numpy.uint64)
offset = words * 8
rank = offset // block % ranks
expected = (rank << numpy.uint64(32)) | (numpy.uint64(signature) + offset % transfer // 8)
if kind == "posix":
    assert json.load(open(path + "/data.json"))["dtype"] == "<i8"
    found = numpy.fromfile(path + "/data.raw", "<u8")
elif kind == "zarr":
    import zarr
    found = zarr.open(path, mode="r")["data"][:].view("<u8")
elif kind == "segments":
    import h5py
    with h5py.File(path) as file:
        assert sorted(file) == ["Dataset-0000.%04d" % n for n in range(segments)], list(file)
        found = numpy.concatenate([file[name][:] for name in sorted(file)]).view("<u8")
else:
    import h5py
    with h5py.File(path) as file:
        found = file["data"][:].view("<u8")
assert numpy.array_equal(found, expected), numpy.flatnonzero(found != expected)[:8]
"#;

fn hyperslab(folder: &Path, words: &[&str]) -> std::process::Output {
    Command::cargo_bin("hyperslab").unwrap().current_dir(folder).arg("ior").args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn files_of_every_format_have_the_words_of_ior() {
    let folder = tempfile::tempdir().unwrap();
    let python = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty());
    for (api, kind, more) in [
        ("POSIX", "posix", ""),
        ("HDF5", "hdf5", ""),
        ("HDF5", "segments", "--dataset-per-segment"),
        ("HDF5", "hdf5", "--hdf5.chunkSize=1000"),
        ("hdf5(plane=on)", "hdf5", "-C"),
        ("async/hdf5", "hdf5", "-c"),
        ("ZARR", "zarr", "-O chunkSize=0 --hdf5.chunkSize=512"),
    ] {
        let sizes = ["-b", "64k", "-t", "16k", "-s", "3", "-N", "2", "-G", "27", "-l", "timestamp"];
        let words: Vec<&str> = ["-a", api, "-o", "f", "-wrk", "-W", "-R"]
            .into_iter()
            .chain(sizes)
            .chain(more.split_whitespace())
            .collect();
        let done = hyperslab(folder.path(), &words);
        let said = format!("{api} {more}\n{}{}", text(&done.stdout), text(&done.stderr));
        assert!(done.status.success() && said.contains("Verified: 768.00 KiB were compared"), "{said}");
        if let Some(python) = &python {
            let mut check = Command::new(python);
            check.current_dir(folder.path()).args(["-c", CHECK, kind, "f", "2", "65536", "16384", "3", "27"]);
            check.assert().success();
        }
        let removed = hyperslab(
            folder.path(),
            &["-a", api, "-o", "f", "-r", "-b", "64k", "-t", "16k", "-s", "3", "-N", "2"]
                .into_iter()
                .chain(more.split_whitespace())
                .collect::<Vec<_>>(),
        );
        assert!(removed.status.success() && !folder.path().join("f").exists(), "{}", text(&removed.stderr));
    }
    if python.is_none() {
        eprintln!("libraries: skipped, HYPERSLAB_PYTHON is not set");
    }
}

#[test]
fn exit_codes_and_streams_are_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        ["-a", "HDF5", "-o", "f", "-b", "4m", "-t", "1m", "-s", "2", "-wrR", "-N", "4", "-O", "summaryFormat=JSON"];
    let first = hyperslab(folder.path(), &[&flags[..], &["-k"]].concat());
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    // It is there now, of which people are told where programs do not look.
    let second = hyperslab(folder.path(), &flags);
    assert!(text(&second.stderr).contains("exists already and will be deleted"));
    let document: serde_json::Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(document["tests"][0]["Results"][1]["comparedBytes"], 32 << 20);
    let refused = hyperslab(folder.path(), &["-b", "10", "-t", "8"]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    let missing = hyperslab(folder.path(), &["-r", "-o", "missing"]);
    assert_eq!(missing.status.code(), Some(1));
    let help = hyperslab(folder.path(), &["--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("--dataset-per-segment"));
}
