//! One rank fails: all of them hear of it, and nobody hangs.

use crate::over;
use crate::watched::{Seen, Watched};
use hyperslab_comm::Threads;
use hyperslab_core::{
    ArraySpec, Container, Datatype, ErrorKind, Field, Format, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// The oracle, watched, under a layer.
pub fn watched(layer: &str) -> (Arc<dyn Format>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let memory: Arc<dyn Format> = Arc::new(Memory);
    let bottom: Arc<dyn Format> = Arc::new(Watched { inner: memory, seen: seen.clone(), rank: 0 });
    (over(&format!("{layer}/memory"), bottom), seen)
}

/// Runs `body` on an array of bytes and returns the kinds of error that the ranks got.
fn kinds(
    format: &Arc<dyn Format>,
    name: &str,
    ranks: usize,
    body: impl Fn(usize, &Arc<dyn Container>) -> Result<()> + Sync,
) -> Vec<Option<ErrorKind>> {
    let path = PathBuf::from("twophase").join(name);
    Threads::run_each(ranks, |comm| {
        let container = format.open(&path, OpenMode::Truncate, &comm)?;
        container.create("a", &ArraySpec::new(Datatype::U8, &[64]))?;
        let result = body(comm.rank(), &container);
        // All are still in step.
        comm.barrier()?;
        container.close()?;
        result
    })
    .into_iter()
    .map(|result| result.err().map(|error| error.kind()))
    .collect()
}

#[test]
fn a_bad_argument_of_one_rank_is_heard_by_all_before_anything_moves() {
    let (format, seen) = watched("twophase(aggregators=2,buffer=8,unit=1)");
    let bad = |rank: usize, selection: Selection, bytes: usize| {
        let array_bytes = vec![1; if rank == 2 { bytes } else { 4 }];
        (if rank == 2 { selection } else { Selection::dense(&[rank as u64 * 4], &[4]).unwrap() }, array_bytes)
    };
    for (number, (selection, bytes)) in [
        (Selection::dense(&[62], &[4]).unwrap(), 4),
        (Selection::dense(&[8], &[4]).unwrap(), 3),
        (Selection::dense(&[8, 0], &[4, 1]).unwrap(), 4),
    ]
    .into_iter()
    .enumerate()
    {
        for write in [true, false] {
            let found = kinds(&format, &format!("bad argument {number}"), 3, |rank, container| {
                let array = container.array("a")?;
                let (selection, mut data) = bad(rank, selection.clone(), bytes);
                match write {
                    true => array.write(&selection, MemoryView::packed(&data), TransferMode::Collective),
                    false => array.read(&selection, MemoryViewMut::packed(&mut data), TransferMode::Collective),
                }
            });
            let peer = Some(ErrorKind::Peer);
            assert_eq!(found, [peer, peer, Some(ErrorKind::InvalidInput)], "case {number}, write {write}");
        }
    }
    assert!(seen.accesses.lock().unwrap().is_empty());
}

#[test]
fn an_aggregator_that_fails_is_heard_by_all() {
    let (format, seen) = watched("twophase(aggregators=1,buffer=8,unit=1)");
    for write in [true, false] {
        let found = kinds(&format, &format!("failing {write}"), 4, |rank, container| {
            let array = container.array("a")?;
            seen.fail.store(true, SeqCst);
            let mine = Selection::strided(&[rank as u64], &[4], &[16], &[1])?;
            let mut data = vec![1; 16];
            match write {
                true => array.write(&mine, MemoryView::packed(&data), TransferMode::Collective),
                false => array.read(&mine, MemoryViewMut::packed(&mut data), TransferMode::Collective),
            }
        });
        let peer = Some(ErrorKind::Peer);
        assert_eq!(found, [Some(ErrorKind::NoSpace), peer, peer, peer], "write {write}");
    }
    assert!(seen.accesses.lock().unwrap().len() <= 4, "nobody goes on for long");
}

#[test]
fn what_forbids_writing_is_said_on_all_ranks() {
    let (format, _) = watched("twophase");
    let path = PathBuf::from("twophase/read only");
    let found = Threads::run_each(3, |comm| {
        let container = format.open(&path, OpenMode::Truncate, &comm)?;
        container.create("a", &ArraySpec::new(Datatype::U8, &[3]))?;
        container.close()?;
        let array = format.open(&path, OpenMode::Read, &comm)?.array("a")?;
        let mine = Selection::dense(&[comm.rank() as u64], &[1])?;
        let mut byte = [7];
        array.read(&mine, MemoryViewMut::packed(&mut byte), TransferMode::Collective)?;
        assert_eq!(byte, [0]);
        array.write(&mine, MemoryView::packed(&byte), TransferMode::Collective)
    });
    assert!(found.iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == ErrorKind::InvalidInput)));
}

#[test]
fn some_fields_are_left_to_the_format_on_all_ranks() {
    let (format, seen) = watched("twophase(aggregators=2)");
    let path = PathBuf::from("twophase/fields");
    let field = |name: &str, offset| Field { name: name.into(), offset, dtype: Datatype::U8 };
    let dtype = Datatype::compound(2, vec![field("x", 0), field("y", 1)]).unwrap();
    Threads::run(3, |comm| {
        let container = format.open(&path, OpenMode::Truncate, &comm)?;
        let array = container.create("a", &ArraySpec::new(dtype.clone(), &[3]))?;
        let rank = comm.rank() as u8;
        let mine = Selection::dense(&[u64::from(rank)], &[1])?;
        let some = MemoryLayout::fields(1, [("y", 0)]);
        let whole = MemoryLayout::packed();
        let (data, layout) = if rank == 1 { (vec![9], &some) } else { (vec![rank, rank + 10], &whole) };
        array.write(&mine, MemoryView { data: &data, layout }, TransferMode::Collective)?;
        comm.barrier()?;
        assert_eq!(container.diagnostics().len(), 2, "the format's and the layer's");
        // Reading some fields needs no help.
        let mut read = vec![0xEE; 3];
        let all = Selection::all(&[3])?;
        array.read(&all, MemoryViewMut { data: &mut read, layout: &some }, TransferMode::Collective)?;
        assert_eq!(read, [10, 9, 12]);
        assert_eq!(container.diagnostics().len(), 2);
        container.close()
    })
    .unwrap();
    assert_eq!(seen.collective.load(SeqCst), 3, "one transfer, on every rank");
}
