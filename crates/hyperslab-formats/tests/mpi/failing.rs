//! One rank fails in the middle.

use super::suite::build;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Dims, ErrorKind, MemoryView, OpenMode, Selection, TransferMode,
};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A directory that all ranks see, kept by rank 0.
pub fn directory(comm: &dyn Communicator) -> (PathBuf, Option<TempDir>) {
    let made = (comm.rank() == 0).then(|| tempfile::tempdir().unwrap());
    let mut path = made.as_ref().map(|made| made.path().as_os_str().as_bytes().to_vec()).unwrap_or_default();
    comm.broadcast(0, &mut path).unwrap();
    (PathBuf::from(OsString::from_vec(path)), made)
}

/// An array with a row, and a chunk where there are chunks, for each rank.
fn array_by_rank(
    comm: &Arc<dyn Communicator>,
    path: &std::path::Path,
    stack: &str,
) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let format = build(stack);
    let container = format.open(path, OpenMode::Create, comm).unwrap();
    let mut spec = ArraySpec::new(Datatype::I64, &[comm.size() as u64, 1000]);
    spec.chunk = format.caps().data.chunks.then(|| Dims::from_slice(&[1, 1000]));
    let array = container.create("array", &spec).unwrap();
    (container, array)
}

/// An array that one rank describes wrongly is made by nobody, and everybody hears why.
pub fn one_has_an_error(comm: &Arc<dyn Communicator>, stack: &str) {
    let (directory, _kept) = directory(&**comm);
    let (container, _) = array_by_rank(comm, &directory.join("a"), stack);
    let bad = comm.rank() + 1 == comm.size();
    let spec = ArraySpec { fill_value: bad.then(|| vec![0; 3]), ..ArraySpec::new(Datatype::F64, &[4]) };
    let error = container.create("wrong", &spec).map(drop).unwrap_err();
    assert_eq!(error.kind(), if bad { ErrorKind::InvalidInput } else { ErrorKind::Peer }, "{error:?}");
    assert!(error.to_string().contains("fill value"), "{error}");
    container.create("right", &ArraySpec::new(Datatype::F64, &[4])).unwrap();
    container.close().unwrap();
    comm.barrier().unwrap();
}

/// A rank that is gone ends the job: the others wait for it in a flush.
pub fn one_dies(comm: &Arc<dyn Communicator>, stack: &str) {
    let (directory, _kept) = directory(&**comm);
    let (container, array) = array_by_rank(comm, &directory.join("a"), stack);
    let mine = Selection::dense(&[comm.rank() as u64, 0], &[1, 1000]).unwrap();
    let data = vec![1; 8000];
    array.write(&mine, MemoryView::packed(&data), TransferMode::Independent).unwrap();
    if comm.rank() == 1 {
        // The files stay behind: nobody is left to remove them, so one rank does it now.
        std::fs::remove_dir_all(&directory).unwrap();
        std::process::exit(7);
    }
    loop {
        // Whatever the others do, they need the rank that is gone.
        let _ = container.flush(hyperslab_core::Durability::Visible);
        let _ = comm.barrier();
    }
}
