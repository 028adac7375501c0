//! One rank fails: it says so, the others end too, and nobody hangs.

use super::{Check, ensure};
use crate::{Ranks, Subject};
use hyperslab_core::{
    ArraySpec, Caps, Communicator, Container, Datatype, Durability, Error, ErrorKind, MemoryView, OpenMode, Result,
    Selection, TransferMode, agree,
};
use libtest_mimic::Failed;
use std::sync::Arc;

/// Why a check of ranks that leave the others alone does not apply to a job.
const ENDS_THE_JOB: &str = "in a job of processes, a rank that leaves the others ends the job";

pub(super) fn checks(caps: &Caps, ranks: &Ranks) -> Vec<Check> {
    let mut out = Vec::new();
    for size in ranks.sizes(&[2, 3, 8]) {
        let check = |name: &str, run: fn(&Subject, usize) -> Result<(), Failed>| {
            Check::new(format!("{size} ranks, one fails/{name}"), move |subject| run(subject, size))
        };
        out.push(check("opening", opening).needs(caps.data.readable, "the format stores nothing"));
        out.push(check("creating", creating));
        out.push(check("writing independently, and leaves", writing).needs(ranks.are_threads(), ENDS_THE_JOB));
        out.push(check("writing collectively, and leaves", collective).needs(ranks.are_threads(), ENDS_THE_JOB));
        out.push(check("writing collectively, and stays", staying));
        out.push(check("before closing", leaving).needs(ranks.are_threads(), ENDS_THE_JOB));
    }
    out.into_iter().map(|check| check.needs(size_of(ranks) != Some(1), "one rank has no others")).collect()
}

fn size_of(ranks: &Ranks) -> Option<usize> {
    match ranks {
        Ranks::Threads => None,
        Ranks::Processes(job) => Some(job.world.size()),
    }
}

/// Runs `body` on an open container and hands over what each rank returned.
fn each(
    subject: &Subject,
    size: usize,
    body: impl Fn(&Arc<dyn Communicator>, &Arc<dyn Container>) -> Result<()> + Sync,
) -> Result<Vec<Result<()>>> {
    let path = subject.path("a");
    subject.ranks.run_each(size, |comm| {
        let container = subject.format.open(&path, OpenMode::Create, &comm)?;
        body(&comm, &container)
    })
}

fn last(comm: &Arc<dyn Communicator>) -> bool {
    comm.rank() + 1 == comm.size()
}

fn opening(subject: &Subject, size: usize) -> Result<(), Failed> {
    let path = subject.path("missing");
    for how in [OpenMode::Read, OpenMode::Update] {
        let results = subject.ranks.run_each(size, |comm| subject.format.open(&path, how, &comm).map(|_| ()))?;
        let kinds: Vec<_> = results.iter().map(|r| r.as_ref().err().map(Error::kind)).collect();
        ensure!(kinds.iter().all(Option::is_some), "{how:?} of nothing succeeded on some rank: {kinds:?}");
        ensure!(kinds.contains(&Some(ErrorKind::NotFound)), "nobody says that nothing is there: {kinds:?}");
    }
    subject.ranks.on_one(|| Ok(subject.open("a", OpenMode::Create)?.close()?))?;
    let path = subject.path("a");
    let results =
        subject.ranks.run_each(size, |comm| subject.format.open(&path, OpenMode::Create, &comm).map(|_| ()))?;
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
    })?;
    for (rank, result) in results.into_iter().enumerate() {
        result.map_err(|error| format!("rank {rank}: {error:?}"))?;
    }
    Ok(())
}

fn writing(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        let array = container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        let at = if last(comm) { 8 } else { comm.rank() as u64 };
        array.write(&Selection::dense(&[at], &[1])?, MemoryView::packed(&[1; 8]), TransferMode::Independent)?;
        container.flush(Durability::Visible)?;
        container.close()
    })?;
    only_the_last(&results)
}

fn collective(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        let array = container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        let at = if last(comm) { 8 } else { comm.rank() as u64 };
        array.write(&Selection::dense(&[at], &[1])?, MemoryView::packed(&[1; 8]), TransferMode::Collective)?;
        container.close()
    })?;
    only_the_last(&results)
}

/// A collective transfer in which one rank asks for nonsense: that rank hears why, the others fail too where the
/// format makes them wait for each other, and all can go on.
fn staying(subject: &Subject, size: usize) -> Result<(), Failed> {
    let shape = [size as u64];
    let results = each(subject, size, |comm, container| {
        let array = container.create("array", &ArraySpec::new(Datatype::F64, &shape))?;
        let at = if last(comm) { shape[0] } else { comm.rank() as u64 };
        let one = |at| Selection::dense(&[at], &[1]);
        let failed = array.write(&one(at)?, MemoryView::packed(&[1; 8]), TransferMode::Collective);
        let again = array.write(&one(comm.rank() as u64)?, MemoryView::packed(&[2; 8]), TransferMode::Collective);
        // One agreement on both, so that every rank closes. Formats may refuse parts of chunks, but on every rank.
        let again = again.or_else(|error| if error.kind() == ErrorKind::Unsupported { Ok(()) } else { Err(error) });
        agree(&**comm, again)?;
        array.close()?;
        container.close()?;
        failed
    })?;
    for (rank, result) in results.iter().enumerate() {
        let fine = match result {
            // Whether the others hear of it is the format's choice.
            Ok(()) => rank + 1 < size,
            Err(error) if rank + 1 == size => error.kind() == ErrorKind::InvalidInput,
            Err(error) => matches!(error.kind(), ErrorKind::Peer | ErrorKind::Unsupported),
        };
        ensure!(fine, "rank {rank} reports {result:?}");
    }
    Ok(())
}

fn leaving(subject: &Subject, size: usize) -> Result<(), Failed> {
    let results = each(subject, size, |comm, container| {
        container.create("array", &ArraySpec::new(Datatype::F64, &[8]))?;
        if last(comm) {
            return Err(Error::invalid("check", "this rank gives up"));
        }
        container.flush(Durability::Durable)?;
        container.close()
    })?;
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
