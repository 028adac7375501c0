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
