//! One rank fails: it says so, the others end too, and nobody hangs.

use super::{Check, ensure};
use crate::Subject;
use hyperslab_comm::Threads;
use hyperslab_core::{
    ArraySpec, Caps, Communicator, Container, Datatype, Durability, Error, ErrorKind, MemoryView, Open, Result,
    Selection, Transfer,
};
use libtest_mimic::Failed;
use std::sync::Arc;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let mut out = Vec::new();
    for size in [2, 3, 8] {
        let check = |name: &str, run: fn(&Subject, usize) -> Result<(), Failed>| {
            Check::new(format!("{size} ranks, one fails/{name}"), move |subject| run(subject, size))
        };
        out.push(check("opening", opening).needs(caps.stores, "the format stores nothing"));
        out.push(check("creating", creating));
        out.push(check("writing independently, and leaves", writing));
        out.push(check("writing collectively", collective));
        out.push(check("before closing", leaving));
    }
    out
}

/// Runs `body` on an open container and hands over what each rank returned.
fn each(
    subject: &Subject,
    size: usize,
    body: impl Fn(&Arc<dyn Communicator>, &Arc<dyn Container>) -> Result<()> + Sync,
) -> Vec<Result<()>> {
    let path = subject.path("a");
    Threads::run_each(size, |comm| {
        let container = subject.format.open(&path, Open::Create, &comm)?;
        body(&comm, &container)
    })
}

fn last(comm: &Arc<dyn Communicator>) -> bool {
    comm.rank() + 1 == comm.size()
}

fn opening(subject: &Subject, size: usize) -> Result<(), Failed> {
    let path = subject.path("missing");
    for how in [Open::Read, Open::Update] {
        let results = Threads::run_each(size, |comm| subject.format.open(&path, how, &comm).map(|_| ()));
        let kinds: Vec<_> = results.iter().map(|r| r.as_ref().err().map(Error::kind)).collect();
        ensure!(kinds.iter().all(Option::is_some), "{how:?} of nothing succeeded on some rank: {kinds:?}");
        ensure!(kinds.contains(&Some(ErrorKind::NotFound)), "nobody says that nothing is there: {kinds:?}");
    }
    subject.open("a", Open::Create)?.close()?;
    let path = subject.path("a");
    let results = Threads::run_each(size, |comm| subject.format.open(&path, Open::Create, &comm).map(|_| ()));
    let kinds: Vec<_> = results.iter().map(|r| r.as_ref().err().map(Error::kind)).collect();
    ensure!(kinds.iter().all(Option::is_some), "Create over a container succeeded on some rank: {kinds:?}");
    ensure!(kinds.contains(&Some(ErrorKind::AlreadyExists)), "nobody says that it exists: {kinds:?}");
    Ok(())
}

fn creating(subject: &Subject, size: usize) -> Result<(), Failed> {
    let good = ArraySpec::new(Datatype::F64, &[8]);
    let bad = ArraySpec { fill_value: Some(vec![0; 3]), ..good.clone() };
    let results = each(subject, size, |comm, container| {
        let refused = container.create("array", if last(comm) { &bad } else { &good });
        if refused.is_ok() {
            return Err(Error::new(ErrorKind::Mismatch, "check", "created although a rank passed nonsense"));
        }
        // Everybody heard of it, so everybody can go on together.
        container.create("array", &good)?;
        container.close()
    });
    for (rank, result) in results.into_iter().enumerate() {
        result.map_err(|error| format!("rank {rank}: {error:?}"))?;
    }
    Ok(())
}

fn writing(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        let array = container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        let at = if last(comm) { 8 } else { comm.rank() as u64 };
        array.write(&Selection::dense(&[at], &[1])?, MemoryView::packed(&[1; 8]), Transfer::Independent)?;
        container.flush(Durability::Visible)?;
        container.close()
    });
    only_the_last(&results)
}

fn collective(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        let array = container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        let at = if last(comm) { 8 } else { comm.rank() as u64 };
        array.write(&Selection::dense(&[at], &[1])?, MemoryView::packed(&[1; 8]), Transfer::Collective)?;
        container.close()
    });
    only_the_last(&results)
}

fn leaving(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        if last(comm) {
            return Err(Error::invalid("check", "this rank gives up"));
        }
        container.flush(Durability::Durable)?;
        container.close()
    });
    only_the_last(&results)
}

/// The failing rank reports its own error; the others succeed or say that a peer failed.
fn only_the_last(results: &[Result<()>]) -> Result<(), Failed> {
    for (rank, result) in results.iter().enumerate() {
        match result {
            Ok(()) => ensure!(rank + 1 < results.len(), "the failing rank reports success"),
            Err(error) if rank + 1 == results.len() => {
                ensure!(error.kind() == ErrorKind::InvalidInput, "the failing rank reports {error:?}");
            }
            Err(error) => ensure!(error.kind() == ErrorKind::Peer, "rank {rank} reports {error:?}"),
        }
    }
    Ok(())
}
