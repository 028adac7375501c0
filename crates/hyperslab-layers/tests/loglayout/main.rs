//! What the log layout promises beyond what every layer does.
#![allow(clippy::unwrap_used)]

mod damage;
mod fields;
mod sessions;
mod storage;

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Result,
    Selection, Stack, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Formats of every kind.
const FORMATS: &[&str] = &["memory", "posix", "hdf5", "hdf5(layout=chunked)", "zarr"];

fn format(stack: &str) -> Arc<dyn Format> {
    let stack: Stack = stack.parse().unwrap();
    let bottom: Arc<dyn Format> = match stack.format.name.as_str() {
        "memory" => Arc::new(Memory),
        _ => hyperslab_formats::build(&stack.format).unwrap(),
    };
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// A folder and the path of a container in it.
fn place(format: &dyn Format) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file").with_extension(format.extension());
    (folder, path)
}

/// Runs ranks on a container that all of them open and close.
fn ranks<F>(format: &dyn Format, path: &Path, how: OpenMode, size: usize, body: F)
where
    F: Fn(&Arc<dyn Communicator>, &Arc<dyn Container>) -> Result<()> + Sync,
{
    Threads::run(size, |comm| {
        let container = format.open(path, how, &comm)?;
        body(&comm, &container)?;
        container.close()
    })
    .unwrap();
}

fn write(array: &dyn Array, first: u64, bytes: &[u8]) -> Result<()> {
    let selection = Selection::dense(&[first], &[bytes.len() as u64])?;
    array.write(&selection, MemoryView::packed(bytes), TransferMode::Independent)
}

fn read(array: &dyn Array) -> Result<Vec<u8>> {
    let spec = array.spec()?;
    let all = Selection::all(&spec.shape)?;
    let mut found = vec![0xEE; (all.len() * spec.dtype.size()) as usize];
    array.read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
    Ok(found)
}

/// The whole of array `name`, by one rank.
fn content(format: &dyn Format, path: &Path, name: &str) -> Result<Vec<u8>> {
    let container = format.open(path, OpenMode::Read, &Solo::shared())?;
    let found = read(&*container.array(name)?)?;
    container.close()?;
    Ok(found)
}

fn bytes(shape: u64) -> ArraySpec {
    ArraySpec::new(Datatype::U8, &[shape])
}
