//! `hyperslab trace` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/plugin.rs"]
mod plugin;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use program::run;
use std::fs;

const PROGRAM: &str = "
import h5py, numpy
with h5py.File('first.h5', 'w') as f:
    x = f.create_dataset('x', (100, 10), 'f8')
    for row in range(0, 100, 10):
        x[row:row + 10] = numpy.full((10, 10), row, 'f8')
    x[::2, 3] = numpy.ones(50)
with h5py.File('first.h5') as f:
    f['x'][5:20]
with h5py.File('second.h5', 'w') as f:
    f['y'] = numpy.zeros(1000, 'i4')
";

#[test]
fn recorded_workloads_can_be_played() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(folder.path(), &["trace", "--", python.to_str().unwrap(), "-c", PROGRAM]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("3 workloads recorded"), "{err}");
    assert!(err.contains("1 array, 11 writes of 8.20 KiB"), "{err}");
    assert!(err.contains("hyperslab bench --workload hyperslab-trace/first.jsonl"), "{err}");
    let mut names: Vec<_> =
        fs::read_dir(folder.path().join("hyperslab-trace")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["first-2.jsonl", "first.jsonl", "second.jsonl"]);
    for name in ["first.jsonl", "first-2.jsonl", "second.jsonl"] {
        let workload = format!("hyperslab-trace/{name}");
        let words = ["bench", "--workload", &workload, "--format", "posix", "--verify", "--overwrite", "--out", name];
        let (code, out, err) = run(folder.path(), &words);
        assert_eq!(code, 0, "{name}: {out}{err}");
    }
}

const APPENDS: &str = "
import h5py, numpy
with h5py.File('grows.h5', 'w') as f:
    g = f.create_group('run')
    g.attrs['title'] = 'a stream of rows'
    x = g.create_dataset('x', (0, 4), 'f8', maxshape=(None, 4), chunks=(16, 4))
    x.attrs['scale'] = 2.5
    x.attrs['scale'] = numpy.array([1, 2, 3], 'i4')
    for row in range(0, 40, 8):
        x.resize(row + 8, axis=0)
        x[row:] = numpy.full((8, 4), row, 'f8')
    f['run/late'] = numpy.arange(10)
    f['late.too'] = numpy.arange(5, dtype='f4')
    f['late.too'].attrs['of'] = 'what had no name'
";

#[test]
fn what_grows_is_played_with_its_names_and_attributes() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let words = ["trace", "-o", "t.jsonl", "--", python.to_str().unwrap(), "-c", APPENDS];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let steps = fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    assert_eq!(steps.matches("\"do\":\"resize\"").count(), 5, "{steps}");
    assert!(!steps.contains("unnamed"), "{steps}");
    let words = ["bench", "--workload", "t.jsonl", "--format", "hdf5,zarr", "--verify", "--directory", "d"];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{out}{err}");
    let look = "
import h5py
with h5py.File('d/grows.h5') as f:
    assert f['run/x'].shape == (40, 4) and f['run/x'].maxshape == (None, 4), f['run/x']
    assert f['run'].attrs['title'] in (b'a stream of rows', 'a stream of rows'), f['run'].attrs['title']
    assert f['run/x'].attrs['scale'].tolist() == [1, 2, 3], dict(f['run/x'].attrs)
    assert f['run/late'].shape == (10,) and f['late.too'].shape == (5,), list(f)
    assert f['late.too'].attrs['of'] in (b'what had no name', 'what had no name')
";
    let output = std::process::Command::new(&python).args(["-c", look]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_name_is_numbered_and_never_replaced() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let words = ["trace", "-o", "run.jsonl", "--", python.to_str().unwrap(), "-c", PROGRAM];
    let (code, _, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{err}");
    for name in ["run.jsonl", "run-2.jsonl", "run-3.jsonl"] {
        assert!(folder.path().join(name).is_file(), "{name}: {err}");
    }
    let before = fs::read(folder.path().join("run.jsonl")).unwrap();
    let (code, _, err) = run(folder.path(), &words);
    assert!(code == 2 && err.contains("exists and is not replaced"), "{err}");
    assert_eq!(fs::read(folder.path().join("run.jsonl")).unwrap(), before);
}

#[test]
fn a_program_that_is_killed_leaves_what_it_did() {
    let Some(python) = plugin::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let killed = "
import h5py, os, signal
f = h5py.File('out.h5', 'w')
x = f.create_dataset('x', (20000,), 'i4')
for i in range(20000):
    x[i:i + 1] = i
os.kill(os.getpid(), signal.SIGKILL)
";
    let (code, _, err) =
        run(folder.path(), &["trace", "-o", "out.jsonl", "--", python.to_str().unwrap(), "-c", killed]);
    assert_eq!(code, 137, "{err}");
    assert!(err.contains("1 workload recorded") && err.contains("ended before it closed the file"), "{err}");
}

#[test]
fn nothing_recorded_leaves_nothing() {
    plugin::build();
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["trace", "sh", "-c", "exit 4"]);
    assert!(code == 4 && err.contains("hyperslab doctor"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
