//! Recovery of what processes left in journals.
#![allow(clippy::unwrap_used)]

mod faults;
mod fixture;
mod kills;
mod order;
mod states;

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Container, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Selection, TransferMode,
};
use hyperslab_layers::journal::{Append, Header, Id, Journal, Limits, Logged};
use hyperslab_layers::recover::{Files, Job, Recovery, Replayed, directory, jobs, survey};
use hyperslab_testkit::Memory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SHAPE: [u64; 2] = [12, 10];
const ELEMENTS: usize = 120;

/// A path for a container in memory that no other test uses.
fn fresh() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    PathBuf::from(format!("/recover/{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// A container in memory with an array `a` of bytes, all 0.
fn container(path: &Path) -> Arc<dyn Container> {
    let container = Memory.open(path, OpenMode::Create, &Solo::shared()).unwrap();
    container.create("a", &ArraySpec::new(Datatype::Opaque(1), &SHAPE)).unwrap();
    container
}

fn content(path: &Path) -> Vec<u8> {
    let container = Memory.open(path, OpenMode::Read, &Solo::shared()).unwrap();
    let all = Selection::all(&SHAPE).unwrap();
    let mut bytes = vec![0; ELEMENTS];
    container.array("a").unwrap().read(&all, MemoryViewMut::packed(&mut bytes), TransferMode::Independent).unwrap();
    bytes
}

fn write(container: &Arc<dyn Container>, selection: &Selection, bytes: &[u8]) {
    container.array("a").unwrap().write(selection, MemoryView::packed(bytes), TransferMode::Independent).unwrap();
}

fn create(files: &Arc<dyn Files>, path: &Path, job: Id, rank: usize, ranks: usize) -> Arc<Journal> {
    let header = Header::new(job, rank, ranks, "memory", path.into()).unwrap();
    let limits = Limits { segment: 2000, ..Limits::new(1 << 20) };
    Journal::create(files.clone(), header, limits).unwrap()
}

fn log(journal: &Journal, selection: &Selection, bytes: &[u8]) -> Logged {
    match journal.append("a", &Datatype::Opaque(1), selection, &[bytes]).unwrap() {
        Append::Logged(logged) => logged,
        other => panic!("{other:?}"),
    }
}

/// Recovers everything into containers of `format`.
fn recover_with(files: &Arc<dyn Files>, format: &Arc<dyn Format>) -> hyperslab_core::Result<Vec<Replayed>> {
    let (mut jobs, _) = jobs(survey(files, false)?);
    let build = |_: &_| Ok(format.clone());
    let recovery = Recovery { files, format: &build, alone: Solo::shared(), mend: &|_| Ok(()) };
    jobs.iter_mut().map(|job| recovery.replay(job)).collect()
}

fn recover(files: &Arc<dyn Files>) -> Vec<Replayed> {
    recover_with(files, &(Arc::new(Memory) as Arc<dyn Format>)).unwrap()
}

fn found_jobs(files: &Arc<dyn Files>) -> Vec<Job> {
    jobs(survey(files, false).unwrap()).0
}
