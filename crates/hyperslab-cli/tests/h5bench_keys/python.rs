//! The other side: a Python script that checks files.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn interpreter() -> Option<PathBuf> {
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Has Python do all the jobs. They name files by full paths.
pub fn check(jobs: &[Value]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/check.py");
    let list = tempfile::NamedTempFile::new().unwrap();
    serde_json::to_writer(list.as_file(), jobs).unwrap();
    let mut command = Command::new(interpreter().unwrap());
    command.arg(script).arg(list.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let (code, out, err) = crate::program::said(command.output().unwrap());
    assert_eq!((code, out.trim()), (0, format!("{0} of {0} are right", jobs.len()).as_str()), "{err}");
}

/// A job: an HDF5 file of particles, as arrays of their own, written whole with seed 1.
pub fn particles(path: PathBuf, shape: &[u64], steps: u64) -> Value {
    json!({
        "kind": "particles",
        "label": path.file_name().unwrap().to_str().unwrap(),
        "path": path,
        "format": "hdf5",
        "layout": "arrays",
        "shape": shape,
        "steps": steps,
    })
}

/// The job with more said in it.
pub fn and(mut job: Value, more: Value) -> Value {
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}
